"""A store read page by page, so that no caller ever holds it whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from recollect.stores.base import Selection, Store
from recollect.types import Entry, Shelf

PAGE = 500

Progress = Callable[[int, int], None]


def pages(store: Store, shelf: Shelf, *, size: int = PAGE) -> Iterator[list[tuple[int, Entry]]]:
    """Every entry of a shelf with its row number, in row order; entries added meanwhile come last."""
    after = 0
    while page := store.select([shelf], Selection(), after=after, limit=size):
        yield page
        after = page[-1][0]


def entry_total(store: Store, shelves: Sequence[Shelf]) -> int:
    return store.counts(shelves)["entries"] if shelves else 0


def homes(store: Store, ids: Sequence[str], *, size: int = PAGE) -> dict[str, Entry]:
    """The entries of these ids wherever in the store they live; unknown ids are left out."""
    found: dict[str, Entry] = {}
    for first in range(0, len(ids), size):
        shelf_of = store.where(ids[first : first + size])
        for shelf in dict.fromkeys(shelf_of.values()):
            found |= store.get([shelf], [entry_id for entry_id, its in shelf_of.items() if its == shelf])
    return found


def step(progress: Progress | None, part: int, parts: int) -> Progress | None:
    """The progress of one of several equal parts as progress of the whole."""
    if progress is None:
        return None
    return lambda done, total: progress(part * total + done, parts * total)
