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
        self._length = starts[-1]
        self.starts = np.array(starts)
        filled = [(shelf, start) for shelf, start in zip(self.shelves, starts, strict=False) if len(shelf)]
        self.filled = filled or [(shelf, 0) for shelf in self.shelves[:1]]
        """The shelves that have rows, each with its first; one at least where there is any."""
        self._only = self.filled[0][0] if len(self.filled) == 1 else None
        self._side_by_side: dict[str, npt.NDArray[np.generic]] = {}
        dead = [row + start for shelf, start in filled for row in shelf.dead]
        self.dead = np.array(dead, dtype=np.intp)

    def __len__(self) -> int:
        return self._length

    @property
    def size(self) -> int:
        """Rows that are there."""
        return len(self) - len(self.dead)

    @property
    def threaded(self) -> bool:
        """Whether any row has a neighbour."""
        return any(shelf.threaded for shelf, _ in self.filled)

    @property
    def in_threads(self) -> bool:
        """Whether any row is of a thread."""
        return any(shelf.in_threads for shelf, _ in self.filled)

    def column(self, name: str, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.generic]:
        """Values of a column for some rows."""
        if self._only is not None:
            values: npt.NDArray[np.generic] = getattr(self._only, name)[rows]
            return values
        whole = self._side_by_side.get(name)
        if whole is None:
            whole = self._side_by_side[name] = np.concatenate([getattr(shelf, name) for shelf, _ in self.filled])
        return whole[rows]

    def vectors(self, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.float32]:
        if self._only is not None:
            return self._only.vectors[rows]
        owner = self.owner(rows)
        found = np.empty((len(rows), self.shelves[0].vectors.shape[1]), dtype=np.float32)
        for number in set(owner.tolist()):
            here = owner == number
            found[here] = self.shelves[number].vectors[rows[here] - self.starts[number]]
        return found

    def owner(self, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """Which shelf each row is of; smaller is more specific."""
        return self.starts.searchsorted(rows, side="right") - 1

    def beside(self, name: str, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """The neighbouring row (`before` or `after`) of each row, or -1."""
        local = self.column(name, rows).astype(np.intp)
        if self._only is not None:
            return local
        return np.where(local < 0, -1, local + self.starts[self.owner(rows)])

    def rows_of(self, nos: Sequence[int]) -> list[int]:
        return [start + row for shelf, start in self.filled for row in shelf.rows_of(nos)]

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
        masks = [
            _wanted(shelf, filters, store) if filters.layers is None or layer in filters.layers
            else np.zeros(len(shelf), dtype=bool)
            for shelf, layer in zip(self.shelves, layers, strict=True) if len(shelf)
        ]  # fmt: skip
        return masks[0] if len(masks) == 1 else np.concatenate([np.zeros(0, dtype=bool), *masks])


def _live(shelf: ShelfIndex, micros: int) -> Mask:
    mask: Mask = shelf.alive & (shelf.state != PRUNED) & (shelf.valid_from <= micros) & (micros < shelf.valid_to)
    return mask


def _wanted(shelf: ShelfIndex, filters: Filters, store: Store) -> Mask:
    """Rows of a shelf that pass; found once, until the shelf changes or other times are asked for."""
    if filters.since is not None or filters.until is not None:  # hardly ever twice the same
        return _passing(shelf, filters, store)
    kinds, tags = (None if names is None else tuple(names) for names in (filters.kinds, filters.tags))
    what = ("passing", kinds, tags, filters.session_id, filters.except_session, filters.min_confidence)
    return shelf.answer(what, lambda: _passing(shelf, filters, store))


def _passing(shelf: ShelfIndex, filters: Filters, store: Store) -> Mask:
    mask = shelf.alive.copy()
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
