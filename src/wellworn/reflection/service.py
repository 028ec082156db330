"""When sessions are reflected on, and the jobs that do it.

`SessionWatch` queues a job at a session's end, every so many turns, or after a session has been idle; the job is queued
in the transaction that is its reason and named by session and turns, so the same turns are never queued twice.
`Reflections` runs these jobs, and reflects on demand.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

from wellworn.core.clock import Clock, NewId
from wellworn.core.dataclass import dataclass
from wellworn.core.errors import BudgetExceeded, NotFound
from wellworn.core.values import Job, Partition, Progress
from wellworn.jobs.queue import Queue, find_job
from wellworn.jobs.worker import Handler
from wellworn.reflection.reflector import Reflector
from wellworn.reflection.summary import Summarizer, summarized
from wellworn.reflection.values import Reflection, ReflectionSettings
from wellworn.store.port import SessionHead, Store, Tx

REFLECT = "reflect"
SUMMARIZE = "summarize"
MOST_AT_ONCE = 1_000
_POLL_S = 0.02


class SessionWatch:
    """Told of every turn and every end; queues what they call for. `wake` is called when something was committed.

    `background` says whether a thread of this process runs it then.
    """

    def __init__(
        self,
        store: Store,
        queue: Queue,
        *,
        settings: ReflectionSettings,
        summarizes: bool,
        clock: Clock,
        wake: Callable[[], None],
        background: bool,
    ) -> None:
        self._store = store
        self._queue = queue
        self._settings = settings
        self._summarizes = summarizes
        self._clock = clock
        self._wake = wake
        self._background = background

    def added(self, tx: Tx, partition: Partition, session_id: str, turns: int) -> bool:
        """Queue a reflection in the middle of a session, where that is asked for; whether anything was queued."""
        every, above = self._settings.every_turns, self._settings.summarize_above
        reflects = every is not None and turns % every == 0
        if reflects and (head := tx.session(partition, session_id)) is not None:
            self._reflect(tx, head)
        summarizes = self._summarizes and turns % above == 0
        if summarizes:
            self._summarize(tx, partition, session_id, turns)
        return reflects or summarizes

    def ended(self, tx: Tx, partition: Partition, session_id: str) -> str | None:
        """Queue what is left to read; the key of the reflection's job, also when it was queued before."""
        head = tx.session(partition, session_id)
        if head is None:
            return None
        if self._summarizes and head.turns >= self._settings.summarize_above:
            self._summarize(tx, partition, session_id, head.turns)
        return self._reflect(tx, head)

    def _reflect(self, tx: Tx, head: SessionHead) -> str | None:
        if head.reflected >= head.turns:
            return None
        key = f"{head.id}:{head.reflected}-{head.turns}"
        payload = {"session": head.id, "start": head.reflected, "stop": head.turns}
        self._queue.add(tx, head.partition, REFLECT, key, payload)
        return key

    def _summarize(self, tx: Tx, partition: Partition, session_id: str, turns: int) -> None:
        self._queue.add(tx, partition, SUMMARIZE, f"{session_id}:{turns}", {"session": session_id, "stop": turns})

    def sweep(self, *, tenants: Sequence[str] | None) -> int:
        """End every session of these tenants (None: of all) that was left idle; returns how many there were."""
        if self._settings.idle_minutes is None:
            return 0
        before = self._clock() - timedelta(minutes=self._settings.idle_minutes)
        ended = 0
        idle = [
            head
            for tenant in ([None] if tenants is None else tenants)
            for head in self._store.sessions(tenant=tenant, idle_since=before, limit=MOST_AT_ONCE)
        ]
        for head in idle:
            with self._store.transact() as tx:
                now = tx.session(head.partition, head.id)
                if now is None or now.ended_at is not None or now.touched_at >= before:
                    continue  # forgotten, ended or gone on meanwhile
                tx.mark_session(head.partition, head.id, ended_at=self._clock())
                self.ended(tx, head.partition, head.id)
                ended += 1
        if ended:
            self._wake()
        return ended

    def committed(self) -> None:
        self._wake()

    def job(self, partition: Partition, key: str, *, wait_s: float) -> Job | None:
        """The reflection's job when it is done or dead, or as it stands when the time is up."""
        deadline = time.monotonic() + wait_s
        while True:
            job = find_job(self._store, partition, REFLECT, key)
            if job is None or job.state in ("done", "dead") or time.monotonic() >= deadline:
                return job
            if job.state == "queued" and not self._background:
                return job  # nobody here will run it
            time.sleep(_POLL_S)


Take = Callable[[Partition, str, str, Mapping[str, Any]], AbstractContextManager[Job | None]]
"""Has the job of a partition, kind and key while a block lasts; None when it is done or someone else has it."""


@dataclass(frozen=True, kw_only=True)
class Reflections:
    """Runs reflections and summaries, and the jobs that ask for them."""

    store: Store
    queue: Queue
    reflector: Reflector
    summarizer: Summarizer | None
    settings: ReflectionSettings
    new_id: NewId

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """What a worker needs to run the jobs of this package, by kind."""
        return {REFLECT: self._read, SUMMARIZE: self._summarize_job}

    def reflect(
        self, partition: Partition, session_id: str | None, *, again: bool, take: Take, progress: Progress | None = None
    ) -> list[Reflection]:
        """Read a session, or every session of the partition, as far as it has not been read; with `again` all of it."""
        heads = [head for head in self._heads(partition, session_id) if again or head.reflected < head.turns]
        done: list[Reflection] = []
        for number, head in enumerate(heads):
            if progress is not None:
                progress(number, len(heads))
            done += self._now(head, 0 if again else head.reflected, again=again, take=take)
        if progress is not None:
            progress(len(heads), len(heads))
        return done

    def _heads(self, partition: Partition, session_id: str | None) -> Sequence[SessionHead]:
        heads = self.store.sessions(partition, session_id=session_id)
        if session_id is not None and not heads:
            raise NotFound("session", session_id)
        return heads

    def _now(self, head: SessionHead, start: int, *, again: bool, take: Take) -> list[Reflection]:
        """Run it as a job like any other, but here and at once; nothing when someone else is at it."""
        key = f"{head.id}:{start}-{head.turns}" + (f":{self.new_id()}" if again else "")
        payload = {"session": head.id, "start": start, "stop": head.turns, "again": again}
        with take(head.partition, REFLECT, key, payload) as job:
            report = None if job is None else self._read(job)
        return [] if report is None else [report]

    def _read(self, job: Job) -> Reflection | None:
        """Read what the job names and nobody has read meanwhile."""
        session_id, start, stop = str(job.payload["session"]), int(job.payload["start"]), int(job.payload["stop"])
        head = self.store.session(job.partition, session_id)
        if head is not None and not job.payload.get("again"):
            start = max(start, head.reflected)
        if head is None or start >= stop:  # forgotten, or read by another job
            with self.store.transact() as tx:
                self.queue.finish(tx, job, {"by": "nobody"})
            return None

        def finish(tx: Tx, report: Reflection) -> None:
            self.queue.finish(tx, job, report.result())

        return self.reflector.reflect(job.partition, session_id, start, stop, finish=finish)

    def _summarize_job(self, job: Job) -> None:
        session_id, stop = str(job.payload["session"]), int(job.payload["stop"])
        start = summarized(self.store, job.partition, session_id)
        short = stop - start < self.settings.summarize_above // 2
        if self.summarizer is None or short or self.store.session(job.partition, session_id) is None:
            with self.store.transact() as tx:
                self.queue.finish(tx, job, {"summaries": 0})
            return

        def finish(tx: Tx, counts: Counter[str]) -> None:
            self.queue.finish(tx, job, dict(counts))

        try:
            self.summarizer.summarize(job.partition, session_id, start, stop, finish=finish)
        except BudgetExceeded:  # the cheaper route is no summary: the turns are all there
            with self.store.transact() as tx:
                self.queue.finish(tx, job, {"summaries": 0, "over_budget": 1})
