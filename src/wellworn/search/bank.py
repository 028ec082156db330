"""Everything a scope sees, as one run of rows: the partitions' indexes side by side.

Row numbers here are places in that run. Knows which rows are eligible; knows nothing about scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from wellworn.core.clock import to_micros
from wellworn.core.values import KINDS
from wellworn.search.filters import Filters
from wellworn.search.partition import PRUNED, PartitionIndex
from wellworn.store.port import Store

Mask = npt.NDArray[np.bool_]


class Bank:
    """Partition indexes in order of specificity. `starts[i]` is the first row of partition i."""

    def __init__(self, partitions: Sequence[PartitionIndex]) -> None:
        self.partitions = list(partitions)
        starts = [0, *accumulate(len(partition) for partition in self.partitions)]
        self._length = starts[-1]
        self.starts = np.array(starts)
        filled = [
            (partition, start) for partition, start in zip(self.partitions, starts, strict=False) if len(partition)
        ]
        self.filled = filled or [(partition, 0) for partition in self.partitions[:1]]
        """The partitions that have rows, each with its first; one at least where there is any."""
        self._only = self.filled[0][0] if len(self.filled) == 1 else None
        self._side_by_side: dict[str, npt.NDArray[np.generic]] = {}
        dead = [row + start for partition, start in filled for row in partition.dead]
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
        return any(partition.threaded for partition, _ in self.filled)

    @property
    def in_threads(self) -> bool:
        """Whether any row is of a thread."""
        return any(partition.in_threads for partition, _ in self.filled)

    def column(self, name: str, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.generic]:
        """Values of a column for some rows."""
        if self._only is not None:
            values: npt.NDArray[np.generic] = getattr(self._only, name)[rows]
            return values
        whole = self._side_by_side.get(name)
        if whole is None:
            whole = self._side_by_side[name] = np.concatenate(
                [getattr(partition, name) for partition, _ in self.filled]
            )
        return whole[rows]

    def vectors(self, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.float32]:
        if self._only is not None:
            return self._only.vectors[rows]
        owner = self.owner(rows)
        found = np.empty((len(rows), self.partitions[0].vectors.shape[1]), dtype=np.float32)
        for number in set(owner.tolist()):
            here = owner == number
            found[here] = self.partitions[number].vectors[rows[here] - self.starts[number]]
        return found

    def owner(self, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """Which partition each row is of; smaller is more specific."""
        return self.starts.searchsorted(rows, side="right") - 1

    def beside(self, name: str, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """The neighbouring row (`before` or `after`) of each row, or -1."""
        local = self.column(name, rows).astype(np.intp)
        if self._only is not None:
            return local
        return np.where(local < 0, -1, local + self.starts[self.owner(rows)])

    def rows_of(self, nos: Sequence[int]) -> list[int]:
        return [start + row for partition, start in self.filled for row in partition.rows_of(nos)]

    def live(self, moment: datetime) -> Mask | None:
        """Rows valid at a moment; None when that is all that are not dead."""
        micros = to_micros(moment)
        if all(partition.all_valid_at(micros) for partition in self.partitions):
            return None
        return np.concatenate([_live(partition, micros) for partition in self.partitions])

    def wanted(self, filters: Filters, store: Store, layers: Sequence[str]) -> Mask | None:
        """Rows that pass the filters; None when there is no filter."""
        given = (
            filters.kinds,
            filters.tags,
            filters.layers,
            filters.session_id,
            filters.except_session,
            filters.since,
            filters.until,
            filters.min_confidence,
        )
        if not self.partitions or all(one is None for one in given):
            return None
        masks = [
            _wanted(partition, filters, store)
            if filters.layers is None or layer in filters.layers
            else np.zeros(len(partition), dtype=bool)
            for partition, layer in zip(self.partitions, layers, strict=True)
            if len(partition)
        ]
        return masks[0] if len(masks) == 1 else np.concatenate([np.zeros(0, dtype=bool), *masks])


def _live(partition: PartitionIndex, micros: int) -> Mask:
    mask: Mask = (
        partition.alive & (partition.state != PRUNED) & (partition.valid_from <= micros) & (micros < partition.valid_to)
    )
    return mask


def _wanted(partition: PartitionIndex, filters: Filters, store: Store) -> Mask:
    """Rows of a partition that pass; found once, until the partition changes or other times are asked for."""
    if filters.since is not None or filters.until is not None:  # hardly ever twice the same
        return _passing(partition, filters, store)
    kinds, tags = (None if names is None else tuple(names) for names in (filters.kinds, filters.tags))
    what = ("passing", kinds, tags, filters.session_id, filters.except_session, filters.min_confidence)
    return partition.answer(what, lambda: _passing(partition, filters, store))


def _passing(partition: PartitionIndex, filters: Filters, store: Store) -> Mask:
    mask = partition.alive.copy()
    if filters.kinds is not None:
        of_kind = np.zeros(len(KINDS), dtype=bool)
        of_kind[[KINDS.index(kind) for kind in filters.kinds]] = True
        mask &= of_kind[partition.kind]
    if filters.since is not None:
        mask &= partition.at >= to_micros(filters.since)
    if filters.until is not None:
        mask &= partition.at < to_micros(filters.until)
    if filters.min_confidence is not None:  # as float32 keeps it, so that 0.3 is not below 0.3
        mask &= partition.confidence >= np.float32(filters.min_confidence)
    # What the store must be asked for, because tags and session names are not kept in memory.
    if filters.tags is not None:
        mask &= partition.having(
            ("tags", *filters.tags), lambda: store.tagged(partition.partition_no, filters.tags or ())
        )
    if filters.session_id is not None:
        session = filters.session_id
        mask &= partition.having(("session", session), lambda: store.in_session(partition.partition_no, session))
    if filters.except_session is not None:
        left_out = filters.except_session
        mask &= ~partition.having(("session", left_out), lambda: store.in_session(partition.partition_no, left_out))
    return mask
