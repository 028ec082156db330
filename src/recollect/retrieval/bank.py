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
        if len(self.shelves) == 1:
            return self.shelves[0].vectors[rows]
        owner = self.owner(rows)
        found = np.empty((len(rows), self.shelves[0].vectors.shape[1]), dtype=np.float32)
        for number in set(owner.tolist()):
            here = owner == number
            found[here] = self.shelves[number].vectors[rows[here] - self.starts[number]]
        return found

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
        given = (filters.kinds, filters.tags, filters.layers, filters.session_id, filters.except_session,
                 filters.since, filters.until, filters.min_confidence)  # fmt: skip
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
        of_kind = np.zeros(len(KINDS), dtype=bool)
        of_kind[[KINDS.index(kind) for kind in filters.kinds]] = True
        mask &= of_kind[shelf.kind]
    if filters.since is not None:
        mask &= shelf.at >= to_micros(filters.since)
    if filters.until is not None:
        mask &= shelf.at < to_micros(filters.until)
    if filters.min_confidence is not None:  # as float32 keeps it, so that 0.3 is not below 0.3
        mask &= shelf.confidence >= np.float32(filters.min_confidence)
    # What the store must be asked for, because tags and session names are not kept in memory.
    if filters.tags is not None:
        mask &= shelf.having(("tags", *filters.tags), lambda: store.tagged(shelf.shelf_no, filters.tags or ()))
    if filters.session_id is not None:
        session = filters.session_id
        mask &= shelf.having(("session", session), lambda: store.in_session(shelf.shelf_no, session))
    if filters.except_session is not None:
        left_out = filters.except_session
        mask &= ~shelf.having(("session", left_out), lambda: store.in_session(shelf.shelf_no, left_out))
    return mask
