"""Everything a scope sees, as one run of rows: the shelves' indexes side by side.

Row numbers here are places in that run. Knows which rows are eligible; knows nothing about scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from recollect.clock import to_micros
from recollect.retrieval.filters import Filters
from recollect.retrieval.shelf import PRUNED, ShelfIndex
from recollect.stores.base import Store
from recollect.types import KINDS

Mask = npt.NDArray[np.bool_]


class Bank:
    """Shelf indexes in order of specificity. `starts[i]` is the first row of shelf i."""

    def __init__(self, shelves: Sequence[ShelfIndex]) -> None:
        self.shelves = list(shelves)
        starts = [0, *accumulate(len(shelf) for shelf in self.shelves)]
        self.starts = np.array(starts)
        dead = [row + start for shelf, start in zip(self.shelves, starts, strict=False) for row in shelf.dead]
        self.dead = np.array(dead, dtype=np.intp)

    def __len__(self) -> int:
        return int(self.starts[-1])

    @property
    def size(self) -> int:
        """Rows that are there."""
        return len(self) - len(self.dead)

    def column(self, name: str, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.generic]:
        """Values of a column for some rows."""
        if len(self.shelves) == 1:
            values: npt.NDArray[np.generic] = getattr(self.shelves[0], name)[rows]
            return values
        return np.concatenate([getattr(shelf, name) for shelf in self.shelves])[rows]

    def vectors(self, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.float32]:
        owner = self.owner(rows)
        return np.stack([self.shelves[o].vectors[row - self.starts[o]] for o, row in zip(owner, rows, strict=True)])

    def owner(self, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """Which shelf each row is of; smaller is more specific."""
        return np.searchsorted(self.starts, rows, side="right") - 1

    def beside(self, name: str, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """The neighbouring row (`before` or `after`) of each row, or -1."""
        local = self.column(name, rows).astype(np.intp)
        if len(self.shelves) == 1:
            return local
        return np.where(local < 0, -1, local + self.starts[self.owner(rows)])

    def rows_of(self, nos: Sequence[int]) -> list[int]:
        return [
            int(start) + row
            for shelf, start in zip(self.shelves, self.starts, strict=False)
            for row in shelf.rows_of(nos)
        ]

    def live(self, moment: datetime) -> Mask | None:
        """Rows valid at a moment; None when that is all that are not dead."""
        micros = to_micros(moment)
        if all(shelf.all_valid_at(micros) for shelf in self.shelves):
            return None
        return np.concatenate([_live(shelf, micros) for shelf in self.shelves])

    def wanted(self, filters: Filters, store: Store, layers: Sequence[str]) -> Mask | None:
        """Rows that pass the filters; None when there is no filter."""
        given = (filters.kinds, filters.tags, filters.layers, filters.session_id, filters.since, filters.until,
                 filters.min_confidence)  # fmt: skip
        if not self.shelves or all(one is None for one in given):
            return None
        return np.concatenate([
            shelf.alive & _wanted(shelf, filters, store) & (filters.layers is None or layer in filters.layers)
            for shelf, layer in zip(self.shelves, layers, strict=True)
        ])  # fmt: skip


def _live(shelf: ShelfIndex, micros: int) -> Mask:
    mask: Mask = shelf.alive & (shelf.state != PRUNED) & (shelf.valid_from <= micros) & (micros < shelf.valid_to)
    return mask


def _wanted(shelf: ShelfIndex, filters: Filters, store: Store) -> Mask:
    mask = np.ones(len(shelf), dtype=bool)
    if filters.kinds is not None:
        mask &= np.isin(shelf.kind, [KINDS.index(kind) for kind in filters.kinds])
    if filters.since is not None:
        mask &= shelf.at >= to_micros(filters.since)
    if filters.until is not None:
        mask &= shelf.at < to_micros(filters.until)
    if filters.min_confidence is not None:  # as float32 keeps it, so that 0.3 is not below 0.3
        mask &= shelf.confidence >= np.float32(filters.min_confidence)
    for nos in _named_rows(shelf, filters, store):
        having = np.zeros(len(shelf), dtype=bool)
        having[shelf.rows_of(nos)] = True
        mask &= having
    return mask


def _named_rows(shelf: ShelfIndex, filters: Filters, store: Store) -> list[set[int]]:
    """What the store must be asked for, because tags and session names are not kept in memory."""
    found = []
    if filters.tags is not None:
        found.append(store.tagged(shelf.shelf_no, filters.tags))
    if filters.session_id is not None:
        found.append(store.in_session(shelf.shelf_no, filters.session_id))
    return found
