"""Engines that search large partitions outside this process: the port, and the store's own indexes as the first of them.

The store stays the truth, and scores are computed here. An engine only names rows that are probably best. The words of a
partition that the store searches are postings that are asked for instead of held: a query is answered from the rows that
have one of its terms, if few have that, or several of its terms that few have together, and from rows that the caller
names. In how many rows a term is was counted when the index was made; terms too rare to be noted then are counted as they
are found.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import combinations
from math import log, prod
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from wellworn.core.cache import LruCache
from wellworn.core.clock import Clock
from wellworn.core.errors import WellwornError
from wellworn.core.values import Partition
from wellworn.search.partition import FETCHED_ROWS, NEAR_ROWS, PartitionIndex, few_of, index_bytes
from wellworn.search.postings import Counts, LocalRows, Mask, Postings, Rows, TermsFound
from wellworn.store.port import Delta, Record, Store, TermRows, Vector

STOP_S = 5.0
GROWN = 1.25
"""Terms are counted again when a partition has grown by so much."""
_COUNTS = np.dtype([("term", "<u8"), ("rows", "<u4")])
_KIND, _KEY = "word_counts", "terms"
_log = logging.getLogger("wellworn.search")


class VectorEngine(Protocol):
    """Has the vectors of large partitions."""

    def relieve(self, partition: Partition, index: PartitionIndex) -> None:
        """Let an index leave what the engine has, so that it need not be read."""

    def is_behind(self, partition: Partition, index: PartitionIndex) -> bool:
        """Whether `follow` should be called although nothing has changed."""

    def follow(self, partition: Partition, index: PartitionIndex, delta: Delta) -> None:
        """Bring the engine up to date with an index, to which a delta was just applied, and set its `elsewhere` if the
        engine can be asked about it."""

    def erase(self, partition: Partition) -> None:
        """Delete the rows that are gone from the store."""

    def close(self) -> None: ...


class StoreIndexes:
    """The indexes of a store that has some itself, of vectors and of words, for partitions that are too large for memory.

    Such a partition is searched in memory until its indexes are made, which happens in a thread. In how many rows each
    frequent term is was counted with them, and is a record of the partition.
    """

    def __init__(self, store: Store, *, most_bytes: int, make: bool, clock: Clock) -> None:
        """Without `make` indexes are used but not made."""
        self._store, self._most_bytes, self._make, self._clock = store, most_bytes, make, clock
        self._begun: dict[int, tuple[threading.Thread, int]] = {}
        """Partitions whose indexes this process has begun to make, whatever became of it, with their size then."""

    def relieve(self, partition: Partition, index: PartitionIndex) -> None:
        number, store = index.partition_no, self._store
        counted = store.record(partition, _KIND, _KEY)
        if counted is None or not store.large_index(number):
            return
        entries, terms = int(counted.body["entries"]), np.frombuffer(counted.blob or b"", dtype=_COUNTS)
        spread = dict(zip(terms["term"].tolist(), terms["rows"].tolist(), strict=True))
        index.elsewhere = partial(store.nearest, number)
        index.leave_vectors(store.vectors)
        words = StoredPostings(partial(store.worded, number), index, entries=entries, spread=spread)
        index.leave_words(words)

    def is_behind(self, partition: Partition, index: PartitionIndex) -> bool:
        return False

    def follow(self, partition: Partition, index: PartitionIndex, delta: Delta) -> None:
        if not index.width or index_bytes(len(index), index.width) <= self._most_bytes or not _wants(index):
            return
        self.relieve(partition, index)
        _, size = self._begun.get(index.partition_no, (None, 0))
        if self._make and _wants(index) and index.held > GROWN * size:
            thread = threading.Thread(target=self._try_to_make, args=(partition,), daemon=True)
            self._begun[index.partition_no] = (thread, index.held)
            thread.start()

    def make(self, partition: Partition) -> None:
        """Make the indexes of a partition and count its terms."""
        (head,) = self._store.heads([partition])
        if head is None or not self._store.large_index(head.partition_no, make=True):
            return
        entries = self._store.counts([partition], only=["entries"])["entries"]
        terms = self._store.frequent_terms(head.partition_no, few_of(entries) // 8)
        blob, now = np.array([*terms.items()], dtype=_COUNTS).tobytes(), self._clock()
        about: dict[str, Any] = {"partition": partition, "kind": _KIND, "key": _KEY, "body": {"entries": entries}}
        with self._store.transact(tenant=partition.tenant) as tx:
            tx.put_records([Record(**about, blob=blob, created_at=now, updated_at=now)])

    def _try_to_make(self, partition: Partition) -> None:
        try:
            self.make(partition)
        except WellwornError as error:
            _log.warning("a large partition is searched in memory, its index cannot be made: %s", error)

    def erase(self, partition: Partition) -> None:
        """Nothing: what goes from the store goes from its indexes."""

    def close(self) -> None:
        """Wait a little for an index that is being made; one that is not finished goes on, for the next who asks."""
        for thread, _ in self._begun.values():
            thread.join(STOP_S)


def _wants(index: PartitionIndex) -> bool:
    """Whether an index holds its words, or has outgrown the count of its terms."""
    words = index.postings
    return not isinstance(words, StoredPostings) or index.held > GROWN * words.entries


MOST_ROWS = 2000
"""Rows that are looked at for the only frequent term of a query. Of several terms each has fewer: sets of them say more."""
TOGETHER = 5
"""Frequent terms of a query, the rarest of them, that are looked for together, two or three at a time."""
BEST = 150
"""Rows with the rarest terms whose neighbours are looked at too."""
_REMEMBERED = 256

Ask = Callable[[Sequence[Sequence[int]], int, Sequence[int], Vector | None, int], TermRows]
"""See `Store.worded`."""


class StoredPostings(Postings):
    """Term → rows and counts of one index, from the store; holds no rows."""

    def __init__(self, ask: Ask, index: PartitionIndex, *, entries: int, spread: Mapping[int, int]) -> None:
        """`spread` says in how many of that many `entries` a term was, if it was in many."""
        super().__init__()
        self._ask, self._index, self.entries, self._spread = ask, index, entries, spread
        few = few_of(entries)
        frequent = sorted(term for term, rows in spread.items() if rows > few)
        self._frequent = np.array(frequent or [0], dtype=np.uint64)
        self._terms_of: LruCache[tuple[int, int], frozenset[int]] = LruCache(_REMEMBERED)

    def find(self, term: int) -> tuple[LocalRows, Counts]:
        """See `Postings.find`; of a frequent term some rows."""
        return self._of_terms([term], self._read([[term]], []))[0]

    def find_all(
        self, terms: Sequence[int], passing: Mask | None = None, vector: Vector | None = None, least: int = 0
    ) -> TermsFound:
        index = self._index
        passing = index.alive if passing is None else passing
        wanted, count = int(np.count_nonzero(passing)), max(least, FETCHED_ROWS)
        few = wanted <= MOST_ROWS
        near = 0 if vector is None or few else min(NEAR_ROWS, count * len(index) // wanted)
        sets = [[term] for term in terms if term not in self._spread] if few else self._sets(terms)
        read = self._read(sets, np.flatnonzero(passing).tolist() if few else [], vector, near)
        nearest = read.nos[np.argsort(-read.products)[: wanted if few else near]]
        nearest = nearest[passing[nearest]][:count]
        if vector is not None and len(nearest) < min(least, wanted):
            named = index.likely(vector, least, passing=passing)
            nearest = nearest if named is None else named
            read = self._with_rows(read, nearest, vector)
        found = self._of_terms(terms, read)
        held_by = [self._spread.get(term, len(having)) for term, (having, _) in zip(terms, found, strict=True)]
        if index.threaded and len(read.nos):  # what is said around a row counts with it
            best = np.concatenate([nearest, self._best(read.nos, found, held_by)])
            beside = np.concatenate([getattr(index, name)[best] for name in ("before", "after", "before2", "after2")])
            read = self._with_rows(read, beside[beside >= 0], vector)
            found = self._of_terms(terms, read)
        self._describe(read)
        none = (np.empty(0, dtype=np.int32), np.empty(0, dtype=np.float32))
        rows, counts = (np.concatenate(parts) for parts in zip(none, *found, strict=True))
        return TermsFound(rows, counts, [len(having) for having, _ in found], held_by, (read.nos, read.products))

    def spread(self, terms: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """In about how many rows each term is."""
        wanted = terms.tolist()
        rare = [term for term in wanted if term not in self._spread]
        found = self._of_terms(rare, self._read([[term] for term in rare], [])) if rare else []
        counted = {term: len(rows) for term, (rows, _) in zip(rare, found, strict=True)}
        return np.array([self._spread.get(term, counted.get(term, 0)) for term in wanted], dtype=np.int64)

    def has(self, term: int, row: int) -> bool:
        """Whether a row has a term."""
        key = int(self._index.no[row]), int(self._index.seq[row])
        known = self._terms_of.get(key)
        if known is None:
            known = frozenset(self._read([], [row]).terms.tolist())
            self._terms_of.put(key, known)
        return term in known

    def _sets(self, terms: Sequence[int]) -> list[list[int]]:
        """Terms that few rows have, and sets of frequent ones that few have together if they do not depend on each other."""
        chosen = [{term} for term in terms if term not in self._spread]
        shares = {term: self._spread[term] / self.entries for term in terms if term in self._spread}
        left, rarest = MOST_ROWS / max(1, len(shares)), sorted(shares, key=shares.__getitem__)
        for size in (1, 2, 3):
            for together in combinations(rarest, size):
                rows = self.entries * prod(shares[term] for term in together)
                if rows <= left and not any(one.issubset(together) for one in chosen):
                    left -= rows
                    chosen.append({*together})
            if size == 1:
                rarest = [term for term in rarest if {term} not in chosen][:TOGETHER]
        return [sorted(one) for one in chosen]

    def _with_rows(self, read: TermRows, rows: Rows, vector: Vector | None) -> TermRows:
        """What was read, and further rows, each once."""
        more = self._read([], np.setdiff1d(rows, read.nos).tolist(), vector)
        return TermRows(*(np.concatenate([own, other]) for own, other in zip(read, more, strict=True)))

    def _read(
        self, sets: Sequence[Sequence[int]], named: Sequence[int], vector: Vector | None = None, near: int = 0
    ) -> TermRows:
        """Rows that have such terms or are named, each once, with their places here as their numbers."""
        index = self._index
        found = self._ask(sets, 2 * MOST_ROWS, index.no[named].tolist() if len(named) else [], vector, near)
        nos, first = np.unique(found.nos, return_index=True)
        rows = np.full(len(found.nos), -1, dtype=np.int64)
        rows[first] = index.places_of(nos)
        once = rows >= 0  # a row that was added just now is not here
        of_terms = np.repeat(once, found.sizes)
        return TermRows(
            rows[once], found.sizes[once], found.terms[of_terms], found.counts[of_terms], found.products[once]
        )

    def _of_terms(self, terms: Sequence[int], read: TermRows) -> list[tuple[LocalRows, Counts]]:
        """Rows, in order, and counts of each term."""
        found, rows = [], np.repeat(read.nos, read.sizes).astype(np.int32)
        for term in terms:
            places = np.flatnonzero(read.terms == np.uint64(term))
            places = places[rows[places].argsort()]
            found.append((rows[places], read.counts[places].astype(np.float32)))
        return found

    def _best(
        self, rows: npt.NDArray[np.int64], found: Sequence[tuple[LocalRows, Counts]], held_by: Sequence[int]
    ) -> npt.NDArray[np.int64]:
        """The rows with the rarest terms."""
        every = np.sort(rows)
        scores = np.zeros(len(every))
        for (having, _), held in zip(found, held_by, strict=True):
            scores[every.searchsorted(having)] += log(1 + (self.entries + 1) / (held + 1))
        return every[np.argsort(-scores, kind="stable")[:BEST]]

    def _describe(self, read: TermRows) -> None:
        """Fill the columns of these rows that need their terms; whoever does it at the same time writes the same."""
        place = np.minimum(self._frequent.searchsorted(read.terms), len(self._frequent) - 1)
        rare = np.append(0, np.cumsum(self._frequent[place] != read.terms))
        ends = np.cumsum(read.sizes)
        self._index.distinct[read.nos] = read.sizes
        self._index.rare[read.nos] = rare[ends] - rare[ends - read.sizes]

    def extend(self, rows: Sequence[int], terms: Sequence[bytes], counts: Sequence[bytes]) -> None:
        """Nothing, as in the other methods that follow: the store has them."""

    def add(self, row: int, terms: Iterable[int], counts: Iterable[int]) -> None: ...

    def drop(self, rows: Sequence[int]) -> None: ...

    def count_rare(self, few: int, size: int) -> npt.NDArray[np.int64]:
        return np.zeros(size, dtype=np.int64)  # see `_describe`

    def renumbered(self, new_row: npt.NDArray[np.int32]) -> Postings:
        return self
