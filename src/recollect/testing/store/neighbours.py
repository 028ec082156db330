"""What a transaction finds beside a new entry: the same content, and what it may be linked to."""

from __future__ import annotations

import numpy as np
import pytest

from recollect.errors import StoreError
from recollect.stores.base import Neighbour, Selection, Store, Tx
from recollect.testing.builders import make_entry, make_index, make_record, minutes_later
from recollect.testing.store.case import OTHER_SHELF, SHELF, StoreCase, add, remove, update
from recollect.types import STATES, Shelf

OFFERED = ("active", "flagged")


class NeighboursContract(StoreCase):
    """Superseded and pruned entries are not offered; what is, comes newest first."""

    @pytest.mark.parametrize("state", STATES)
    def test_the_same_content_is_found_while_active_or_flagged(self, store: Store, state: str) -> None:
        add(store, make_record("a", content_hash="h", state=state))
        with store.transact() as tx:
            found = tx.find_same(SHELF, "h")
        assert found == (make_entry("a", content_hash="h", state=state) if state in OFFERED else None)

    def test_the_same_content_is_sought_on_one_shelf_only(self, store: Store) -> None:
        add(store, make_record("a", content_hash="h"))
        with store.transact() as tx:
            assert tx.find_same(OTHER_SHELF, "h") is None
            assert tx.find_same(SHELF, "H") is None

    def test_the_same_content_is_found_in_the_transaction_that_added_it(self, store: Store) -> None:
        with store.transact() as tx:
            assert tx.find_same(SHELF, "h") is None
            tx.add(make_record("a", content_hash="h"))
            assert tx.find_same(SHELF, "h") == make_entry("a", content_hash="h")

    def test_content_is_found_as_it_is_now_not_as_it_was(self, store: Store) -> None:
        add(store, make_record("a", content_hash="old"))
        update(store, make_entry("a", content_hash="new"))
        with store.transact() as tx:
            assert tx.find_same(SHELF, "old") is None
            assert tx.find_same(SHELF, "new") is not None

    def test_a_shelf_holds_the_same_content_once_among_active_and_flagged_entries(self, store: Store) -> None:
        add(store, make_record("a", content_hash="h"), make_record("b"))
        add(store, make_record("c", content_hash="h", state="pruned"))
        add(store, make_record("d", content_hash="h", shelf=OTHER_SHELF))
        for change in (make_entry("b", content_hash="h"), make_entry("c", content_hash="h", state="flagged")):
            with pytest.raises(StoreError):
                update(store, change)
        with pytest.raises(StoreError):
            add(store, make_record("e", content_hash="h"))
        update(store, make_entry("a", content_hash="h", state="superseded"))
        update(store, make_entry("b", content_hash="h"))

    def test_looking_makes_no_shelf(self, store: Store) -> None:
        with store.transact() as tx:
            assert tx.find_same(SHELF, "h") is None
            assert tx.latest(SHELF) is None
            assert tx.get([SHELF], ["a"]) == {}
            assert tx.session_tail(SHELF, "s", 9) == tx.sharing_tags(SHELF, ["x"], 1, 9) == []
            assert tx.near(SHELF, (1, 2), 9) == []
        assert store.shelves() == []
        assert store.heads([SHELF]) == [None]

    def test_latest_is_the_entry_added_last_not_the_one_that_happened_last(self, store: Store) -> None:
        add(store, make_record("a", at=minutes_later(9)), make_record("b"), make_record("c", state="pruned"))
        add(store, make_record("d", shelf=OTHER_SHELF))
        update(store, make_entry("a", at=minutes_later(9), usage_count=1))
        with store.transact() as tx:
            latest = tx.latest(SHELF)
            assert latest is not None
            assert (latest.id, latest.at) == ("b", minutes_later(0))

    def test_latest_follows_every_write_of_its_transaction(self, store: Store) -> None:
        add(store, make_record("a"), make_record("z", shelf=OTHER_SHELF))
        with store.transact() as tx:
            tx.add(make_record("b", tags=["x"], at=minutes_later(1)))
            assert tx.latest(SHELF) == Neighbour(id="b", at=minutes_later(1), tags=["x"])
            tx.add(make_record("c", state="superseded"))
            assert _latest(tx) == "b"
            tx.update(make_entry("c"), change=None)
            assert _latest(tx) == "c"
            tx.update(make_entry("c", at=minutes_later(9), tags=["y"]), change=None)
            assert tx.latest(SHELF) == Neighbour(id="c", at=minutes_later(9), tags=["y"])
            tx.update(make_entry("c", state="pruned"), change="pruned")
            assert _latest(tx) == "b"
            tx.remove(SHELF, Selection(ids=["b"]))
            assert _latest(tx) == "a"
            tx.add(make_record("d"))
            assert _latest(tx) == "d"
            tx.drop_shelf(SHELF)
            assert tx.latest(SHELF) is None
            assert _latest(tx, OTHER_SHELF) == "z"
            tx.add(make_record("e"))
            assert _latest(tx) == "e"

    def test_the_tail_of_a_session_is_newest_first_and_limited(self, store: Store) -> None:
        add(store, *(make_record(f"e{i}", session_id="s", state=STATES[i % 2]) for i in range(8)))
        add(store, make_record("x", session_id="t"), make_record("y", session_id="s", shelf=OTHER_SHELF))
        with store.transact() as tx:
            assert [found.id for found in tx.session_tail(SHELF, "s", 3)] == ["e6", "e4", "e2"]
            assert tx.session_tail(SHELF, "unknown", 3) == []

    def test_sharing_tags_counts_each_tag_once(self, store: Store) -> None:
        add(
            store,
            make_record("two", tags=["x", "y", "z"]),
            make_record("one", tags=["x"]),
            make_record("gone", tags=["x", "y"], state="superseded"),
            make_record("both", tags=["y", "x"]),
            make_record("elsewhere", tags=["x", "y"], shelf=OTHER_SHELF),
        )
        with store.transact() as tx:
            found = tx.sharing_tags(SHELF, ["x", "y", "x", "w"], 2, 10)
            assert [(one.id, sorted(one.tags)) for one in found] == [("both", ["x", "y"]), ("two", ["x", "y", "z"])]
            assert [one.id for one in tx.sharing_tags(SHELF, ["x", "y", "w"], 1, 2)] == ["both", "one"]
            assert tx.sharing_tags(SHELF, [], 1, 10) == []

    def test_near_finds_entries_that_share_a_sketch(self, store: Store) -> None:
        low, high = -(2**63), 2**63 - 1
        add(
            store,
            make_record("first", index=make_index("one", near=(low, 2))),
            make_record("second", index=make_index("two two", near=(1, high))),
            make_record("both", index=make_index("three", near=(low, high))),
            make_record("neither", index=make_index("four", near=(3, 4))),
            make_record("pruned", index=make_index("five", near=(low, high)), state="pruned"),
            make_record("elsewhere", index=make_index("six", near=(low, high)), shelf=OTHER_SHELF),
        )
        with store.transact() as tx:
            found = tx.near(SHELF, (low, high), 10)
            assert [one.id for one in found] == ["both", "second", "first"]
            assert [one.id for one in tx.near(SHELF, (low, high), 1)] == ["both"]
        index = found[1].index
        assert index is not None
        assert (index.near, index.length) == ((1, high), 2)
        assert np.array_equal(index.terms, make_index("two two").terms)
        assert index.counts.tolist() == [2]

    def test_a_sketch_of_zero_stands_for_none(self, store: Store) -> None:
        add(store, make_record("a", index=make_index("a", near=(0, 0))), make_record("b"))
        with store.transact() as tx:
            assert tx.near(SHELF, (0, 0), 10) == []

    def test_near_compares_sketches_at_the_same_place_only(self, store: Store) -> None:
        add(
            store,
            make_record("swapped", index=make_index("one", near=(2, 1))),
            make_record("first none", index=make_index("two", near=(0, 2))),
            make_record("second none", index=make_index("three", near=(1, 0))),
        )
        with store.transact() as tx:
            assert [found.id for found in tx.near(SHELF, (1, 2), 10)] == ["second none", "first none"]
            assert [found.id for found in tx.near(SHELF, (0, 2), 10)] == ["first none"]
            assert [found.id for found in tx.near(SHELF, (1, 0), 10)] == ["second none"]

    def test_a_short_text_whose_sketches_are_one_and_the_same_is_found_once(self, store: Store) -> None:
        add(
            store,
            make_record("early", index=make_index("thanks a lot", near=(7, 7))),
            make_record("another", index=make_index("thanks anyway", near=(8, 8))),
            make_record("half", index=make_index("thanks a lot for all of that", near=(9, 7))),
            make_record("late", index=make_index("a lot thanks", near=(7, 7))),
            make_record("one word", index=make_index("thanks", near=(0, 0))),
        )
        with store.transact() as tx:
            assert [found.id for found in tx.near(SHELF, (7, 7), 10)] == ["late", "half", "early"]
            assert [found.id for found in tx.near(SHELF, (7, 7), 2)] == ["late", "half"]
            assert [found.id for found in tx.near(SHELF, (8, 8), 10)] == ["another"]

    def test_near_gives_the_newest_of_very_many_alike(self, store: Store) -> None:
        alike = make_index("thanks a lot", near=(7, 7))
        add(store, *(make_record(f"e{i}", index=alike) for i in range(500)))
        with store.transact() as tx:
            tx.add(make_record("new", index=alike))
            assert [found.id for found in tx.near(SHELF, (7, 7), 3)] == ["new", "e499", "e498"]
            assert len(tx.near(SHELF, (7, 7), 1000)) == 501

    def test_near_looks_behind_those_that_are_not_offered(self, store: Store) -> None:
        alike = make_index("thanks a lot", near=(7, 8))
        add(store, make_record("first", index=alike), make_record("flagged", index=alike, state="flagged"))
        for state in ("superseded", "pruned"):
            add(store, *(make_record(f"{state} {i}", index=alike, state=state) for i in range(20)))
        with store.transact() as tx:
            assert [found.id for found in tx.near(SHELF, (7, 8), 2)] == ["flagged", "first"]
            assert [found.id for found in tx.near(SHELF, (7, 1), 1)] == ["flagged"]

    def test_near_follows_a_new_index_record(self, store: Store) -> None:
        add(store, make_record("a", index=make_index("old", near=(1, 2))))
        update(store, make_entry("a", text="new"), index=make_index("new", near=(3, 4)))
        with store.transact() as tx:
            assert tx.near(SHELF, (1, 2), 10) == []
            assert [found.id for found in tx.near(SHELF, (3, 9), 10)] == ["a"]

    def test_what_was_removed_is_not_offered(self, store: Store) -> None:
        add(store, make_record("a", tags=["x"], session_id="s", content_hash="h", index=make_index("a", near=(1, 2))))
        remove(store, "a")
        with store.transact() as tx:
            assert tx.latest(SHELF) is None
            assert tx.find_same(SHELF, "h") is None
            assert tx.session_tail(SHELF, "s", 9) == tx.sharing_tags(SHELF, ["x"], 1, 9) == []
            assert tx.near(SHELF, (1, 2), 9) == []


def _latest(tx: Tx, shelf: Shelf = SHELF) -> str:
    found = tx.latest(shelf)
    assert found is not None
    return found.id
