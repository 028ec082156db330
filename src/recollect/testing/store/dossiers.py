"""Dossiers: one of a shelf, kind and key, replaced at will, gone with what they tell of."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from recollect.errors import StoreError
from recollect.stores.base import Dossier, Removed, Selection, Store, Tx
from recollect.testing.builders import make_dossier, make_record, make_turn, minutes_later
from recollect.testing.store.case import OTHER_SHELF, OTHER_TENANT, SHELF, StoreCase, add
from recollect.types import Shelf


class DossiersContract(StoreCase):
    """What a mechanism needs to keep books of its own work. What a state means is not the store's to say."""

    def test_a_dossier_comes_back_with_every_field(self, store: Store) -> None:
        add(store, make_record("a"))
        add(store, make_record("b", shelf=OTHER_SHELF))
        dossier = make_dossier(
            "ü/1", kind="task", state="judging", body={"said": ["ü", 1.5, None]}, names=("b", "a"), session="monday",
            updated_at=minutes_later(3),
        )  # fmt: skip
        assert put(store, dossier)
        assert store.dossier(SHELF, "task", "ü/1") == dossier
        assert store.dossiers() == [dossier]
        with store.transact() as tx:
            assert tx.dossier(SHELF, "task", "ü/1") == dossier
            assert tx.dossier(SHELF, "task", "another") is None
        assert store.dossier(OTHER_SHELF, "task", "ü/1") is store.dossier(SHELF, "run", "ü/1") is None

    def test_a_second_takes_the_place_of_the_first(self, store: Store) -> None:
        add(store, make_record("a"))
        first = make_dossier("k", state="begun", body={"n": 1}, names=("a",), session="monday")
        put(store, first)
        put(store, make_dossier("later"))
        second = replace(
            first, state="ended", body={"n": 2}, names=(), session=None,
            created_at=minutes_later(5), updated_at=minutes_later(5),
        )  # fmt: skip
        put(store, second)
        assert store.dossier(SHELF, "task", "k") == replace(second, created_at=first.created_at)
        assert keys(store.dossiers()) == ["later", "k"]
        with store.transact() as tx:
            assert tx.remove(SHELF, Selection(ids=["a"])).dossiers == 0

    def test_many_bodies_at_once_are_as_one_by_one(self, store: Store) -> None:
        add(store, make_record("a"))
        put(store, make_dossier("k", kind="one", state="begun", body={"n": 0}, names=("a",), session="monday"))
        put(store, make_dossier("k", kind="other", body={"n": 7}))
        at = minutes_later(5)
        with store.transact() as tx:
            tx.put_bodies(SHELF, "one", {"k": {"n": 1}, "ü": {"n": 2}}, at)
            assert tx.bodies(SHELF, "one", ["ü", "k", "missing"]) == {"k": {"n": 1}, "ü": {"n": 2}}
            tx.put_bodies(OTHER_SHELF, "one", {}, at)
        assert store.bodies(SHELF, "one", ["ü"]) == {"ü": {"n": 2}}
        assert store.bodies(OTHER_SHELF, "one", ["k"]) == store.bodies(SHELF, "one", []) == {}
        assert store.bodies(SHELF, "other", ["k"]) == {"k": {"n": 7}}
        kept = store.dossier(SHELF, "one", "k")
        first = make_dossier("k", kind="one", state="", body={"n": 1}, updated_at=at)
        assert kept == first
        assert store.dossier(SHELF, "one", "ü") == replace(first, key="ü", body={"n": 2}, created_at=at)
        with store.transact() as tx:
            assert tx.remove(SHELF, Selection(ids=["a"])).dossiers == 0
            with pytest.raises(StoreError, match="JSON"):
                tx.put_bodies(SHELF, "one", {"k": {"n": object()}}, at)

    def test_shelves_and_kinds_keep_theirs_apart(self, store: Store) -> None:
        put(store, make_dossier("k"))
        put(store, make_dossier("k", kind="run"))
        put(store, make_dossier("k", shelf=OTHER_SHELF))
        assert len(store.dossiers()) == 3

    def test_a_dossier_makes_its_shelf(self, store: Store) -> None:
        put(store, make_dossier("k", shelf=OTHER_SHELF))
        assert store.shelves() == [OTHER_SHELF]

    def test_what_is_handed_out_cannot_change_what_is_kept(self, store: Store) -> None:
        body: dict[str, Any] = {"steps": [1]}
        put(store, make_dossier("k", body=body))
        body["steps"].append(2)
        store.dossiers()[0].body["steps"].append(3)
        assert store.dossiers()[0].body == {"steps": [1]}

    @pytest.mark.parametrize("body", [{"x": object()}, {"x": float("nan")}, ["no object"]])
    def test_a_body_that_is_no_json_object_is_refused(self, store: Store, body: Any) -> None:
        with pytest.raises(StoreError, match="JSON"):
            put(store, make_dossier("k", body=body))
        assert store.dossiers() == []

    def test_an_entry_named_twice_is_named_once(self, store: Store) -> None:
        add(store, make_record("a"))
        put(store, make_dossier("k", names=("a", "a")))
        assert store.dossiers()[0].names == ("a",)

    def test_one_that_names_an_entry_that_is_gone_is_not_kept(self, store: Store) -> None:
        add(store, make_record("a"))
        add(store, make_record("foreign", shelf=OTHER_TENANT))
        put(store, make_dossier("k", body={"n": 1}))
        for names in (("a", "gone"), ("foreign",)):
            assert not put(store, make_dossier("k", body={"n": 2}, names=names))
        assert store.dossiers()[0].body == {"n": 1}

    def test_listing(self, store: Store) -> None:
        put(store, make_dossier("a", state="open"))
        put(store, make_dossier("b", kind="run", state="done"))
        put(store, make_dossier("c", shelf=OTHER_SHELF, state="done"))
        put(store, make_dossier("d", shelf=OTHER_TENANT, state="open"))
        assert keys(store.dossiers()) == ["d", "c", "b", "a"]
        assert keys(store.dossiers(limit=2)) == ["d", "c"]
        assert keys(store.dossiers(tenant="acme")) == ["c", "b", "a"]
        assert keys(store.dossiers(shelf=SHELF)) == ["b", "a"]
        assert keys(store.dossiers(states=["open", "shut"])) == ["d", "a"]
        assert keys(store.dossiers(kinds=["task"], tenant="acme", states=["done"])) == ["c"]
        assert (
            store.dossiers(states=[]) == store.dossiers(kinds=[]) == store.dossiers(tenant="rival", shelf=SHELF) == []
        )

    def test_one_is_dropped(self, store: Store) -> None:
        put(store, make_dossier("k"))
        put(store, make_dossier("k", shelf=OTHER_SHELF))
        with store.transact() as tx:
            assert tx.drop_dossier(SHELF, "task", "k")
            assert not tx.drop_dossier(SHELF, "task", "k")
        assert [dossier.shelf for dossier in store.dossiers()] == [OTHER_SHELF]

    def test_a_transaction_that_fails_leaves_them_as_they_were(self, store: Store) -> None:
        put(store, make_dossier("k", state="begun"))
        with pytest.raises(StoreError), store.transact() as tx:
            put_all(tx, make_dossier("k", state="ended"), make_dossier("l"), make_dossier("m", body={"x": object()}))
        assert [(dossier.key, dossier.state) for dossier in store.dossiers()] == [("k", "begun")]

    # -- forgetting ------------------------------------------------------------------------------------------------

    def test_an_entry_that_goes_takes_those_that_name_it_along(self, store: Store) -> None:
        add(store, make_record("a"))
        add(store, make_record("b"))
        for key, names in (("both", ("a", "b")), ("one", ("a",)), ("other", ("b",)), ("none", ())):
            put(store, make_dossier(key, names=names))
        put(store, make_dossier("afar", shelf=OTHER_SHELF, names=("a",)))
        with store.transact() as tx:
            assert tx.remove(SHELF, Selection(ids=["a"])).dossiers == 3
        assert keys(store.dossiers()) == ["none", "other"]
        assert not list(store.check())

    def test_a_shelf_that_goes_takes_its_dossiers_along(self, store: Store) -> None:
        add(store, make_record("a"))
        talk(store, "monday")
        put(store, make_dossier("a", session="monday"))
        put(store, make_dossier("b", names=("a",)))
        put(store, make_dossier("c"))
        put(store, make_dossier("afar", shelf=OTHER_SHELF, names=("a",)))
        put(store, make_dossier("d", shelf=OTHER_SHELF))
        with store.transact() as tx:
            assert tx.drop_shelf(SHELF).dossiers == 4
        assert keys(store.dossiers()) == ["d"]
        assert not list(store.check())

    def test_a_session_that_goes_takes_its_dossiers_along(self, store: Store) -> None:
        talk(store, "monday")
        talk(store, "tuesday")
        talk(store, "monday", shelf=OTHER_SHELF)
        put(store, make_dossier("a", session="monday"))
        put(store, make_dossier("b", session="tuesday"))
        put(store, make_dossier("c", session="monday", shelf=OTHER_SHELF))
        with store.transact() as tx:
            assert tx.remove_turns(SHELF, session_id="monday") == Removed(turns=1, sessions=1, dossiers=1)
        assert keys(store.dossiers()) == ["c", "b"]

    def test_dossiers_last(self, store: Store) -> None:
        if not self.durable:
            pytest.skip("this store does not outlive its process")
        add(store, make_record("a"))
        put(store, make_dossier("k", names=("a",), body={"n": 1}))
        kept = store.dossiers()
        again = self.reopen(store)
        try:
            assert again.dossiers() == kept
        finally:
            again.close()


def put(store: Store, dossier: Dossier) -> bool:
    with store.transact() as tx:
        return tx.put_dossier(dossier)


def put_all(tx: Tx, *dossiers: Dossier) -> None:
    for dossier in dossiers:
        tx.put_dossier(dossier)


def talk(store: Store, session_id: str, *, shelf: Shelf = SHELF) -> None:
    with store.transact() as tx:
        tx.open_session(shelf, session_id, minutes_later(0))
        tx.add_turn(shelf, make_turn(0, session_id=session_id))


def keys(dossiers: list[Dossier]) -> list[str]:
    return [dossier.key for dossier in dossiers]
