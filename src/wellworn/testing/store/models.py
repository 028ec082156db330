"""Embedding models, their vectors, and text-index records."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from wellworn.core.errors import StoreError
from wellworn.store.port import Store
from wellworn.testing.builders import MODEL, OTHER_MODEL, make_entry, make_index, make_new_entry, make_vector
from wellworn.testing.store.case import (
    OTHER_PARTITION,
    PARTITION,
    StoreCase,
    add,
    changes_since,
    remove,
    row_of,
    seq_of,
    use,
)

WIDE = OTHER_MODEL.width


class ModelsContract(StoreCase):
    """One model is served; another's vectors wait apart until they are complete."""

    def test_a_new_store_has_no_model_until_one_is_used(self, store: Store) -> None:
        assert store.model() is None
        use(store, MODEL)
        assert store.model() == MODEL

    def test_a_transaction_sees_the_model_it_has_chosen_and_others_do_not(self, store: Store) -> None:
        with ThreadPoolExecutor(1) as pool, store.transact() as tx:
            assert tx.model() is None
            for model in (MODEL, OTHER_MODEL):
                tx.use_model(model)
                assert tx.model() == model
            assert pool.submit(store.model).result(timeout=30) is None
        assert store.model() == OTHER_MODEL

    def test_a_transaction_sees_the_model_of_those_before_it(self, embedding: Store) -> None:
        with embedding.transact() as tx:
            assert tx.model() == MODEL
        before = seq_of(embedding)
        use(embedding, OTHER_MODEL)
        with embedding.transact() as tx:
            assert tx.model() == OTHER_MODEL
        assert seq_of(embedding) == before

    def test_a_model_chosen_in_a_block_that_raises_is_not_chosen(self, embedding: Store) -> None:
        with pytest.raises(StoreError), embedding.transact() as tx:  # noqa: PT012
            tx.use_model(OTHER_MODEL)
            tx.add(make_new_entry("a", vector=make_vector("a")))  # as wide as the model before
        with embedding.transact() as tx:
            assert tx.model() == MODEL
        assert embedding.model() == MODEL

    def test_vectors_of_a_model_that_only_waits_do_not_make_it_the_model(self, store: Store) -> None:
        add(store, make_new_entry("a"))
        with store.transact() as tx:
            tx.put_vectors(MODEL, [(1, make_vector("a"))])
            assert tx.model() is None
        assert store.model() is None

    def test_a_vector_needs_a_model(self, store: Store) -> None:
        with pytest.raises(StoreError):
            add(store, make_new_entry("a", vector=make_vector("a")))
        add(store, make_new_entry("a"))
        with pytest.raises(StoreError), store.transact() as tx:
            tx.update(make_entry("a"), change=None, vector=make_vector("a"))
        assert store.counts([PARTITION])["vectors"] == 0

    def test_a_vector_must_have_the_width_of_its_model(self, embedding: Store) -> None:
        wide = make_vector("a", width=WIDE)
        with pytest.raises(StoreError):
            add(embedding, make_new_entry("a", vector=wide))
        add(embedding, make_new_entry("a"))
        with pytest.raises(StoreError), embedding.transact() as tx:
            tx.update(make_entry("a"), change=None, vector=wide)
        with pytest.raises(StoreError), embedding.transact() as tx:
            tx.put_vectors(MODEL, [(1, wide)])
        with pytest.raises(StoreError), embedding.transact() as tx:
            tx.put_vectors(OTHER_MODEL, [(1, make_vector("a"))])
        assert embedding.counts([PARTITION])["vectors"] == 0

    def test_entries_with_and_without_vectors_live_side_by_side(self, embedding: Store) -> None:
        add(embedding, make_new_entry("a", vector=make_vector("a")), make_new_entry("b"))
        assert embedding.counts([PARTITION])["vectors"] == 1
        assert [row.vector is None for row in changes_since(embedding, 0).rows] == [False, True]

    def test_vectors_put_for_the_served_model_count_as_changes(self, embedding: Store) -> None:
        add(embedding, make_new_entry("a"), make_new_entry("b", partition=OTHER_PARTITION))
        before, elsewhere = seq_of(embedding), seq_of(embedding, OTHER_PARTITION)
        with embedding.transact() as tx:
            assert tx.put_vectors(MODEL, [(1, make_vector("a"))]) == 1
        row = row_of(embedding, "a")
        assert (row.seq, row.index_seq, row.vector) == (before + 1, before + 1, make_vector("a").tobytes())
        assert seq_of(embedding, OTHER_PARTITION) == elsewhere

    def test_vectors_of_another_model_are_kept_apart_until_it_is_used(self, embedding: Store) -> None:
        add(embedding, make_new_entry("a", vector=make_vector("a")), make_new_entry("b"))
        before = seq_of(embedding)
        with embedding.transact() as tx:
            tx.put_vectors(OTHER_MODEL, [(1, make_vector("a", width=WIDE)), (2, make_vector("b", width=WIDE))])
        assert seq_of(embedding) == before
        assert row_of(embedding, "a").vector == make_vector("a").tobytes()
        assert embedding.counts([PARTITION])["vectors"] == 1
        use(embedding, OTHER_MODEL)
        assert row_of(embedding, "a").vector == make_vector("a", width=WIDE).tobytes()
        assert embedding.counts([PARTITION])["vectors"] == 2

    def test_using_a_model_drops_the_vectors_of_every_other(self, embedding: Store) -> None:
        add(embedding, make_new_entry("a", vector=make_vector("a")))
        use(embedding, OTHER_MODEL)
        use(embedding, MODEL)
        assert embedding.model() == MODEL
        assert row_of(embedding, "a").vector is None

    def test_using_a_model_counts_as_a_change_of_every_row_on_every_partition(self, embedding: Store) -> None:
        add(embedding, make_new_entry("a"), make_new_entry("b", partition=OTHER_PARTITION))
        add(embedding, make_new_entry("c"))
        before = {partition: seq_of(embedding, partition) for partition in (PARTITION, OTHER_PARTITION)}
        use(embedding, OTHER_MODEL)
        for partition, seq in before.items():
            delta = changes_since(embedding, seq, partition)
            assert delta.seq == seq + 1
            assert {(row.seq, row.index_seq) for row in delta.rows} == {(seq + 1, seq + 1)}
        assert len(changes_since(embedding, before[PARTITION]).rows) == 2

    def test_using_the_same_model_again_keeps_its_vectors_and_drops_waiting_ones(self, embedding: Store) -> None:
        add(embedding, make_new_entry("a", vector=make_vector("a")))
        with embedding.transact() as tx:
            tx.put_vectors(OTHER_MODEL, [(1, make_vector("a", width=WIDE))])
        use(embedding, MODEL)
        assert row_of(embedding, "a").vector == make_vector("a").tobytes()
        assert len(embedding.without_vector(OTHER_MODEL, after=0, limit=9)) == 1

    def test_rows_that_are_gone_are_skipped_when_vectors_are_put(self, embedding: Store) -> None:
        add(embedding, make_new_entry("a"), make_new_entry("b"))
        remove(embedding, "a")
        with embedding.transact() as tx:
            assert tx.put_vectors(MODEL, [(no, make_vector("x")) for no in (1, 2, 99)]) == 1
            assert tx.put_vectors(MODEL, []) == 0
        assert embedding.index_of([1, 99]) == {}

    def test_entries_without_a_vector_of_a_model_come_page_by_page(self, embedding: Store) -> None:
        add(embedding, *(make_new_entry(f"e{i}", vector=make_vector("x") if i == 1 else None) for i in range(4)))
        first = embedding.without_vector(MODEL, after=0, limit=2)
        assert [(no, entry.id) for no, entry in first] == [(1, "e0"), (3, "e2")]
        assert embedding.without_vector(MODEL, after=3, limit=2) == [(4, make_entry("e3"))]
        assert len(embedding.without_vector(OTHER_MODEL, after=0, limit=9)) == 4

    def test_entries_with_a_waiting_vector_are_not_asked_for_again(self, embedding: Store) -> None:
        add(embedding, make_new_entry("a"), make_new_entry("b"))
        with embedding.transact() as tx:
            tx.put_vectors(OTHER_MODEL, [(1, make_vector("a", width=WIDE))])
        assert [no for no, _ in embedding.without_vector(OTHER_MODEL, after=0, limit=9)] == [2]

    def test_a_waiting_vector_does_not_outlive_a_change_of_the_text(self, embedding: Store) -> None:
        add(embedding, make_new_entry("a", vector=make_vector("a")))
        with embedding.transact() as tx:
            tx.put_vectors(OTHER_MODEL, [(1, make_vector("a", width=WIDE))])
        with embedding.transact() as tx:
            tx.update(make_entry("a", text="new"), change="edited", index=make_index("new"), vector=make_vector("new"))
        assert [no for no, _ in embedding.without_vector(OTHER_MODEL, after=0, limit=9)] == [1]

    def test_index_of_gives_what_is_stored_for_a_row(self, embedding: Store) -> None:
        index = make_index("to be or not to be", near=(-5, 2**63 - 1), speaker=-7, traits=3)
        add(embedding, make_new_entry("a", index=index, vector=make_vector("a")), make_new_entry("b"))
        found = embedding.index_of([1, 2, 99])
        assert found.keys() == {1, 2}
        stored, vector = found[1]
        assert stored is not None
        assert (stored.length, stored.chars, stored.traits, stored.speaker) == (6, 18, 3, -7)
        assert stored.near == (-5, 2**63 - 1)
        assert (stored.terms.dtype, stored.counts.dtype) == (np.dtype("<u8"), np.dtype("<u2"))
        assert np.array_equal(stored.terms, index.terms)
        assert np.array_equal(stored.counts, index.counts)
        assert vector is not None
        assert vector.dtype == np.float32
        assert np.array_equal(vector, make_vector("a"))
        assert found[2][1] is None

    def test_vectors_are_those_of_the_rows_that_have_one(self, embedding: Store) -> None:
        add(embedding, make_new_entry("a", vector=make_vector("a")), make_new_entry("b"))
        with embedding.transact() as tx:
            tx.put_vectors(OTHER_MODEL, [(1, make_vector("a", width=WIDE))])  # waits, and is not served
        found = embedding.vectors([1, 2, 99])
        assert found.keys() == {1}
        assert found[1].dtype == np.float32
        assert np.array_equal(found[1], make_vector("a"))
        assert embedding.vectors([]) == {}

    def test_index_records_can_be_put_again(self, store: Store) -> None:
        add(store, make_new_entry("a"), make_new_entry("b"))
        with store.transact() as tx:
            tx.put_index([(2, make_index("rebuilt", near=(1, 2))), (99, make_index("nobody"))])
        row = row_of(store, "b")
        assert (row.seq, row.index_seq, row.terms) == (2, 2, make_index("rebuilt").terms.tobytes())
        assert row_of(store, "a").seq == 1
        with store.transact() as tx:
            assert [found.id for found in tx.near(PARTITION, (1, 2), 9)] == ["b"]
