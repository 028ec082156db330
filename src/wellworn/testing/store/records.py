"""Records: one of a partition, kind and key, replaced at will, gone with what they tell of."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from wellworn.core.errors import StoreError
from wellworn.core.values import Partition
from wellworn.store.port import Record, Removed, Selection, Store, Tx
from wellworn.testing.builders import make_new_entry, make_record, make_turn, minutes_later
from wellworn.testing.store.case import OTHER_PARTITION, OTHER_TENANT, PARTITION, StoreCase, add


class RecordsContract(StoreCase):
    """What a mechanism needs to keep books of its own work. What a state means is not the store's to say."""

    def test_a_record_comes_back_with_every_field(self, store: Store) -> None:
        add(store, make_new_entry("a"))
        add(store, make_new_entry("b", partition=OTHER_PARTITION))
        record = make_record(
            "ü/1",
            kind="task",
            state="judging",
            body={"said": ["ü", 1.5, None]},
            names=("b", "a"),
            session="monday",
            updated_at=minutes_later(3),
        )
        assert put(store, record)
        assert store.record(PARTITION, "task", "ü/1") == record
        assert store.records() == [record]
        with store.transact() as tx:
            assert tx.record(PARTITION, "task", "ü/1") == record
            assert tx.record(PARTITION, "task", "another") is None
        assert store.record(OTHER_PARTITION, "task", "ü/1") is store.record(PARTITION, "run", "ü/1") is None

    def test_a_second_takes_the_place_of_the_first(self, store: Store) -> None:
        add(store, make_new_entry("a"))
        first = make_record("k", state="begun", body={"n": 1}, names=("a",), session="monday")
        put(store, first)
        put(store, make_record("later"))
        second = replace(
            first,
            state="ended",
            body={"n": 2},
            names=(),
            session=None,
            created_at=minutes_later(5),
            updated_at=minutes_later(5),
        )
        put(store, second)
        assert store.record(PARTITION, "task", "k") == replace(second, created_at=first.created_at)
        assert keys(store.records()) == ["later", "k"]
        with store.transact() as tx:
            assert tx.remove(PARTITION, Selection(ids=["a"])).records == 0

    def test_many_bodies_at_once_are_as_one_by_one(self, store: Store) -> None:
        add(store, make_new_entry("a"))
        put(store, make_record("k", kind="one", state="begun", body={"n": 0}, names=("a",), session="monday"))
        put(store, make_record("k", kind="other", body={"n": 7}))
        at = minutes_later(5)
        with store.transact() as tx:
            tx.put_bodies(PARTITION, "one", {"k": {"n": 1}, "ü": {"n": 2}}, at)
            assert tx.bodies(PARTITION, "one", ["ü", "k", "missing"]) == {"k": {"n": 1}, "ü": {"n": 2}}
            tx.put_bodies(OTHER_PARTITION, "one", {}, at)
        assert store.bodies(PARTITION, "one", ["ü"]) == {"ü": {"n": 2}}
        assert store.bodies(OTHER_PARTITION, "one", ["k"]) == store.bodies(PARTITION, "one", []) == {}
        assert store.bodies(PARTITION, "other", ["k"]) == {"k": {"n": 7}}
        kept = store.record(PARTITION, "one", "k")
        first = make_record("k", kind="one", state="", body={"n": 1}, updated_at=at)
        assert kept == first
        assert store.record(PARTITION, "one", "ü") == replace(first, key="ü", body={"n": 2}, created_at=at)
        with store.transact() as tx:
            assert tx.remove(PARTITION, Selection(ids=["a"])).records == 0
            with pytest.raises(StoreError, match="JSON"):
                tx.put_bodies(PARTITION, "one", {"k": {"n": object()}}, at)

    def test_partitions_and_kinds_keep_theirs_apart(self, store: Store) -> None:
        put(store, make_record("k"))
        put(store, make_record("k", kind="run"))
        put(store, make_record("k", partition=OTHER_PARTITION))
        assert len(store.records()) == 3

    def test_a_record_makes_its_partition(self, store: Store) -> None:
        put(store, make_record("k", partition=OTHER_PARTITION))
        assert store.partitions() == [OTHER_PARTITION]

    def test_what_is_handed_out_cannot_change_what_is_kept(self, store: Store) -> None:
        body: dict[str, Any] = {"steps": [1]}
        put(store, make_record("k", body=body))
        body["steps"].append(2)
        store.records()[0].body["steps"].append(3)
        assert store.records()[0].body == {"steps": [1]}

    @pytest.mark.parametrize("body", [{"x": object()}, {"x": float("nan")}, ["no object"]])
    def test_a_body_that_is_no_json_object_is_refused(self, store: Store, body: Any) -> None:
        with pytest.raises(StoreError, match="JSON"):
            put(store, make_record("k", body=body))
        assert store.records() == []

    def test_an_entry_named_twice_is_named_once(self, store: Store) -> None:
        add(store, make_new_entry("a"))
        put(store, make_record("k", names=("a", "a")))
        assert store.records()[0].names == ("a",)

    def test_one_that_names_an_entry_that_is_gone_is_not_kept(self, store: Store) -> None:
        add(store, make_new_entry("a"))
        add(store, make_new_entry("foreign", partition=OTHER_TENANT))
        put(store, make_record("k", body={"n": 1}))
        for names in (("a", "gone"), ("foreign",)):
            assert not put(store, make_record("k", body={"n": 2}, names=names))
        assert store.records()[0].body == {"n": 1}

    def test_listing(self, store: Store) -> None:
        put(store, make_record("a", state="open"))
        put(store, make_record("b", kind="run", state="done"))
        put(store, make_record("c", partition=OTHER_PARTITION, state="done"))
        put(store, make_record("d", partition=OTHER_TENANT, state="open"))
        assert keys(store.records()) == ["d", "c", "b", "a"]
        assert keys(store.records(limit=2)) == ["d", "c"]
        assert keys(store.records(tenant="acme")) == ["c", "b", "a"]
        assert keys(store.records(partition=PARTITION)) == ["b", "a"]
        assert keys(store.records(states=["open", "shut"])) == ["d", "a"]
        assert keys(store.records(kinds=["task"], tenant="acme", states=["done"])) == ["c"]
        assert (
            store.records(states=[])
            == store.records(kinds=[])
            == store.records(tenant="rival", partition=PARTITION)
            == []
        )

    def test_one_is_dropped(self, store: Store) -> None:
        put(store, make_record("k"))
        put(store, make_record("k", partition=OTHER_PARTITION))
        with store.transact() as tx:
            assert tx.drop_record(PARTITION, "task", "k")
            assert not tx.drop_record(PARTITION, "task", "k")
        assert [record.partition for record in store.records()] == [OTHER_PARTITION]

    def test_a_transaction_that_fails_leaves_them_as_they_were(self, store: Store) -> None:
        put(store, make_record("k", state="begun"))
        with pytest.raises(StoreError), store.transact() as tx:
            put_all(tx, make_record("k", state="ended"), make_record("l"), make_record("m", body={"x": object()}))
        assert [(record.key, record.state) for record in store.records()] == [("k", "begun")]

    # -- forgetting ------------------------------------------------------------------------------------------------

    def test_an_entry_that_goes_takes_those_that_name_it_along(self, store: Store) -> None:
        add(store, make_new_entry("a"))
        add(store, make_new_entry("b"))
        for key, names in (("both", ("a", "b")), ("one", ("a",)), ("other", ("b",)), ("none", ())):
            put(store, make_record(key, names=names))
        put(store, make_record("afar", partition=OTHER_PARTITION, names=("a",)))
        with store.transact() as tx:
            assert tx.remove(PARTITION, Selection(ids=["a"])).records == 3
        assert keys(store.records()) == ["none", "other"]
        assert not list(store.check())

    def test_a_partition_that_goes_takes_its_records_along(self, store: Store) -> None:
        add(store, make_new_entry("a"))
        talk(store, "monday")
        put(store, make_record("a", session="monday"))
        put(store, make_record("b", names=("a",)))
        put(store, make_record("c"))
        put(store, make_record("afar", partition=OTHER_PARTITION, names=("a",)))
        put(store, make_record("d", partition=OTHER_PARTITION))
        with store.transact() as tx:
            assert tx.drop_partition(PARTITION).records == 4
        assert keys(store.records()) == ["d"]
        assert not list(store.check())

    def test_a_session_that_goes_takes_its_records_along(self, store: Store) -> None:
        talk(store, "monday")
        talk(store, "tuesday")
        talk(store, "monday", partition=OTHER_PARTITION)
        put(store, make_record("a", session="monday"))
        put(store, make_record("b", session="tuesday"))
        put(store, make_record("c", session="monday", partition=OTHER_PARTITION))
        with store.transact() as tx:
            assert tx.remove_turns(PARTITION, session_id="monday") == Removed(turns=1, sessions=1, records=1)
        assert keys(store.records()) == ["c", "b"]

    def test_records_last(self, store: Store) -> None:
        if not self.durable:
            pytest.skip("this store does not outlive its process")
        add(store, make_new_entry("a"))
        put(store, make_record("k", names=("a",), body={"n": 1}))
        kept = store.records()
        again = self.reopen(store)
        try:
            assert again.records() == kept
        finally:
            again.close()


def put(store: Store, record: Record) -> bool:
    with store.transact() as tx:
        return tx.put_record(record)


def put_all(tx: Tx, *records: Record) -> None:
    for record in records:
        tx.put_record(record)


def talk(store: Store, session_id: str, *, partition: Partition = PARTITION) -> None:
    with store.transact() as tx:
        tx.open_session(partition, session_id, minutes_later(0))
        tx.add_turn(partition, make_turn(0, session_id=session_id))


def keys(records: list[Record]) -> list[str]:
    return [record.key for record in records]
