"""Engines that search vectors outside this process: the port, and the store's own index as the first of them.

The store stays the truth, and scores are computed here. An engine only names rows that are probably nearest.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from wellworn.core.errors import WellwornError
from wellworn.core.values import Partition
from wellworn.search.partition import PartitionIndex, index_bytes
from wellworn.store.port import Delta, Store

STOP_S = 5.0
_log = logging.getLogger("wellworn.search")


class VectorEngine(Protocol):
    """Has the vectors of large partitions."""

    def has(self, partition_no: int) -> bool:
        """Whether the vectors of a partition are there before it is loaded, so that they need not be read."""

    def follow(self, partition: Partition, index: PartitionIndex, delta: Delta) -> None:
        """Bring the engine up to date with an index, to which a delta was just applied, and set its `elsewhere` if the
        engine can be asked about it."""

    def erase(self, partition: Partition, there: Callable[[Sequence[int]], Any] | None) -> None:
        """Delete the rows that are gone: those that `there` does not give back; None: all of the partition."""

    def close(self) -> None: ...


class StoreVectors:
    """The index of a store that has one itself, for partitions that are too large for memory.

    Such a partition is searched in memory until its index is made, which happens in a thread.
    """

    def __init__(self, store: Store, *, most_bytes: int, make: bool) -> None:
        """Without `make` indexes are used but not made."""
        self._store, self._most_bytes, self._make = store, most_bytes, make
        self._begun: dict[int, threading.Thread] = {}
        """Partitions whose index this process has begun to make, whatever became of it."""

    def has(self, partition_no: int) -> bool:
        return self._store.vector_index(partition_no)

    def follow(self, partition: Partition, index: PartitionIndex, delta: Delta) -> None:
        number = index.partition_no
        if index.elsewhere is not None or not index.width or index_bytes(len(index), index.width) <= self._most_bytes:
            return
        if self._store.vector_index(number):
            index.elsewhere = partial(self._store.nearest, number)
        elif self._make and number not in self._begun:
            self._begun[number] = threading.Thread(target=self._index, args=(number,), daemon=True)
            self._begun[number].start()

    def _index(self, partition_no: int) -> None:
        try:
            self._store.vector_index(partition_no, make=True)
        except WellwornError as error:
            _log.warning("a large partition is searched in memory, its index cannot be made: %s", error)

    def erase(self, partition: Partition, there: Callable[[Sequence[int]], Any] | None) -> None:
        """Nothing: what goes from the store goes from its index."""

    def close(self) -> None:
        """Wait a little for an index that is being made; one that is not finished goes on, for the next who asks."""
        for thread in self._begun.values():
            thread.join(STOP_S)
