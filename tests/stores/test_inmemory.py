"""The reference store keeps the contract it is the reference for."""

from __future__ import annotations

import threading

import pytest

from recollect.errors import StoreError
from recollect.stores.base import Store
from recollect.stores.inmemory import InMemoryStore
from recollect.testing.builders import make_record, make_shelf, make_turn
from recollect.testing.contracts import StoreContract
from recollect.testing.store.case import EVERYTHING, SHELF, add, ids_on


class TestInMemoryStore(StoreContract):
    def make_store(self) -> Store:
        return InMemoryStore()


def test_reading_inside_a_block_sees_committed_data_only() -> None:
    store = InMemoryStore()
    with store.transact() as tx:
        tx.add(make_record("a"))
        assert ids_on(store, SHELF) == []
    assert ids_on(store, SHELF) == ["a"]


def test_a_transaction_is_of_no_use_after_its_block() -> None:
    store = InMemoryStore()
    with store.transact() as tx:
        pass
    with pytest.raises(StoreError, match="has ended"):
        tx.add(make_record("a"))


def test_a_refused_write_that_is_caught_leaves_the_rest_of_the_block_standing() -> None:
    store = InMemoryStore()
    add(store, make_record("a"))
    with store.transact() as tx:
        with pytest.raises(StoreError):
            tx.add(make_record("a", shelf=make_shelf("nobody")))
        with pytest.raises(StoreError, match="open it first"):
            tx.add_turn(SHELF, make_turn(0))
        tx.add(make_record("b"))
    assert ids_on(store, SHELF) == ["a", "b"]
    assert store.shelves() == [SHELF]


def test_both_copies_of_the_tables_stay_equal() -> None:
    store = InMemoryStore()
    for step in range(4):
        with store.transact() as tx:
            tx.add(make_record(f"e{step}"))
        assert ids_on(store, SHELF) == [f"e{i}" for i in range(step + 1)]
        assert len(store.select([SHELF], EVERYTHING)) == step + 1


def test_a_store_cannot_be_closed_inside_its_own_transaction() -> None:
    store = InMemoryStore()
    with store.transact() as tx:
        tx.add(make_record("a"))
        with pytest.raises(StoreError):
            store.close()
    assert ids_on(store, SHELF) == ["a"]


def test_closing_waits_for_a_transaction_of_another_thread() -> None:
    store = InMemoryStore()
    closer = threading.Thread(target=store.close)
    with store.transact() as tx:
        closer.start()
        tx.add(make_record("a"))
        closer.join(timeout=0.05)
        assert closer.is_alive()
    closer.join(timeout=30)
    assert not closer.is_alive()
