"""What learning keeps in a store: recalls, outcomes and learned states, and how they are read and written.

A recall does not wait for the disk. It is held in memory for a moment and written in the background, or together with
its outcome. A crash loses at most the last recalls that nobody has reported an outcome of.
"""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from wellworn.core.errors import WellwornError
from wellworn.core.locks import ForkLock
from wellworn.core.values import Partition
from wellworn.store.port import Event, LoggedOutcome, LoggedRecall, Store, Tx, Vector

__all__ = ["Event", "LearningLog", "LoggedOutcome", "LoggedRecall", "Tx", "Vector"]

FLUSH_AFTER_S = 0.5
MOST_PENDING = 512
"""Recalls held back at most. Beyond them the oldest are dropped, in case the store is unwritable for long."""
PAGE = 500
"""Outcomes read at a time."""

_logger = logging.getLogger(__name__)


class LearningLog:
    """The learning side of one store, shared by all learners of a memory."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._pending: OrderedDict[str, LoggedRecall] = OrderedDict()
        self._of_new: set[str] = set()
        self._lock = ForkLock()
        self._wake = threading.Event()
        self._pid: int | None = None
        self._closed = False
        self._failed = False

    def __len__(self) -> int:
        """Recalls that are not written yet."""
        return len(self._pending)

    # -- recalls -------------------------------------------------------------------------------------------------

    def add(self, recall: LoggedRecall, *, new: bool = False) -> None:
        """Hold a recall until it is written. `new`: its partition did not exist when it was made."""
        with self._lock:
            if self._closed:
                return
            self._pending[recall.id] = recall
            if new:
                self._of_new.add(recall.id)
            while len(self._pending) > MOST_PENDING:
                self._pending.popitem(last=False)
        if self._pid != os.getpid():  # one thread per process, started by its first recall
            self._pid, self._wake = os.getpid(), threading.Event()
            threading.Thread(target=_flush_regularly, args=(weakref.ref(self), self._wake), daemon=True).start()

    def find(self, recall_id: str) -> LoggedRecall | None:
        """A recall, pending or written."""
        with self._lock:
            pending = self._pending.get(recall_id)
        return pending or self.store.logged_recall(recall_id)

    def recall_in(self, tx: Tx, recall_id: str) -> LoggedRecall | None:
        """A recall that was written, as of this transaction."""
        return tx.logged_recall(recall_id)

    def write(self, tx: Tx, *, wanted: str | None = None) -> Callable[[], None]:
        """Write everything pending in a transaction; call the result once that is committed.

        A recall must not bring back what was forgotten meanwhile. Recalls of a partition that is gone are not written
        (except `wanted`), and recalls that showed an entry that is gone lose their query.
        """
        with self._lock:
            recalls, new = [*self._pending.values()], {*self._of_new, wanted}
        if recalls:
            partitions = list(dict.fromkeys(recall.partition for recall in recalls))
            heads = zip(partitions, self.store.heads(partitions), strict=True)
            there = {partition for partition, head in heads if head is not None}
            alive = self.store.alive(list({no for recall in recalls for no in recall.nos[: recall.shown]}))
            tx.add_recalls(
                [
                    recall if alive.issuperset(recall.nos[: recall.shown]) else replace(recall, query="")
                    for recall in recalls
                    if recall.partition in there or recall.id in new
                ]
            )

        def committed() -> None:
            with self._lock:
                for recall in recalls:
                    self._of_new.discard(recall.id)
                    self._pending.pop(recall.id, None)

        return committed

    def forget(self, nos: Iterable[int]) -> None:
        """Remove the query of every pending recall that showed one of these rows, which are gone."""
        gone = set(nos)
        with self._lock:
            for recall in [*self._pending.values()]:
                if not gone.isdisjoint(recall.nos[: recall.shown]):
                    self._pending[recall.id] = replace(recall, query="")

    def flush(self) -> None:
        """Write what is pending. A log that cannot be written must not stop the agent: it is a warning."""
        if not self._pending:
            return
        try:
            with self.store.transact() as tx:
                committed = self.write(tx)
            committed()
            self._failed = False
        except WellwornError as error:
            if not self._closed and not self._failed:  # once, not twice a second, and not after closing
                _logger.warning("recalls are not logged: %s", type(error).__name__)
            self._failed = True

    def close(self) -> None:
        """Write what is pending and end the thread."""
        self.flush()
        with self._lock:
            self._closed = True
            self._pending.clear()
        self._wake.set()

    # -- outcomes ------------------------------------------------------------------------------------------------

    def add_outcome(self, tx: Tx, recall_id: str, kind: str, value: dict[str, Any], at: datetime) -> int | None:
        """Append an outcome and return its number; None when the recall has one of this kind already."""
        return tx.add_outcome(recall_id, kind, value, at)

    def outcomes(self, tenant: str, partition: Partition | None = None, *, after: int = 0) -> Iterator[LoggedOutcome]:
        """Every outcome of a tenant, or of one partition, in order."""
        while page := self.store.outcomes(tenant, partition=partition, after=after, limit=PAGE):
            after = page[-1].no
            yield from page

    def recent_outcomes(self, partition: Partition, *, recalls: int, after: int) -> list[LoggedOutcome]:
        """The outcomes of a partition's last recalls, in order."""
        return self.store.recent_outcomes(partition, recalls=recalls, after=after)

    def last_outcome(self, tenant: str) -> int:
        """The number of the tenant's last outcome, 0 when there is none, by bisection."""
        low, high = 0, 1
        while self.store.outcomes(tenant, after=high, limit=1):
            low, high = high, 2 * high
        while low < high:
            middle = (low + high) // 2
            if self.store.outcomes(tenant, after=middle, limit=1):
                low = middle + 1
            else:
                high = middle
        return low

    # -- states: text by profile, for a partition, or for a tenant as a whole -----------------------------------------

    def state(self, tenant: str, partition: Partition | None, *, profile: str, tx: Tx | None = None) -> str | None:
        return (tx or self.store).policy(tenant, partition, profile=profile)

    def states(self, partition: Partition, *, profile: str, tx: Tx | None = None) -> tuple[str | None, str | None]:
        """The state of the partition's tenant, and of the partition."""
        return (tx or self.store).policies(partition, profile=profile)

    def put_state(self, tx: Tx, tenant: str, partition: Partition | None, text: str, *, profile: str) -> None:
        tx.put_policy(tenant, partition, text, profile=profile)

    def drop_states(self, tx: Tx, tenant: str, *, profile: str | None = None) -> int:
        """Remove a tenant's states, of one profile or of all; returns how many there were. The log stays."""
        return tx.drop_policies(tenant, profile=profile)


def _flush_regularly(log: weakref.ref[LearningLog], wake: threading.Event) -> None:
    """The thread. It holds no reference, so that a log that nobody closes can still be freed."""
    while not wake.wait(FLUSH_AFTER_S):
        alive = log()
        if alive is None:
            return
        alive.flush()
        del alive
