"""Engines that search large partitions outside this process: the port, and the store's own indexes as the first of them.

The store stays the truth, and scores are computed here. An engine only names rows that are probably best.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

from wellworn.core.clock import Clock
from wellworn.core.errors import WellwornError
from wellworn.core.values import Partition
from wellworn.search.partition import PartitionIndex, few_of, index_bytes
from wellworn.search.stored import StoredPostings
from wellworn.store.port import Delta, Record, Store

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

    def follow(self, partition: Partition, index: PartitionIndex, delta: Delta) -> None:
        """Bring the engine up to date with an index, to which a delta was just applied, and set its `elsewhere` if the
        engine can be asked about it."""

    def erase(self, partition: Partition, there: Callable[[Sequence[int]], Any] | None) -> None:
        """Delete the rows that are gone: those that `there` does not give back; None: all of the partition."""

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

    def erase(self, partition: Partition, there: Callable[[Sequence[int]], Any] | None) -> None:
        """Nothing: what goes from the store goes from its indexes."""

    def close(self) -> None:
        """Wait a little for an index that is being made; one that is not finished goes on, for the next who asks."""
        for thread, _ in self._begun.values():
            thread.join(STOP_S)


def _wants(index: PartitionIndex) -> bool:
    """Whether an index holds its words, or has outgrown the count of its terms."""
    words = index.postings
    return not isinstance(words, StoredPostings) or index.held > GROWN * words.entries
