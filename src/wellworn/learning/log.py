"""Recalls on their way to the store: held in memory for a moment, written in the background or with their outcome.

A recall does not wait for the disk. A crash loses at most the last recalls that nobody has reported an outcome of.
"""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import replace

from wellworn.core.errors import WellwornError
from wellworn.core.locks import ForkLock
from wellworn.learning.records import LoggedRecall, add_recalls, logged_recall
from wellworn.store.port import Store, Tx

FLUSH_AFTER_S = 0.5
MOST_PENDING = 512
"""Recalls held back at most. Beyond them the oldest are dropped, in case the store is unwritable for long."""

_logger = logging.getLogger(__name__)


class LearningLog:
    """The recall log of one store, shared by all learners of a memory."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.tenants: set[str] = set()
        """Those that recalls were made for here."""
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

    def add(self, recall: LoggedRecall, *, new: bool = False) -> None:
        """Hold a recall until it is written. `new`: its partition did not exist when it was made."""
        with self._lock:
            if self._closed:
                return
            self._pending[recall.id] = recall
            self.tenants.add(recall.partition.tenant)
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
        return pending or logged_recall(self.store, recall_id)

    def write(self, tx: Tx) -> Callable[[], None]:
        """Write everything pending in a transaction; call the result once that is committed."""
        return self.write_for(tx, None)[2]

    def write_for(self, tx: Tx, wanted: str | None) -> tuple[LoggedRecall | None, set[int], Callable[[], None]]:
        """`write`; and first the recall with the id `wanted`, if it is in the log now, and its rows that still exist.

        A recall must not bring back what was forgotten meanwhile. Recalls of a partition that is gone are not written
        (except `wanted`), and recalls that showed an entry that is gone lose their query.
        """
        with self._lock:
            recalls = [one for one in self._pending.values() if tx.tenant in (None, one.partition.tenant)]
            new = {*self._of_new, wanted}
        found, alive = None, set[int]()
        if recalls:
            partitions = list({recall.partition for recall in recalls if recall.id not in new})
            heads = zip(partitions, tx.heads(partitions) if partitions else (), strict=True)
            there = {partition for partition, head in heads if head is not None}
            rows = {no for one in recalls for no in (one.nos if one.id == wanted else one.nos[: one.shown])}
            alive = tx.alive([*rows])
            written = [
                recall if alive.issuperset(recall.nos[: recall.shown]) else replace(recall, query="")
                for recall in recalls
                if recall.partition in there or recall.id in new
            ]
            add_recalls(tx, written)
            found = next((recall for recall in written if recall.id == wanted), None)
        if found is None and wanted is not None:
            found = logged_recall(tx, wanted)
            alive = set() if found is None else tx.alive(found.nos)

        def committed() -> None:
            with self._lock:
                for recall in recalls:
                    self._of_new.discard(recall.id)
                    self._pending.pop(recall.id, None)

        return found, alive, committed

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
        with self._lock:
            tenants = {recall.partition.tenant for recall in self._pending.values()}
        try:
            for tenant in tenants:
                with self.store.transact(tenant=tenant) as tx:
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


def _flush_regularly(log: weakref.ref[LearningLog], wake: threading.Event) -> None:
    """The thread. It holds no reference, so that a log that nobody closes can still be freed."""
    while not wake.wait(FLUSH_AFTER_S):
        alive = log()
        if alive is None:
            return
        alive.flush()
        del alive
