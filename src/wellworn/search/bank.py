"""Everything a scope sees, as one run of rows: the partitions' indexes side by side.

A row is a place in that run. The bank knows which rows pass a filter and which are valid at a moment; it knows nothing
about scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from wellworn.core.clock import to_micros
from wellworn.core.values import KINDS
from wellworn.ingest.terms import Trait
from wellworn.search.filters import NO_FILTERS, Filters
from wellworn.search.partition import EPISODE, NONE, PRUNED, SUPERSEDED, PartitionIndex
from wellworn.store.port import Selection, Store

Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]
Vector = npt.NDArray[np.float32]
CHAT, PEOPLE, REST = range(3)
"""Where something was said: in a chat of one person, in a talk among people, in neither."""
_SUGGESTS = np.uint8(Trait.ASKS | Trait.ASSISTANT)
_NO_STATEMENT = np.uint8(Trait.ASKS | Trait.REACTS)


def distinct(*rows: Rows) -> Rows:
    """All of these rows, each once, in order; in a fifth of the time of `np.unique`."""
    ordered = np.sort(np.concatenate(rows))
    first = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]


def joined(parts: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """What partitions have, one after another."""
    return parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, dtype=bool), *parts])


class Bank:
    """Partition indexes in order of specificity. `starts[i]` is the first row of partition i. Every column of the indexes is an
    attribute here, too."""

    def __init__(self, partitions: Sequence[PartitionIndex]) -> None:
        self.partitions = list(partitions)
        starts = [0, *accumulate(len(partition) for partition in self.partitions)]
        self._length = starts[-1]
        self.starts = np.array(starts)
        pairs = [(one, start) for one, start in zip(self.partitions, starts, strict=False) if len(one)]
        self.filled = pairs or [(one, 0) for one in self.partitions[:1]]
        """The partitions that have rows, each with its first; one at least where there is any."""
        self._only = self.filled[0][0] if len(self.filled) == 1 else None
        self._vectors: dict[int, dict[int, Vector]] = {}
        """By partition and row, as far as they were fetched."""
        self.dead = np.array([row + start for one, start in pairs for row in one.dead], dtype=np.intp)
        self.size = self._length - len(self.dead)
        """Rows that are not dead."""
        self.threaded = any(one.threaded for one, _ in self.filled)
        """Whether any row has a neighbour."""
        self.in_threads = any(one.in_threads for one, _ in self.filled)
        """Whether any row is of a thread."""
        self.speakers = [one.speakers for one in self.partitions if one.speakers]
        self.words_held = all(one.words_held for one, _ in self.filled)
        self.inexact = any(one.signed or one.elsewhere or one.fetch for one, _ in self.filled)
        """Whether the nearest rows of a partition are found by signs, or outside."""
        self.linked = any(one.linked for one, _ in self.filled)
        """Whether links made by hand may touch any row."""
        self.all_valid_from = max((one.all_valid_from for one in self.partitions), default=0)
        self._stating: dict[bool, Mask | None] = {}
        self._talks: npt.NDArray[np.int8] | None = None

    def __len__(self) -> int:
        return self._length

    def __getattr__(self, column: str) -> npt.NDArray[Any]:
        """Called once: what it sets is found without it."""
        if column.startswith("_"):
            raise AttributeError(column)
        values = joined([getattr(one, column) for one, _ in self.filled])
        setattr(self, column, values)
        return values

    def column(self, name: str, rows: Rows | slice) -> npt.NDArray[Any]:
        """Values of a column for some rows."""
        values: npt.NDArray[Any] = getattr(self, name)[rows]
        return values

    def has_trait(self, traits: int, rows: Rows | slice) -> Mask:
        """Which of these rows have one of these traits."""
        has: Mask = (self.traits[rows] & np.uint8(traits)) != 0
        return has

    def vectors(self, rows: Rows) -> Vector:
        if self._only is not None and self._only.fetch is None:
            return self._only.vectors[rows]
        owner = self.owner(rows)
        found = np.empty((len(rows), self.partitions[0].width), dtype=np.float32)
        for number in set(owner.tolist()):
            here = owner == number
            one, local = self.partitions[number], rows[here] - self.starts[number]
            found[here] = one.vectors[local] if one.fetch is None else self._fetched(number, local)
        return found

    def _fetched(self, number: int, rows: Rows) -> Vector:
        """Vectors of a partition that does not hold them; each is fetched once."""
        known = self._vectors.setdefault(number, {})
        missing = np.array([row for row in dict.fromkeys(rows.tolist()) if row not in known], dtype=np.intp)
        if len(missing):
            known.update(zip(missing.tolist(), self.partitions[number].vectors_of(missing), strict=True))
        return np.array([known[row] for row in rows.tolist()], dtype=np.float32).reshape(len(rows), -1)

    def owner(self, rows: Rows) -> Rows:
        """Which partition each row is of; smaller is more specific."""
        return self.starts.searchsorted(rows, side="right") - 1

    def beside(self, name: str, rows: Rows) -> Rows:
        """The neighbouring row (`before` or `after`) of each row, or -1."""
        local = self.column(name, rows).astype(np.intp)
        if self._only is not None:
            return local
        return np.where(local < 0, -1, local + self.starts[self.owner(rows)])

    def rows_of(self, nos: Sequence[int]) -> list[int]:
        return [start + row for partition, start in self.filled for row in partition.rows_of(nos)]

    def named(self, rows: Rows) -> tuple[list[int], list[int]]:
        """Row numbers in the store of some rows, and the counts of their last changes."""
        if not len(rows):
            return [], []
        return self.no[rows].tolist(), self.seq[rows].tolist()

    def live(self, moment: datetime, *, outdated: bool = False) -> Mask | None:
        """Rows valid at a moment, and turns that were outdated by then; None when that is all that are not dead.

        `outdated` adds whatever was valid once.
        """
        micros = to_micros(moment)
        if micros >= self.all_valid_from:
            return None
        return np.concatenate([_live(one, micros, outdated=outdated) for one in self.partitions])

    def next_change(self, moment: datetime) -> int:
        """When a row begins or ceases to be valid after a moment, in microseconds; `NONE` when none does."""
        micros, later = to_micros(moment), NONE
        for one in self.partitions:
            if micros < one.all_valid_from:
                for ends in (one.valid_from, one.valid_to):
                    later = min(later, int(ends.min(initial=NONE, where=ends > micros)))
        return later

    def wanted(self, filters: Filters, store: Store, layers: Sequence[str]) -> Mask | None:
        """Rows that pass the filters; None when there is no filter. `layers` are those of the partitions."""
        if not self.partitions or filters is NO_FILTERS or not filters.narrow:
            return None
        masks = [
            _wanted(partition, filters, store)
            if filters.layers is None or layer in filters.layers
            else np.zeros(len(partition), dtype=bool)
            for partition, layer in zip(self.partitions, layers, strict=True)
            if len(partition)
        ]
        return joined(masks)

    def stating(self, *, asks_assistant: bool = False) -> Mask | None:
        """Rows that state something: turns that only ask or react are no hits; None when all rows do. An assistant suggests
        by asking too: "How about Rome?"."""
        if asks_assistant not in self._stating:
            key = f"stating {asks_assistant}"
            mask = joined([one.answer(key, partial(_stating, one, asks_assistant)) for one, _ in self.filled])
            self._stating[asks_assistant] = None if mask.all() else mask
        return self._stating[asks_assistant]

    def talks(self) -> npt.NDArray[np.int8]:
        """Of each row whether it is in a `CHAT` of one person, in a talk among `PEOPLE`, or in the `REST`."""
        if self._talks is None:
            self._talks = joined([one.answer("talks", partial(_talks, one)) for one, _ in self.filled])
        return self._talks

    def newest(self, moment: datetime) -> Rows:
        """Rows that begin their thread or have none and are valid at a moment, in any state; newest first.

        Of two that happened at once the one stored later comes first.
        """
        micros = to_micros(moment)
        firsts = [_valid(partition, micros) & (partition.position <= 0) for partition in self.partitions]
        rows = np.flatnonzero(np.concatenate([np.zeros(0, dtype=bool), *firsts]))
        return rows[np.lexsort((self.no[rows], self.at[rows]))[::-1]] if len(rows) else rows


def _valid(partition: PartitionIndex, micros: int) -> Mask:
    return partition.alive & (partition.valid_from <= micros) & (micros < partition.valid_to)


def _live(partition: PartitionIndex, micros: int, *, outdated: bool) -> Mask:
    was = (partition.state == SUPERSEDED) & (partition.valid_from <= micros) & partition.alive
    if not outdated:
        was &= partition.kind == EPISODE
    live: Mask = (_valid(partition, micros) | was) & (partition.state != PRUNED)
    return live


def _stating(partition: PartitionIndex, asks_assistant: bool) -> Mask:
    stating: Mask = (partition.traits & _NO_STATEMENT) == 0
    if asks_assistant:
        stating |= (partition.traits & _SUGGESTS) == _SUGGESTS
    stating &= partition.alive
    return stating


def _talks(partition: PartitionIndex) -> npt.NDArray[np.int8]:
    """`CHAT` for turns of one person, with an assistant or alone, `PEOPLE` for those of a talk among several, else `REST`."""
    told = partition.thread != NONE
    replies, turns = ((partition.traits & np.uint8(trait)) != 0 for trait in (Trait.ASSISTANT, Trait.TURN))
    pairs = np.unique(np.stack([partition.thread[told], partition.speaker[told]]), axis=1)
    threads, speakers = np.unique(pairs[0], return_counts=True)
    chats = told & np.isin(partition.thread, partition.thread[told & replies])
    found = np.where(told & turns, np.int8(CHAT), np.int8(REST))
    found[told & np.isin(partition.thread, threads[speakers > 1])] = PEOPLE
    found[chats] = CHAT
    return found


def _wanted(partition: PartitionIndex, filters: Filters, store: Store) -> Mask:
    """Rows of a partition that pass; what hangs on no time is kept until the partition changes."""
    kinds, tags = (None if names is None else tuple(names) for names in (filters.kinds, filters.tags))
    what = ("passing", kinds, tags, filters.session_id, filters.except_session, filters.min_entry_confidence)
    mask = partition.answer(what, lambda: _passing(partition, filters, store))
    if filters.since is not None:
        mask = mask & (partition.at >= to_micros(filters.since))
    if filters.until is not None:
        mask = mask & (partition.at < to_micros(filters.until))
    return mask


def _passing(partition: PartitionIndex, filters: Filters, store: Store) -> Mask:
    mask = partition.alive.copy()
    if filters.kinds is not None:
        mask &= np.isin(partition.kind, [KINDS.index(kind) for kind in filters.kinds])
    if filters.min_entry_confidence is not None:  # as float32 keeps it, so that 0.3 is not below 0.3
        mask &= partition.confidence >= np.float32(filters.min_entry_confidence)

    def having(selection: Selection) -> Mask:  # tags and session names are not in memory
        found = np.zeros(len(partition), dtype=bool)
        found[partition.rows_of(store.rows(selection, partition_no=partition.partition_no))] = True
        return found

    if filters.tags is not None:
        mask &= having(Selection(tags=filters.tags))
    if filters.session_id is not None:
        mask &= having(Selection(session_id=filters.session_id))
    if filters.except_session is not None:
        mask &= ~having(Selection(session_id=filters.except_session))
    return mask
