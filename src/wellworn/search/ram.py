"""What is held in memory: partition indexes, and whole entries that were read lately.

An index is loaded on first use and brought up to date on every use; the coldest are dropped when they grow large.
Recalls share a partition's index; an update waits for them and holds new ones back.
"""

from __future__ import annotations

import copy
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from wellworn.core.cache import LruCache
from wellworn.core.dataclass import filled_each
from wellworn.core.locks import deadline, fork_lock
from wellworn.core.values import Entry, Partition
from wellworn.models.port import Embedder, fits
from wellworn.search.bank import Bank
from wellworn.search.mapped import IndexFiles
from wellworn.search.partition import PartitionIndex, index_bytes
from wellworn.store.port import Delta, Edge, Head, Now, Store

if TYPE_CHECKING:
    from wellworn.search.engines import VectorEngine

RAM_MB = 2000
PAGE_ROWS = 8192
ENTRY_BYTES = 5_000_000
ANSWER_BYTES = 24_000_000
"""Of answers that are kept: of 5 short hits each, about a thousand."""
MOST_ASKED = 2_000
SMALLEST_ENTRY = 2_000
"""What a short entry counts as: about the memory that it takes, so that 2,500 are held."""


class _HeldEntry:
    """An entry as of a count of changes."""

    __slots__ = ("edges", "entry", "seq")

    def __init__(self, seq: int, entry: Entry, edges: Sequence[Edge] | None) -> None:
        self.seq, self.entry, self.edges = seq, entry, edges
        """The links that touch it; None: they have not been asked for."""


class EntryCache:
    """Entries and their links by row number, so that hot ones are not read from disk. A changed entry is read again."""

    def __init__(self, store: Store, *, max_bytes: int = ENTRY_BYTES) -> None:
        self._store = store
        self._held: LruCache[int, _HeldEntry] = LruCache(
            max_bytes, size_of=lambda held: max(SMALLEST_ENTRY, 2 * len(held.entry.text) + 2 * len(held.entry.evidence))
        )
        self._forgettings = 0

    def __len__(self) -> int:
        return len(self._held)

    def read(self, nos: Sequence[int], seqs: Sequence[int]) -> dict[int, Entry]:
        """The entries of these rows as of these counts of changes, from memory or the store; removed rows are left
        out. The caller may change their lists."""
        held = self._read(nos, seqs)
        return dict(zip(held, _own_copies([one.entry for one in held.values()]), strict=True))

    def edges(self, nos: Sequence[int], seqs: Sequence[int]) -> list[Edge]:
        """`StoreReader.edges` of these rows. Their entries are read too, as who asks for links mostly reads both."""
        held = self._read(nos, seqs)
        missing = [no for no, one in held.items() if one.edges is None]
        if missing:
            found = self._store.edges(missing)
            for no in missing:
                held[no].edges = [edge for edge in found if no in edge[:2]]
        return sorted({edge for one in held.values() for edge in one.edges or ()})

    def _read(self, nos: Sequence[int], seqs: Sequence[int]) -> dict[int, _HeldEntry]:
        forgettings, counts = self._forgettings, dict(zip(nos, seqs, strict=True))
        held = {no: one for no, one in self._held.get_many(nos).items() if one.seq == counts[no]}
        missing = [no for no in nos if no not in held]
        if missing:
            read = self._store.read_linked(missing)
            new = {no: _HeldEntry(counts[no], entry, None if linked else ()) for no, (entry, linked) in read.items()}
            self._held.put_many(new)
            if self._forgettings != forgettings:  # one of them may be among what was forgotten meanwhile
                self.drop(missing)
            held |= new
        return held

    def drop(self, nos: Sequence[int]) -> None:
        """Drop these rows, which are gone from the store."""
        self._forgettings += 1
        for no in nos:
            self._held.pop(no)

    def forget(self, partitions: Sequence[Partition]) -> int:
        """Drop everything of these partitions; returns how many entries that was."""
        self._forgettings += 1  # first: an entry that is read meanwhile is then dropped by its reader
        gone = [no for no, one in self._held.get_many([*self._held]).items() if one.entry.partition in partitions]
        self.drop(gone)
        return len(gone)

    def clear(self) -> None:
        self._forgettings += 1
        self._held.clear()


def _own_copies(entries: Collection[Entry]) -> list[Entry]:
    lists = [{"tags": [*one.tags], "turn_refs": [*one.turn_refs]} for one in entries]
    metadata = [{"metadata": copy.deepcopy(one.metadata) if one.metadata else {}} for one in entries]
    return filled_each(Entry, [a.__dict__ | b | c for a, b, c in zip(entries, lists, metadata, strict=True)])


class Held:
    """An index with its lock: many readers or one writer (`alone`); a waiting writer goes before new readers."""

    def __init__(self, partition: Partition, index: PartitionIndex) -> None:
        self.partition = partition
        self.index = index
        self.bank: Bank | None = None
        """Of this index alone, while it stays as it is."""
        self._condition = threading.Condition()
        self._readers = 0
        self._writing = False
        self._writers_waiting = 0

    def begin(self) -> None:
        """Read beside others, until `end`."""
        with self._condition:
            while self._writing or self._writers_waiting:
                self._condition.wait()
            self._readers += 1

    def end(self) -> None:
        with self._condition:
            self._readers -= 1
            if self._writers_waiting:
                self._condition.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        with self._condition:
            self._writers_waiting += 1
            while self._writing or self._readers:
                self._condition.wait()
            self._writers_waiting -= 1
            self._writing = True
        try:
            yield
        finally:
            with self._condition:
                self._writing = False
                self._condition.notify_all()


def _bank_of(held: Sequence[Held]) -> Bank:
    """Of one partition it is made once; of several, as their columns are joined in it, and if vectors are fetched, each time."""
    if len(held) != 1 or held[0].index.fetch is not None:
        return Bank([one.index for one in held])
    if held[0].bank is None:
        held[0].bank = Bank([held[0].index])
    return held[0].bank


def _held_here(index: PartitionIndex) -> dict[str, bool]:
    """What an index holds of its rows, as a store is asked for it."""
    return {"vectors": index.fetch is None and not index.blind, "words": index.words_held}


class Ram:
    """The indexes of a store's partitions in this process."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder | None,
        *,
        neighbour_weights: tuple[float, float],
        forget: Callable[[Sequence[int]], None] | None = None,
        max_bytes: int = RAM_MB * 1_000_000,
        engine: VectorEngine | None = None,
    ) -> None:
        """`forget` is called with rows that are found to be gone from the store. `engine` has the vectors of large
        partitions; those that alone would pass `max_bytes` are held here without theirs."""
        self._store = store
        self._embedder = embedder
        self._weights = neighbour_weights
        self.max_bytes = max_bytes
        self._forget = forget
        self.entries = EntryCache(store)
        self.answers: LruCache[Hashable, Any] = LruCache(ANSWER_BYTES, size_of=lambda answer: answer.size)
        """What recalls found lately, for when the same is asked again; each says what it rests on."""
        self.asked: LruCache[Hashable, Any] = LruCache(MOST_ASKED)
        """What else is known of what was asked lately: how questions score, and what answers in a scope rest on."""
        self._heads: LruCache[tuple[Partition, ...], Now] = LruCache(MOST_ASKED)
        """Of what was asked lately."""
        self._files = IndexFiles(store)
        self._engine = engine
        self._fits = False
        self._pid = os.getpid()
        self._held: OrderedDict[int, Held] = OrderedDict()
        self._numbers: dict[Partition, int] = {}
        """Of the partitions held."""
        self._grown = False
        self._lock = fork_lock()

    def __len__(self) -> int:
        """Partitions held."""
        return len(self._held)

    def fits(self) -> bool:
        """Whether the store's vectors can be searched with the embedder's: not while they wait to be renewed. Then an index
        holds none."""
        if not self._fits:
            served = self._store.model()
            self._fits = fits(self._embedder, None if served is None else served.key)
        return self._fits

    def may_load(self, partition: Partition, most: int) -> bool:
        """Whether a partition is held, or has changed so seldom that loading it is quick."""
        if partition in self._numbers:
            return True
        (head,) = self._store.heads([partition])
        return head is not None and head.seq <= most

    @contextmanager
    def bank(self, partitions: Sequence[Partition], now: Now | None = None) -> Iterator[tuple[Bank, list[Partition]]]:
        """The partitions that exist, as of now, with their names; nobody changes them meanwhile.

        Of a call with a deadline, those that are not read by then are missing; reading them goes on.
        """
        self._begin_anew_after_fork()
        heads = (now or self.now(partitions)).heads
        present = [(partition, head) for partition, head in zip(partitions, heads, strict=True) if head is not None]
        if (until := deadline()) is None:
            held = [self._current(partition, head) for partition, head in present]
        else:
            found = [
                self._if_current(head) or until.wait_for(partial(self._current, partition, head))
                for partition, head in present
            ]
            held = [one for one in found if one is not None]
        if self._grown:  # once for all of them: a bank may have a thousand partitions
            self._grown = False
            self._evict(keep={one.index.partition_no for one in held})
        reading: list[Held] = []
        try:
            # One order for everyone, so that two recalls and two updates cannot wait for each other in a ring.
            for one in sorted(held, key=lambda h: h.index.partition_no):
                one.begin()
                reading.append(one)
            yield _bank_of(held), [one.partition for one in held]
        finally:
            for one in reversed(reading):
                one.end()

    def now(self, partitions: Sequence[Partition]) -> Now:
        """The store's moment and how far these partitions are."""
        names = tuple(partitions)
        known = self._heads.get(names)
        now = self._store.now(partitions, known)
        if now is not known:
            self._heads.put(names, now)
            # Another process may have dropped partitions, or dropped and begun them anew.
            numbers = {
                one: None if head is None else head.partition_no for one, head in zip(names, now.heads, strict=True)
            }
            self.forget([one for one in names if self._numbers.get(one, numbers[one]) != numbers[one]])
        return now

    def _if_current(self, head: Head) -> Held | None:
        held = self._held.get(head.partition_no)
        if held is None or held.index.known_seq < head.seq or (held.index.blind and self._fits):
            return None
        # Where the vectors have left memory, nobody else knows what is nearest.
        return None if held.index.fetch is not None and self._is_behind(held, head) else held

    def _current(self, partition: Partition, head: Head) -> Held:
        with self._lock:
            held = self._held.get(head.partition_no)
            if held is None:
                held = Held(partition, PartitionIndex(head.partition_no, self._width(), self._weights))
                self._replace(partition, held)
            self._held.move_to_end(head.partition_no)
        if self._is_behind(held, head):
            with held.alone():
                if self._is_behind(held, head):
                    self._fits = False  # it may have been re-embedded meanwhile
                    self._update(held, blind=not self.fits())
                    self._grown = True
        return held

    def _is_behind(self, held: Held, head: Head) -> bool:
        if held.index.known_seq < head.seq or held.index.blind:
            return held.index.known_seq < head.seq or self._fits
        return self._engine is not None and self._engine.is_behind(held.partition, held.index)

    def _replace(self, partition: Partition, held: Held) -> None:
        """Hold a partition, and none that had its name before. The lock is taken."""
        before = self._held.get(self._numbers.get(partition, -1))
        if before is not None:  # dropped and begun anew by another process, while two threads here looked
            self._let_go(before.index.partition_no)
            self._removed(before.index.nos())
        self._held[held.index.partition_no] = held
        self._numbers[partition] = held.index.partition_no

    def _update(self, held: Held, *, blind: bool) -> None:
        index, held.bank = held.index, None
        if not len(index) or index.blind != blind:
            index = PartitionIndex(index.partition_no, self._width(), self._weights)
            index = index if blind else self._files.load(held.partition, index)
            index.blind = blind
        if not len(index):
            rows = 0 if self._engine is None else self._store.counts([held.partition], only=["entries"])["entries"]
            if (
                self._engine is not None and index_bytes(rows, self._width()) > self.max_bytes
            ):  # alone more than all may take
                self._engine.relieve(held.partition, index)
            index.load(self._pages(index))
        held.index = index  # now that it is whole: reading it may fail half-way
        delta = self._store.delta(index.partition_no, index.known_seq, **_held_here(index))
        index.apply(delta)
        if delta.removed:
            self._removed(delta.removed)
            self._files.erase(held.partition)
        if blind:
            return
        self._files.save(held.partition, index)
        if self._engine is not None:
            self._engine.follow(held.partition, index, delta)
            if index.elsewhere is not None and index.fetch is None and index.nbytes > self.max_bytes:
                index.leave_vectors(self._store.vectors)

    def _removed(self, nos: Sequence[int]) -> None:
        self._forget_answers()
        self.entries.drop(nos)
        if self._forget is not None:
            self._forget(nos)

    def _pages(self, index: PartitionIndex) -> Iterator[Delta]:
        after, here = 0, _held_here(index)
        while (page := self._store.delta(index.partition_no, 0, after=after, limit=PAGE_ROWS, **here)).rows:
            yield page
            after = page.rows[-1].no

    def _width(self) -> int:
        return 0 if self._embedder is None else self._embedder.width

    def _begin_anew_after_fork(self) -> None:
        """A child of a fork drops what it inherited: a lock in it may be held by a thread that is not here."""
        if os.getpid() != self._pid:
            with self._lock:
                self._pid = os.getpid()
                self._held, self._numbers = OrderedDict(), {}

    def _evict(self, *, keep: set[int]) -> None:
        with self._lock:
            total = sum(held.index.nbytes for held in self._held.values())
            for number in [n for n in self._held if n not in keep]:
                if total <= self.max_bytes:
                    return
                total -= self._let_go(number)

    def _let_go(self, number: int) -> int:
        """Hold a partition no longer; returns how many bytes that frees. The lock is taken."""
        held = self._held.pop(number, None)
        if held is None:
            return 0
        if self._numbers.get(held.partition) == number:
            del self._numbers[held.partition]
        return held.index.nbytes

    def _forget_answers(self) -> None:
        self.answers.clear()
        self.asked.clear()

    def forget(self, partitions: Sequence[Partition]) -> int:
        """Drop from memory what was removed from these partitions; returns how many rows and entries that was."""
        if not partitions:
            return 0
        dropped = 0
        self._forget_answers()
        with self._lock:
            held_here = [held for held in self._held.values() if held.partition in partitions]
        for held in held_here:
            (head,) = self._store.heads([held.partition])
            before = held.index.held
            if head is None or head.partition_no != held.index.partition_no:
                with self._lock:
                    self._let_go(held.index.partition_no)
                self._removed(held.index.nos())
                dropped += before
            else:
                self._current(held.partition, head)
                dropped += max(0, before - held.index.held)
        for partition in partitions:
            self._files.erase(partition)
            if self._engine is not None:
                self._engine.erase(partition)
        return dropped + self.entries.forget(partitions)

    def clear(self) -> None:
        """Read everything again on next use."""
        self._forget_answers()
        self.entries.clear()
        with self._lock:
            self._held.clear()
            self._numbers.clear()
