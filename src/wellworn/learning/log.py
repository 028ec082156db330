"""Recalls on their way to the store: held in memory for a moment, written in the background or with their outcome.

A recall does not wait for the disk. A crash loses at most the last recalls that nobody has reported an outcome of.

An outcome as a caller reports it is checked here, too. What it changes about the entries themselves:

    usage += 1                             for each cited entry
    confidence = min(c + 0.05, 0.95)       after success, never lowering a higher confidence
    confidence = max(c - 0.10, 0.05)       after failure; not below 0.5 by what is reported of a layer that people share
"""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import InvalidInput, WellwornError
from wellworn.core.locks import ForkLock, patience
from wellworn.core.values import Entry, Partition, Scope
from wellworn.ingest.validate import checked_flag, checked_fraction, checked_places, checked_query
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
        self._pending: OrderedDict[str, tuple[LoggedRecall, bool]] = OrderedDict()
        """Each with whether its partition is new."""
        self._lock = ForkLock()
        self._wake = threading.Event()
        self._pid: int | None = None
        self._closed = False
        self.failed = False
        """Whether recalls could not be written of late."""

    def __len__(self) -> int:
        """Recalls that are not written yet."""
        return len(self._pending)

    def add(self, recall: LoggedRecall, *, new: bool = False) -> None:
        """Hold a recall until it is written. `new`: its partition did not exist when it was made."""
        with self._lock:
            if self._closed:
                return
            self._pending[recall.id] = recall, new
            self.tenants.add(recall.partition.tenant)
            while len(self._pending) > MOST_PENDING:
                self._pending.popitem(last=False)
        if self._pid != os.getpid():  # one thread per process, started by its first recall
            self._pid, self._wake = os.getpid(), threading.Event()
            threading.Thread(target=_flush_regularly, args=(weakref.ref(self), self._wake), daemon=True).start()

    def find(self, recall_id: str) -> LoggedRecall | None:
        """A recall, pending or written."""
        pending, _ = self._pending.get(recall_id, (None, False))
        return pending or logged_recall(self.store, recall_id)

    def write(self, tx: Tx) -> tuple[dict[str, LoggedRecall], Callable[[], None]]:
        """Write everything pending in a transaction. Returns what is written, by id, and what to call once that is committed.

        A recall must not bring back what was forgotten meanwhile. Recalls of a partition that is gone are not written,
        and recalls that showed an entry that is gone lose their query.
        """
        with self._lock:
            pending = [one for one in self._pending.values() if tx.tenant in (None, one[0].partition.tenant)]
        written: dict[str, LoggedRecall] = {}
        if pending:
            partitions = list({recall.partition for recall, _ in pending})
            there = {one for one, head in zip(partitions, tx.heads(partitions), strict=True) if head is not None}
            alive = tx.alive([*{no for one, _ in pending for no in one.nos[: one.shown]}])
            written = {
                recall.id: recall if alive.issuperset(recall.nos[: recall.shown]) else replace(recall, query="")
                for recall, new in pending
                if recall.partition in there or new
            }
            add_recalls(tx, [*written.values()])

        def committed() -> None:
            with self._lock:
                for recall, _ in pending:
                    self._pending.pop(recall.id, None)

        return written, committed

    def forget(self, nos: Iterable[int]) -> None:
        """Remove the query of every pending recall that showed one of these rows, which are gone."""
        gone = set(nos)
        with self._lock:
            for recall, new in [*self._pending.values()]:
                if not gone.isdisjoint(recall.nos[: recall.shown]):
                    self._pending[recall.id] = replace(recall, query=""), new

    def flush(self) -> None:
        """Write what is pending. A log that cannot be written must not stop the agent: it is a warning."""
        if not self._pending:
            return
        with self._lock:
            tenants = {recall.partition.tenant for recall, _ in self._pending.values()}
        try:
            for tenant in tenants:
                with self.store.transact(tenant=tenant) as tx:
                    _, committed = self.write(tx)
                committed()
            self.failed = False
        except WellwornError as error:
            if not self._closed and not self.failed:  # once, not twice a second, and not after closing
                _logger.warning("recalls are not logged, because the store cannot be written: %s", type(error).__name__)
            self.failed = True

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
        with patience(FLUSH_AFTER_S):  # there is a next time; who closes the file waits for this one
            alive.flush()
        del alive


# -- outcomes ----------------------------------------------------------------------------------------------------------

MaySee = Callable[[Partition], bool]
"""Whether the caller may report outcomes of the recalls of a partition."""

SUCCESS_STEP, HIGHEST = 0.05, 0.95
FAILURE_STEP, LOWEST = 0.10, 0.05
LOWEST_SHARED = 0.5
"""Where one person's failures alone cannot sink an entry of a layer that several people share."""


@dataclass(frozen=True, kw_only=True)
class OutcomeInput:
    """One outcome. `places` are those that were cited, or those that a verdict is about (None: those cited before, or the
    only hit; of several, nobody knows which one helped or failed)."""

    kind: str
    value: dict[str, Any]
    places: tuple[int, ...] | None = None

    def rows(self, recall: LoggedRecall) -> list[int]:
        """Row numbers of the entries it is about."""
        if self.places is None:
            return list(recall.nos[:1]) if recall.shown == 1 else []
        for place in self.places:
            if place >= recall.shown:
                raise InvalidInput(self.kind, f"{place} is past the {recall.shown} hits of this recall", "count from 0")
        return [recall.nos[place] for place in self.places]


def seen_by(scope: Scope) -> MaySee:
    """Recalls of the partitions that a scope sees."""
    return frozenset(scope.partitions()).__contains__


def outcome_input(
    *,
    cited: Sequence[int] | None = None,
    used: float | None = None,
    ignored: bool = False,
    refined: str | None = None,
    success: bool | None = None,
) -> OutcomeInput:
    """The one outcome given; none or several are an error."""
    given: list[OutcomeInput] = []
    if cited is not None:
        given.append(OutcomeInput(kind="cited", value={}, places=checked_places(cited)))
    if used is not None:
        given.append(OutcomeInput(kind="used", value={"quality": checked_fraction("used", used)}))
    if checked_flag("ignored", ignored):
        given.append(OutcomeInput(kind="ignored", value={}))
    if refined is not None:
        checked_query(refined)
        given.append(OutcomeInput(kind="refined", value={"query": ""}))  # nobody learns from its words
    if success is not None:
        given.append(OutcomeInput(kind="verdict", value={"success": checked_flag("success", success)}))
    if len(given) != 1:
        raise InvalidInput("outcome", f"{len(given)} were given", "give one of cited, used, ignored, refined, success")
    return given[0]


def judged(entry: Entry, success: bool, now: datetime, *, step: float = FAILURE_STEP, lowest: float = LOWEST) -> Entry:
    """An entry that was part of a success or a failure; `step` is what a failure costs, down to `lowest`."""
    if success:
        higher = max(entry.confidence, min(HIGHEST, round(entry.confidence + SUCCESS_STEP, 6)))
        entry = replace(entry, confidence=higher, success_count=entry.success_count + 1)
    else:
        lower = min(entry.confidence, max(lowest, round(entry.confidence - step, 6)))
        entry = replace(entry, confidence=lower, failure_count=entry.failure_count + 1)
    return replace(entry, updated_at=max(now, entry.updated_at))
