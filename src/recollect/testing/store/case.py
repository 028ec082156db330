"""What all parts of the store contract share: the store under test, and short ways to fill it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from recollect.stores.base import Delta, IndexRecord, Model, Record, Selection, Slim, Store
from recollect.testing.builders import MODEL, make_shelf
from recollect.types import Entry, Shelf

SHELF = make_shelf()
OTHER_SHELF = make_shelf("bob")
OTHER_TENANT = make_shelf(tenant="rival")
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


def add(store: Store, *records: Record) -> None:
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


def remove(store: Store, *ids: str, shelf: Shelf = SHELF) -> None:
    with store.transact() as tx:
        tx.remove(shelf, Selection(ids=ids))


def ids_on(store: Store, *shelves: Shelf) -> list[str]:
    """In row order."""
    return [entry.id for _, entry in store.select(shelves, EVERYTHING, limit=10_000)]


def number_of(store: Store, entry_id: str, shelf: Shelf = SHELF) -> int:
    """The row number of an entry."""
    return store.select([shelf], Selection(ids=[entry_id]))[0][0]


def numbers_of(store: Store, ids: Sequence[str], shelf: Shelf = SHELF) -> list[int]:
    return [number_of(store, entry_id, shelf) for entry_id in ids]


def seq_of(store: Store, shelf: Shelf = SHELF) -> int:
    """How far the shelf has come; 0 where there is none."""
    (head,) = store.heads([shelf])
    return head.seq if head else 0


def changes_since(store: Store, since: int, shelf: Shelf = SHELF) -> Delta:
    (head,) = store.heads([shelf])
    assert head is not None
    return store.delta(head.shelf_no, since)


def pages_since(store: Store, since: int, limit: int, shelf: Shelf = SHELF) -> list[Delta]:
    """The same page by page, each after the last row of the one before; the empty one that ends them is left out."""
    (head,) = store.heads([shelf])
    assert head is not None
    pages: list[Delta] = []
    after = 0
    while (page := store.delta(head.shelf_no, since, after=after, limit=limit)).rows:
        assert after < page.rows[-1].no, "a page must get on, or there is no end to them"
        pages.append(page)
        after = page.rows[-1].no
    return pages


def row_of(store: Store, entry_id: str, shelf: Shelf = SHELF) -> Slim:
    """The entry as an index in memory would see it."""
    no = number_of(store, entry_id, shelf)
    (row,) = [row for row in changes_since(store, 0, shelf).rows if row.no == no]
    return row
