"""What all parts of the store contract share: the store under test, and short ways to fill it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from wellworn.core.values import Entry, Partition
from wellworn.store.port import Delta, IndexRecord, Model, NewEntry, Selection, Slim, Store
from wellworn.testing.builders import MODEL, make_partition

PARTITION = make_partition()
OTHER_PARTITION = make_partition("bob")
OTHER_TENANT = make_partition(tenant="rival")
EVERYTHING = Selection()


class StoreCase:
    """Supplied by the backend: `make_store`, and `reopen` where data outlives the object (`durable`)."""

    durable: bool = False

    def make_store(self) -> Store:
        """A new, empty store."""
        raise NotImplementedError

    def reopen(self, store: Store) -> Store:
        """The same data in a new object; the old one is closed."""
        raise NotImplementedError

    @pytest.fixture
    def store(self) -> Iterator[Store]:
        """An empty store, closed afterwards."""
        made = self.make_store()
        yield made
        made.close()

    @pytest.fixture
    def embedding(self, store: Store) -> Store:
        """The store with `MODEL` as its model."""
        use(store, MODEL)
        return store


def add(store: Store, *records: NewEntry) -> None:
    """All in one transaction."""
    with store.transact() as tx:
        for record in records:
            tx.add(record)


def use(store: Store, model: Model) -> None:
    with store.transact() as tx:
        tx.use_model(model)


def update(store: Store, entry: Entry, *, change: str | None = None, index: IndexRecord | None = None) -> None:
    """In a transaction of its own."""
    with store.transact() as tx:
        tx.update(entry, change=change, index=index)


def remove(store: Store, *ids: str, partition: Partition = PARTITION) -> None:
    with store.transact() as tx:
        tx.remove(partition, Selection(ids=ids))


def ids_on(store: Store, *partitions: Partition) -> list[str]:
    """In row order."""
    return [entry.id for _, entry in store.select(partitions, EVERYTHING, limit=10_000)]


def number_of(store: Store, entry_id: str, partition: Partition = PARTITION) -> int:
    """The row number of an entry."""
    return store.select([partition], Selection(ids=[entry_id]))[0][0]


def numbers_of(store: Store, ids: Sequence[str], partition: Partition = PARTITION) -> list[int]:
    return [number_of(store, entry_id, partition) for entry_id in ids]


def seq_of(store: Store, partition: Partition = PARTITION) -> int:
    """How far the partition has come; 0 where there is none."""
    (head,) = store.heads([partition])
    return head.seq if head else 0


def changes_since(store: Store, since: int, partition: Partition = PARTITION) -> Delta:
    (head,) = store.heads([partition])
    assert head is not None
    return store.delta(head.partition_no, since)


def pages_since(store: Store, since: int, limit: int, partition: Partition = PARTITION) -> list[Delta]:
    """The same page by page, each after the last row of the one before; the empty one that ends them is left out."""
    (head,) = store.heads([partition])
    assert head is not None
    pages: list[Delta] = []
    after = 0
    while (page := store.delta(head.partition_no, since, after=after, limit=limit)).rows:
        assert after < page.rows[-1].no, "a page must get on, or there is no end to them"
        pages.append(page)
        after = page.rows[-1].no
    return pages


def row_of(store: Store, entry_id: str, partition: Partition = PARTITION) -> Slim:
    """The entry as an index in memory would see it."""
    no = number_of(store, entry_id, partition)
    (row,) = [row for row in changes_since(store, 0, partition).rows if row.no == no]
    return row
