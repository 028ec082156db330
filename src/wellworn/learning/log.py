"""The recall log's way to the store: kept in memory for a moment, written in batches in the background.

A recall does not wait for a disk. An outcome finds its recall here or in the store, and what an outcome teaches is
written with it. A crash loses at most the last moments' recalls that nobody has told an outcome of.
"""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from wellworn.core.errors import WellwornError
from wellworn.core.locks import ForkLock
from wellworn.core.values import filled
from wellworn.store.port import LoggedRecall, Store, Tx

FLUSH_AFTER_S = 0.5
MOST_PENDING = 512
"""Recalls held back at most; beyond them the oldest are dropped, should the store be unwritable for long."""
MOST_RECENT = 512
"""Recalls that were written and are still at hand, some 3 KB each: most outcomes come soon after their recall."""

_logger = logging.getLogger(__name__)


class Beside(Protocol):
    """Books that are kept of recalls elsewhere, and written together with them."""

    @property
    def waits(self) -> bool: ...

    def write(self, tx: Tx) -> Callable[[], None]: ...


class RecallLog:
    """Recalls on their way to the store. `pending` by id, oldest first."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._pending: OrderedDict[str, LoggedRecall] = OrderedDict()
        self._of_new: set[str] = set()
        self._recent: OrderedDict[str, LoggedRecall] = OrderedDict()
        self._lock = ForkLock()
        self._wake = threading.Event()
        self._pid: int | None = None
        self._closed = False
        self._failed = False
        self._beside: list[Beside] = []

    def beside(self, books: Beside) -> None:
        """Write these along, in the same transactions."""
        self._beside.append(books)

    def add(self, recall: LoggedRecall, *, new: bool = False) -> None:
        """`new` says that the recall's partition was not there when it was made: someone who has written nothing yet."""
        with self._lock:
            if self._closed:
                return
            self._pending[recall.id] = recall
            if new:
                self._of_new.add(recall.id)
            while len(self._pending) > MOST_PENDING:
                self._pending.popitem(last=False)
        self._start()

    def find(self, recall_id: str) -> LoggedRecall | None:
        """A recall that is still pending."""
        with self._lock:
            return self._pending.get(recall_id)

    def at_hand(self, recall_id: str) -> LoggedRecall | None:
        """A recall that this process made lately, numbers only: they never change. Whether it still counts, or what
        became of its words, only the store can say."""
        with self._lock:
            return self._pending.get(recall_id) or self._recent.get(recall_id)

    def _start(self) -> None:
        """One thread per process, begun with the first recall; it ends with the log."""
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self._wake = threading.Event()
            threading.Thread(target=_flush_now_and_then, args=(weakref.ref(self), self._wake), daemon=True).start()

    def write(self, tx: Tx, *, wanted: str | None = None) -> Callable[[], None]:
        """Put everything pending into a transaction; what is returned is to be called when that is committed.

        A forgetting may have overtaken it, and a late log must bring nothing back: recalls of a partition that is gone are
        not written (but the one `wanted` is), and those that showed what is gone lose their query.
        """
        if not self._pending:
            return self._write_beside(tx)
        with self._lock:
            recalls = [*self._pending.values()]
            new = {*self._of_new} | {wanted}
        partitions = list(dict.fromkeys(recall.partition for recall in recalls))
        there = {
            partition
            for partition, head in zip(partitions, self._store.heads(partitions), strict=True)
            if head is not None
        }
        shown = self._store.alive(list({no for recall in recalls for no in recall.nos[: recall.shown]}))
        tx.add_recalls(
            [
                recall if all(no in shown for no in recall.nos[: recall.shown]) else replace(recall, query="")
                for recall in recalls
                if recall.partition in there or recall.id in new
            ]
        )
        written = self._write_beside(tx)

        def committed() -> None:
            self._drop(recalls)
            written()

        return committed

    def _write_beside(self, tx: Tx) -> Callable[[], None]:
        waiting = [books.write(tx) for books in self._beside if books.waits]

        def committed() -> None:
            for written in waiting:
                written()

        return committed

    def forget(self, nos: Iterable[int]) -> None:
        """Take the query out of what is pending and showed one of these rows, which are gone."""
        gone = set(nos)
        with self._lock:
            self._recent.clear()
            for recall in [*self._pending.values()]:
                if not gone.isdisjoint(recall.nos[: recall.shown]):
                    self._pending[recall.id] = replace(recall, query="")

    def _drop(self, recalls: Sequence[LoggedRecall]) -> None:
        with self._lock:
            for recall in recalls:
                self._of_new.discard(recall.id)
                if self._pending.pop(recall.id, None) is not None:
                    self._recent[recall.id] = filled(LoggedRecall, **{**vars(recall), "query": ""})
            while len(self._recent) > MOST_RECENT:
                self._recent.popitem(last=False)

    def flush(self) -> None:
        if not self._pending and not any(books.waits for books in self._beside):
            return
        try:
            with self._store.transact() as tx:
                written = self.write(tx)
            written()
            self._failed = False
        except WellwornError as error:  # a log that cannot be written must not stop the agent
            if self._closed:  # the thread came late: closing has written everything
                return
            if not self._failed:  # once, not twice a second
                _logger.warning("recalls are not logged: %s", type(error).__name__)
            self._failed = True

    def close(self) -> None:
        """Write what is pending and end the thread."""
        self.flush()
        with self._lock:
            self._closed = True
            self._pending.clear()
            self._recent.clear()
        self._wake.set()


def _flush_now_and_then(log: weakref.ref[RecallLog], wake: threading.Event) -> None:
    """The thread: holds no reference, so that a log nobody closes can still go."""
    while not wake.wait(FLUSH_AFTER_S):
        alive = log()
        if alive is None:
            return
        alive.flush()
        del alive
