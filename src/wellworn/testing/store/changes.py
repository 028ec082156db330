"""Changes: how they are counted, what an index in memory is told, and the states an entry leaves behind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from wellworn.core.clock import to_micros
from wellworn.core.errors import StoreError
from wellworn.store.port import Delta, Head, Replaced, Selection, Store
from wellworn.testing.builders import MODEL, make_entry, make_index, make_new_entry, make_vector, minutes_later
from wellworn.testing.store.case import (
    OTHER_PARTITION,
    OTHER_TENANT,
    PARTITION,
    StoreCase,
    add,
    changes_since,
    number_of,
    pages_since,
    remove,
    row_of,
    seq_of,
    update,
)


class ChangesContract(StoreCase):
    """Each transaction that changes a partition raises its count by one; `delta` tells what is newer than a count."""

    def test_heads_are_none_for_partitions_that_do_not_exist(self, store: Store) -> None:
        add(store, make_new_entry("a"))
        assert store.heads([OTHER_PARTITION, PARTITION, OTHER_TENANT]) == [None, Head(partition_no=1, seq=1), None]
        assert store.heads([]) == []

    def test_a_transaction_raises_the_count_of_a_partition_by_one_however_much_it_changes(self, store: Store) -> None:
        add(store, make_new_entry("a"), make_new_entry("b"), make_new_entry("c"))
        with store.transact() as tx:
            tx.update(make_entry("a", usage_count=1), change=None)
            tx.update(make_entry("a", usage_count=2), change=None)
            tx.add(make_new_entry("d"))
        remove(store, "b", "c")
        assert seq_of(store) == 3

    def test_a_transaction_leaves_the_counts_of_other_partitions_alone(self, store: Store) -> None:
        add(store, make_new_entry("a"), make_new_entry("b", partition=OTHER_PARTITION))
        update(store, make_entry("a", usage_count=1))
        assert store.heads([PARTITION, OTHER_PARTITION]) == [Head(partition_no=1, seq=2), Head(partition_no=2, seq=1)]

    def test_reading_and_empty_transactions_raise_nothing(self, store: Store) -> None:
        add(store, make_new_entry("a"))
        with store.transact() as tx:
            tx.latest(PARTITION)
            tx.get([PARTITION], ["a"])
        remove(store, "nobody")
        assert seq_of(store) == 1

    def test_delta_gives_changed_rows_in_row_order(self, store: Store) -> None:
        add(store, make_new_entry("a"), make_new_entry("b"), make_new_entry("c"))
        add(store, make_new_entry("d"))
        with store.transact() as tx:
            tx.update(make_entry("c", usage_count=1), change=None)
            tx.update(make_entry("a", usage_count=1), change=None)
        assert [(row.no, row.seq) for row in changes_since(store, 0).rows] == [(1, 3), (2, 1), (3, 3), (4, 2)]
        assert [row.no for row in changes_since(store, 1).rows] == [1, 3, 4]
        assert [row.no for row in changes_since(store, 2).rows] == [1, 3]
        assert changes_since(store, 3) == Delta(seq=3, rows=[], removed=[])

    def test_an_entry_whose_state_before_is_given_is_changed_like_any_other(self, store: Store) -> None:
        plain, told = make_entry("a", tags=["x"]), make_entry("b", tags=["x"], evidence="said")
        add(store, make_new_entry("a", tags=["x"]), make_new_entry("b", tags=["x"], evidence="said"))
        steps: list[dict[str, Any]] = [
            {"usage_count": 3, "metadata": {"one": 1}, "updated_at": minutes_later(1)},
            {"state": "superseded", "valid_to": minutes_later(2), "tags": ["y", "x"]},
            {"text": "new words", "title": "new", "content_hash": "other", "confidence": 0.25},
            {"text": "said", "tags": []},  # for one of them the evidence is the text now, for the other no longer
            {"valid_to": None},
            {},
        ]
        for number, fields in enumerate(steps):
            with store.transact() as tx:
                for before, of in ((plain, "a"), (told, "b")):
                    own = {**fields, **({"content_hash": f"other {of}"} if "content_hash" in fields else {})}
                    given = tx.get([PARTITION], [of])[of]
                    assert given == before
                    after = replace(before, **own)
                    tx.update(after, change=f"step {number}", before=given)
                    plain, told = (after, told) if of == "a" else (plain, after)
            assert store.read([1, 2]) == {1: plain, 2: told}
            assert store.tagged(1, ["x"]) == ({1, 2} if "x" in plain.tags else set())
            assert [old.change for old in store.replaced("a")] == [f"step {n}" for n in range(number + 1)]
            assert store.heads([PARTITION]) == [Head(partition_no=1, seq=number + 2)]
        assert store.replaced("b")[0].entry == make_entry("b", tags=["x"], evidence="said")
        with pytest.raises(StoreError), store.transact() as tx:
            tx.update(make_entry("nobody"), change=None, before=make_entry("nobody"))

    def test_counting_a_use_changes_the_count_and_the_time_alone(self, store: Store) -> None:
        records = [
            make_new_entry("a", tags=["x"], usage_count=2),
            make_new_entry("b", updated_at=minutes_later(9)),
            make_new_entry("c", partition=OTHER_PARTITION),
        ]
        add(store, *records)
        with store.transact() as tx:
            assert tx.alive([1, 2, 3]) == {1, 2, 3}
            tx.count_use([1, 2, 1, 3, 99], minutes_later(5))
            tx.count_use([], minutes_later(6))
        assert store.read([1, 2, 3]) == {
            1: replace(records[0].entry, usage_count=3, updated_at=minutes_later(5)),
            2: replace(records[1].entry, usage_count=1),
            3: replace(records[2].entry, usage_count=1, updated_at=minutes_later(5)),
        }
        assert [(row.no, row.seq, row.index_seq, row.usage_count) for row in changes_since(store, 1).rows] == [
            (1, 2, 1, 3),
            (2, 2, 1, 1),
        ]
        assert store.heads([PARTITION, OTHER_PARTITION]) == [Head(partition_no=1, seq=2), Head(partition_no=2, seq=2)]
        assert store.replaced("a") == []
        assert store.tagged(1, ["x"]) == {1}

    def test_delta_tells_which_rows_were_removed_after_a_count(self, store: Store) -> None:
        add(store, make_new_entry("a"), make_new_entry("b"), make_new_entry("c"))
        remove(store, "c")
        remove(store, "a")
        for since, removed in [(0, [1, 3]), (1, [1, 3]), (2, [1]), (3, [])]:
            assert sorted(changes_since(store, since).removed) == removed
        assert [row.no for row in changes_since(store, 0).rows] == [2]

    def test_a_row_changed_and_then_removed_in_one_transaction_is_only_removed(self, store: Store) -> None:
        add(store, make_new_entry("a"), make_new_entry("b"))
        with store.transact() as tx:
            tx.update(make_entry("a", usage_count=1), change="counted")
            tx.remove(PARTITION, Selection(ids=["a"]))
        delta = changes_since(store, 1)
        assert (delta.seq, delta.rows, delta.removed) == (2, [], [1])

    def test_delta_of_an_unknown_partition_is_empty(self, store: Store) -> None:
        add(store, make_new_entry("a"))
        assert store.delta(99, 0) == Delta(seq=0, rows=[], removed=[])

    def test_delta_holds_rows_of_its_partition_only(self, store: Store) -> None:
        add(
            store,
            make_new_entry("a"),
            make_new_entry("b", partition=OTHER_PARTITION),
            make_new_entry("c", partition=OTHER_TENANT),
        )
        assert [row.no for row in changes_since(store, 0, OTHER_PARTITION).rows] == [2]

    # -- page by page ----------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("since", [0, 1, 2, 3, 4])
    @pytest.mark.parametrize("limit", [1, 2, 3, 100])
    def test_pages_of_a_delta_hold_exactly_its_rows_in_row_order(
        self, embedding: Store, since: int, limit: int
    ) -> None:
        _scatter(embedding)
        whole = changes_since(embedding, since)
        pages = pages_since(embedding, since, limit)
        assert [row for page in pages for row in page.rows] == whole.rows
        assert all(len(page.rows) == limit for page in pages[:-1])
        assert all(0 < len(page.rows) <= limit for page in pages)

    @pytest.mark.parametrize("since", [0, 3])
    def test_every_page_of_a_delta_tells_the_count_and_what_was_removed(self, embedding: Store, since: int) -> None:
        _scatter(embedding)
        whole = changes_since(embedding, since)
        assert whole.removed
        for page in pages_since(embedding, since, 1):
            assert (page.seq, sorted(page.removed)) == (whole.seq, sorted(whole.removed))

    def test_a_page_begins_after_a_row_number_whether_that_row_is_there_or_not(self, embedding: Store) -> None:
        _scatter(embedding)
        partition_no = _partition_no(embedding)
        rows = [row.no for row in changes_since(embedding, 0).rows]
        assert len(rows) < rows[-1], "there are gaps between the rows"
        for after in range(rows[-1] + 2):
            later = [no for no in rows if no > after]
            for limit in (0, 1, 2, 100):
                page = embedding.delta(partition_no, 0, after=after, limit=limit)
                assert [row.no for row in page.rows] == later[:limit]
            assert [row.no for row in embedding.delta(partition_no, 0, after=after).rows] == later

    def test_a_page_beyond_the_last_row_is_empty_but_tells_the_count(self, store: Store) -> None:
        add(store, make_new_entry("a"), make_new_entry("b"))
        assert store.delta(_partition_no(store), 0, after=2, limit=5) == Delta(seq=1, rows=[], removed=[])
        assert store.delta(99, 0, after=0, limit=5) == Delta(seq=0, rows=[], removed=[])

    def test_a_change_between_two_pages_is_told_by_the_delta_since_the_first(self, store: Store) -> None:
        add(store, *(make_new_entry(f"e{i}") for i in range(6)))
        partition_no = _partition_no(store)
        first = store.delta(partition_no, 0, limit=3)
        with store.transact() as tx:
            tx.update(make_entry("e0", usage_count=1), change=None)  # behind the first page
            tx.update(make_entry("e5", usage_count=1), change=None)  # ahead of it
            tx.remove(PARTITION, Selection(ids=["e1", "e4"]))
            tx.add(make_new_entry("e6"))
        second = store.delta(partition_no, 0, after=first.rows[-1].no, limit=100)
        assert [row.no for row in second.rows] == [4, 6, 7]
        followed = {row.no: row for page in (first, second, changes_since(store, first.seq)) for row in page.rows}
        for no in changes_since(store, first.seq).removed:
            followed.pop(no, None)
        assert sorted(followed.values()) == changes_since(store, 0).rows

    # -- rows ------------------------------------------------------------------------------------------------------

    def test_a_row_carries_all_that_ranking_needs(self, embedding: Store) -> None:
        index = make_index("to be or not to be ?", speaker=-(2**63), traits=5)
        add(
            embedding,
            make_new_entry(
                "a",
                kind="episode",
                state="flagged",
                at=minutes_later(1),
                valid_from=minutes_later(2),
                valid_to=minutes_later(3),
                confidence=0.3,
                usage_count=4,
                repeats=5,
                thread=2**63 - 1,
                position=0,
                index=index,
                vector=make_vector("a"),
            ),
        )
        row = row_of(embedding, "a")
        assert (row.no, row.kind, row.state, row.confidence) == (1, "episode", "flagged", 0.3)
        assert (row.usage_count, row.repeats, row.thread, row.position) == (4, 5, 2**63 - 1, 0)
        moments = [to_micros(minutes_later(minutes)) for minutes in (1, 2, 3)]
        assert [row.at, row.valid_from, row.valid_to] == moments
        assert (row.length, row.chars, row.traits, row.speaker) == (7, 20, 5, -(2**63))
        assert np.array_equal(np.frombuffer(row.terms, dtype="<u8"), index.terms)
        assert np.array_equal(np.frombuffer(row.counts, dtype="<u2"), index.counts)
        assert row.vector is not None
        assert np.array_equal(np.frombuffer(row.vector, dtype="<f4"), make_vector("a"))

    def test_a_row_without_the_optional_things_says_so(self, store: Store) -> None:
        add(store, make_new_entry("a", text="", index=make_index("")))
        row = row_of(store, "a")
        assert (row.valid_to, row.thread, row.position, row.vector) == (None, None, None, None)
        assert (row.terms, row.counts, row.length) == (b"", b"", 0)

    def test_index_seq_follows_text_index_and_vector_but_not_numbers(self, embedding: Store) -> None:
        add(embedding, make_new_entry("a", vector=make_vector("a")))
        added = row_of(embedding, "a")
        update(embedding, make_entry("a", usage_count=1), change="counted")
        counted = row_of(embedding, "a")
        with embedding.transact() as tx:
            tx.update(make_entry("a", text="new"), change="edited", index=make_index("new"), vector=make_vector("new"))
        edited = row_of(embedding, "a")
        assert (added.index_seq, counted.index_seq, edited.index_seq) == (added.seq, added.seq, edited.seq)
        assert added.seq < counted.seq < edited.seq
        assert edited.terms == make_index("new").terms.tobytes()
        assert edited.vector == make_vector("new").tobytes()

    def test_an_update_of_numbers_keeps_index_and_vector(self, embedding: Store) -> None:
        add(embedding, make_new_entry("a", vector=make_vector("a")))
        update(embedding, make_entry("a", usage_count=1))
        row = row_of(embedding, "a")
        assert row.usage_count == 1
        assert row.terms == make_index("the text of a").terms.tobytes()
        assert row.vector == make_vector("a").tobytes()

    def test_an_update_of_the_text_without_a_vector_leaves_no_stale_vector(self, embedding: Store) -> None:
        add(embedding, make_new_entry("a", vector=make_vector("a")))
        update(embedding, make_entry("a", text="new"), index=make_index("new"))
        assert row_of(embedding, "a").vector is None
        assert [entry.id for _, entry in embedding.without_vector(MODEL, after=0, limit=9)] == ["a"]

    def test_an_entry_that_is_missing_or_elsewhere_cannot_be_updated(self, store: Store) -> None:
        add(store, make_new_entry("a"))
        for entry in (
            make_entry("nobody"),
            make_entry("a", partition=OTHER_PARTITION),
            make_entry("a", partition=OTHER_TENANT),
        ):
            with pytest.raises(StoreError):
                update(store, entry, change="moved")
        assert store.get([PARTITION], ["a"]) == {"a": make_entry("a")}
        assert store.replaced("a") == []

    # -- states left behind ----------------------------------------------------------------------------------------

    def test_a_named_change_keeps_the_entry_as_it_stood(self, store: Store) -> None:
        first = make_entry("a", tags=["x"], metadata={"n": 1})
        second = make_entry("a", text="second", updated_at=minutes_later(1))
        third = make_entry("a", text="third", updated_at=minutes_later(2))
        add(store, make_new_entry("a", tags=["x"], metadata={"n": 1}))
        update(store, second, change="edited", index=make_index("second"))
        update(store, third, change="edited again", index=make_index("third"))
        assert store.replaced("a") == [
            Replaced(entry=first, change="edited", changed_at=minutes_later(1)),
            Replaced(entry=second, change="edited again", changed_at=minutes_later(2)),
        ]
        assert store.get([PARTITION], ["a"]) == {"a": third}
        assert store.counts([PARTITION])["versions"] == 2

    def test_an_unnamed_change_keeps_nothing(self, store: Store) -> None:
        add(store, make_new_entry("a"))
        update(store, make_entry("a", usage_count=1))
        assert store.replaced("a") == []
        assert store.counts([PARTITION])["versions"] == 0

    def test_older_states_can_be_imported(self, store: Store) -> None:
        add(store, make_new_entry("a"))
        old = [
            Replaced(entry=make_entry("a", text=f"draft {i}"), change="edited", changed_at=minutes_later(i))
            for i in range(2)
        ]
        with store.transact() as tx:
            for state in old:
                tx.add_replaced(state)
        assert store.replaced("a") == old

    def test_an_older_state_needs_its_entry(self, store: Store) -> None:
        state = Replaced(entry=make_entry("a"), change="edited", changed_at=minutes_later(0))
        with pytest.raises(StoreError), store.transact() as tx:
            tx.add_replaced(state)
        assert store.replaced("a") == []

    def test_an_update_keeps_the_row_number(self, store: Store) -> None:
        add(store, make_new_entry("a"), make_new_entry("b"))
        update(store, make_entry("a", text="new"), change="edited", index=make_index("new"))
        assert number_of(store, "a") == 1


def _scatter(store: Store) -> None:
    """Rows with gaps between them, changed at different counts: some removed, some on another partition."""
    partitions = [PARTITION, OTHER_PARTITION, PARTITION]
    add(store, *(make_new_entry(f"e{i}", partition=partitions[i % 3], vector=make_vector(f"e{i}")) for i in range(12)))
    with store.transact() as tx:
        tx.update(make_entry("e9", usage_count=1), change=None)
        tx.update(make_entry("e2", usage_count=1), change=None)
    remove(store, "e0", "e5")
    with store.transact() as tx:
        tx.update(make_entry("e6", text="new"), change="edited", index=make_index("new"), vector=make_vector("new"))
        tx.add(make_new_entry("e12"))
        tx.remove(PARTITION, Selection(ids=["e11"]))


def _partition_no(store: Store) -> int:
    (head,) = store.heads([PARTITION])
    assert head is not None
    return head.partition_no
