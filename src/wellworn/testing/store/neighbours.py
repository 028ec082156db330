"""What a transaction finds beside a new entry: the same content, and what it may be linked to."""

from __future__ import annotations

import numpy as np
import pytest

from wellworn.core.errors import StoreError
from wellworn.core.values import STATES, Partition
from wellworn.store.port import Neighbour, Selection, Store, Tx
from wellworn.testing.builders import make_entry, make_index, make_new_entry, minutes_later
from wellworn.testing.store.case import OTHER_PARTITION, PARTITION, StoreCase, add, remove, update

OFFERED = ("active", "flagged")


class NeighboursContract(StoreCase):
    """Superseded and pruned entries are not offered; what is, comes newest first."""

    @pytest.mark.parametrize("state", STATES)
    def test_the_same_content_is_found_while_active_or_flagged(self, store: Store, state: str) -> None:
        add(store, make_new_entry("a", content_hash="h", state=state))
        with store.transact() as tx:
            found = tx.find_same(PARTITION, "h")
        assert found == (make_entry("a", content_hash="h", state=state) if state in OFFERED else None)

    def test_the_same_content_is_sought_on_one_partition_only(self, store: Store) -> None:
        add(store, make_new_entry("a", content_hash="h"))
        with store.transact() as tx:
            assert tx.find_same(OTHER_PARTITION, "h") is None
            assert tx.find_same(PARTITION, "H") is None

    def test_the_same_content_is_found_in_the_transaction_that_added_it(self, store: Store) -> None:
        with store.transact() as tx:
            assert tx.find_same(PARTITION, "h") is None
            tx.add(make_new_entry("a", content_hash="h"))
            assert tx.find_same(PARTITION, "h") == make_entry("a", content_hash="h")

    def test_content_is_found_as_it_is_now_not_as_it_was(self, store: Store) -> None:
        add(store, make_new_entry("a", content_hash="old"))
        update(store, make_entry("a", content_hash="new"))
        with store.transact() as tx:
            assert tx.find_same(PARTITION, "old") is None
            assert tx.find_same(PARTITION, "new") is not None

    def test_a_partition_holds_the_same_content_once_among_active_and_flagged_entries(self, store: Store) -> None:
        add(store, make_new_entry("a", content_hash="h"), make_new_entry("b"))
        add(store, make_new_entry("c", content_hash="h", state="pruned"))
        add(store, make_new_entry("d", content_hash="h", partition=OTHER_PARTITION))
        for change in (make_entry("b", content_hash="h"), make_entry("c", content_hash="h", state="flagged")):
            with pytest.raises(StoreError):
                update(store, change)
        with pytest.raises(StoreError):
            add(store, make_new_entry("e", content_hash="h"))
        update(store, make_entry("a", content_hash="h", state="superseded"))
        update(store, make_entry("b", content_hash="h"))

    def test_looking_makes_no_partition(self, store: Store) -> None:
        with store.transact() as tx:
            assert tx.find_same(PARTITION, "h") is None
            assert tx.latest(PARTITION) is None
            assert tx.get([PARTITION], ["a"]) == {}
            assert tx.session_tail(PARTITION, "s", 9) == tx.sharing_tags(PARTITION, ["x"], 1, 9) == []
            assert tx.near(PARTITION, (1, 2), 9) == []
        assert store.partitions() == []
        assert store.heads([PARTITION]) == [None]

    def test_latest_is_the_entry_added_last_not_the_one_that_happened_last(self, store: Store) -> None:
        add(store, make_new_entry("a", at=minutes_later(9)), make_new_entry("b"), make_new_entry("c", state="pruned"))
        add(store, make_new_entry("d", partition=OTHER_PARTITION))
        update(store, make_entry("a", at=minutes_later(9), usage_count=1))
        with store.transact() as tx:
            latest = tx.latest(PARTITION)
            assert latest is not None
            assert (latest.id, latest.at) == ("b", minutes_later(0))

    def test_latest_follows_every_write_of_its_transaction(self, store: Store) -> None:
        add(store, make_new_entry("a"), make_new_entry("z", partition=OTHER_PARTITION))
        with store.transact() as tx:
            tx.add(make_new_entry("b", tags=["x"], at=minutes_later(1)))
            assert tx.latest(PARTITION) == Neighbour(id="b", at=minutes_later(1), tags=["x"])
            tx.add(make_new_entry("c", state="superseded"))
            assert _latest(tx) == "b"
            tx.update(make_entry("c"), change=None)
            assert _latest(tx) == "c"
            tx.update(make_entry("c", at=minutes_later(9), tags=["y"]), change=None)
            assert tx.latest(PARTITION) == Neighbour(id="c", at=minutes_later(9), tags=["y"])
            tx.update(make_entry("c", state="pruned"), change="pruned")
            assert _latest(tx) == "b"
            tx.remove(PARTITION, Selection(ids=["b"]))
            assert _latest(tx) == "a"
            tx.add(make_new_entry("d"))
            assert _latest(tx) == "d"
            tx.drop_partition(PARTITION)
            assert tx.latest(PARTITION) is None
            assert _latest(tx, OTHER_PARTITION) == "z"
            tx.add(make_new_entry("e"))
            assert _latest(tx) == "e"

    def test_the_tail_of_a_session_is_newest_first_and_limited(self, store: Store) -> None:
        add(store, *(make_new_entry(f"e{i}", session_id="s", state=STATES[i % 2]) for i in range(8)))
        add(store, make_new_entry("x", session_id="t"), make_new_entry("y", session_id="s", partition=OTHER_PARTITION))
        with store.transact() as tx:
            assert [found.id for found in tx.session_tail(PARTITION, "s", 3)] == ["e6", "e4", "e2"]
            assert tx.session_tail(PARTITION, "unknown", 3) == []

    def test_sharing_tags_counts_each_tag_once(self, store: Store) -> None:
        add(
            store,
            make_new_entry("two", tags=["x", "y", "z"]),
            make_new_entry("one", tags=["x"]),
            make_new_entry("gone", tags=["x", "y"], state="superseded"),
            make_new_entry("both", tags=["y", "x"]),
            make_new_entry("elsewhere", tags=["x", "y"], partition=OTHER_PARTITION),
        )
        with store.transact() as tx:
            found = tx.sharing_tags(PARTITION, ["x", "y", "x", "w"], 2, 10)
            assert [(one.id, sorted(one.tags)) for one in found] == [("both", ["x", "y"]), ("two", ["x", "y", "z"])]
            assert [one.id for one in tx.sharing_tags(PARTITION, ["x", "y", "w"], 1, 2)] == ["both", "one"]
            assert tx.sharing_tags(PARTITION, [], 1, 10) == []

    def test_near_finds_entries_that_share_a_sketch(self, store: Store) -> None:
        low, high = -(2**63), 2**63 - 1
        add(
            store,
            make_new_entry("first", index=make_index("one", near=(low, 2))),
            make_new_entry("second", index=make_index("two two", near=(1, high))),
            make_new_entry("both", index=make_index("three", near=(low, high))),
            make_new_entry("neither", index=make_index("four", near=(3, 4))),
            make_new_entry("pruned", index=make_index("five", near=(low, high)), state="pruned"),
            make_new_entry("elsewhere", index=make_index("six", near=(low, high)), partition=OTHER_PARTITION),
        )
        with store.transact() as tx:
            found = tx.near(PARTITION, (low, high), 10)
            assert [one.id for one in found] == ["both", "second", "first"]
            assert [one.id for one in tx.near(PARTITION, (low, high), 1)] == ["both"]
        index = found[1].index
        assert index is not None
        assert (index.near, index.length) == ((1, high), 2)
        assert np.array_equal(index.terms, make_index("two two").terms)
        assert index.counts.tolist() == [2]

    def test_a_sketch_of_zero_stands_for_none(self, store: Store) -> None:
        add(store, make_new_entry("a", index=make_index("a", near=(0, 0))), make_new_entry("b"))
        with store.transact() as tx:
            assert tx.near(PARTITION, (0, 0), 10) == []

    def test_near_compares_sketches_at_the_same_place_only(self, store: Store) -> None:
        add(
            store,
            make_new_entry("swapped", index=make_index("one", near=(2, 1))),
            make_new_entry("first none", index=make_index("two", near=(0, 2))),
            make_new_entry("second none", index=make_index("three", near=(1, 0))),
        )
        with store.transact() as tx:
            assert [found.id for found in tx.near(PARTITION, (1, 2), 10)] == ["second none", "first none"]
            assert [found.id for found in tx.near(PARTITION, (0, 2), 10)] == ["first none"]
            assert [found.id for found in tx.near(PARTITION, (1, 0), 10)] == ["second none"]

    def test_a_short_text_whose_sketches_are_one_and_the_same_is_found_once(self, store: Store) -> None:
        add(
            store,
            make_new_entry("early", index=make_index("thanks a lot", near=(7, 7))),
            make_new_entry("another", index=make_index("thanks anyway", near=(8, 8))),
            make_new_entry("half", index=make_index("thanks a lot for all of that", near=(9, 7))),
            make_new_entry("late", index=make_index("a lot thanks", near=(7, 7))),
            make_new_entry("one word", index=make_index("thanks", near=(0, 0))),
        )
        with store.transact() as tx:
            assert [found.id for found in tx.near(PARTITION, (7, 7), 10)] == ["late", "half", "early"]
            assert [found.id for found in tx.near(PARTITION, (7, 7), 2)] == ["late", "half"]
            assert [found.id for found in tx.near(PARTITION, (8, 8), 10)] == ["another"]

    def test_near_gives_the_newest_of_very_many_alike(self, store: Store) -> None:
        alike = make_index("thanks a lot", near=(7, 7))
        add(store, *(make_new_entry(f"e{i}", index=alike) for i in range(500)))
        with store.transact() as tx:
            tx.add(make_new_entry("new", index=alike))
            assert [found.id for found in tx.near(PARTITION, (7, 7), 3)] == ["new", "e499", "e498"]
            assert len(tx.near(PARTITION, (7, 7), 1000)) == 501

    def test_near_looks_behind_those_that_are_not_offered(self, store: Store) -> None:
        alike = make_index("thanks a lot", near=(7, 8))
        add(store, make_new_entry("first", index=alike), make_new_entry("flagged", index=alike, state="flagged"))
        for state in ("superseded", "pruned"):
            add(store, *(make_new_entry(f"{state} {i}", index=alike, state=state) for i in range(20)))
        with store.transact() as tx:
            assert [found.id for found in tx.near(PARTITION, (7, 8), 2)] == ["flagged", "first"]
            assert [found.id for found in tx.near(PARTITION, (7, 1), 1)] == ["flagged"]

    def test_near_follows_a_new_index_record(self, store: Store) -> None:
        add(store, make_new_entry("a", index=make_index("old", near=(1, 2))))
        update(store, make_entry("a", text="new"), index=make_index("new", near=(3, 4)))
        with store.transact() as tx:
            assert tx.near(PARTITION, (1, 2), 10) == []
            assert [found.id for found in tx.near(PARTITION, (3, 9), 10)] == ["a"]

    def test_what_was_removed_is_not_offered(self, store: Store) -> None:
        add(
            store, make_new_entry("a", tags=["x"], session_id="s", content_hash="h", index=make_index("a", near=(1, 2)))
        )
        remove(store, "a")
        with store.transact() as tx:
            assert tx.latest(PARTITION) is None
            assert tx.find_same(PARTITION, "h") is None
            assert tx.session_tail(PARTITION, "s", 9) == tx.sharing_tags(PARTITION, ["x"], 1, 9) == []
            assert tx.near(PARTITION, (1, 2), 9) == []


def _latest(tx: Tx, partition: Partition = PARTITION) -> str:
    found = tx.latest(partition)
    assert found is not None
    return found.id
