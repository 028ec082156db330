"""The reference store keeps the contract it is the reference for."""

from __future__ import annotations

import threading

import pytest

from wellworn.core.errors import StoreError
from wellworn.store.inmemory import InMemoryStore
from wellworn.store.port import Store
from wellworn.testing.builders import make_new_entry, make_partition, make_turn
from wellworn.testing.contracts import StoreContract
from wellworn.testing.store.case import EVERYTHING, PARTITION, add, ids_on


class TestInMemoryStore(StoreContract):
    def make_store(self) -> Store:
        return InMemoryStore()


def test_reading_inside_a_block_sees_committed_data_only() -> None:
    store = InMemoryStore()
    with store.transact() as tx:
        tx.add(make_new_entry("a"))
        assert ids_on(store, PARTITION) == []
    assert ids_on(store, PARTITION) == ["a"]


def test_a_transaction_is_of_no_use_after_its_block() -> None:
    store = InMemoryStore()
    with store.transact() as tx:
        pass
    with pytest.raises(StoreError, match="has ended"):
        tx.add(make_new_entry("a"))


def test_a_refused_write_that_is_caught_leaves_the_rest_of_the_block_standing() -> None:
    store = InMemoryStore()
    add(store, make_new_entry("a"))
    with store.transact() as tx:
        with pytest.raises(StoreError):
            tx.add(make_new_entry("a", partition=make_partition("nobody")))
        with pytest.raises(StoreError, match="open it first"):
            tx.add_turn(PARTITION, make_turn(0))
        tx.add(make_new_entry("b"))
    assert ids_on(store, PARTITION) == ["a", "b"]
    assert store.partitions() == [PARTITION]


def test_both_copies_of_the_tables_stay_equal() -> None:
    store = InMemoryStore()
    for step in range(4):
        with store.transact() as tx:
            tx.add(make_new_entry(f"e{step}"))
        assert ids_on(store, PARTITION) == [f"e{i}" for i in range(step + 1)]
        assert len(store.select([PARTITION], EVERYTHING)) == step + 1


def test_a_store_cannot_be_closed_inside_its_own_transaction() -> None:
    store = InMemoryStore()
    with store.transact() as tx:
        tx.add(make_new_entry("a"))
        with pytest.raises(StoreError):
            store.close()
    assert ids_on(store, PARTITION) == ["a"]


def test_closing_waits_for_a_transaction_of_another_thread() -> None:
    store = InMemoryStore()
    closer = threading.Thread(target=store.close)
    with store.transact() as tx:
        closer.start()
        tx.add(make_new_entry("a"))
        closer.join(timeout=0.05)
        assert closer.is_alive()
    closer.join(timeout=30)
    assert not closer.is_alive()
