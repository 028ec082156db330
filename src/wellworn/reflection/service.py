"""Reflection as the facade uses it: on demand, or as jobs that a worker runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from wellworn.core.clock import NewId
from wellworn.core.errors import BudgetExceeded, NotFound
from wellworn.core.values import Partition, Progress
from wellworn.jobs.queue import Queue
from wellworn.reflection.reflector import Reflector
from wellworn.reflection.report import Reflection
from wellworn.reflection.settings import ReflectionSettings
from wellworn.reflection.summary import Summarizer, summarized
from wellworn.reflection.watch import REFLECT, SUMMARIZE
from wellworn.store.port import Job, SessionHead, Store, Tx

Handler = Callable[[Job], None]
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
        return {REFLECT: self._reflect_job, SUMMARIZE: self._summarize_job}

    def reflect(
        self,
        partition: Partition,
        session_id: str | None,
        *,
        dry_run: bool,
        again: bool,
        take: Take,
        progress: Progress | None = None,
    ) -> list[Reflection]:
        """Read a session, or every session of the partition, as far as it has not been read; with `again` all of it."""
        heads = [head for head in self._heads(partition, session_id) if again or head.reflected < head.turns]
        done: list[Reflection] = []
        for number, head in enumerate(heads):
            if progress is not None:
                progress(number, len(heads))
            start = 0 if again else head.reflected
            if dry_run:
                done.append(self.reflector.reflect(partition, head.id, start, head.turns, dry_run=True))
            else:
                done += self._now(head, start, again=again, take=take)
        if progress is not None:
            progress(len(heads), len(heads))
        return done

    def _heads(self, partition: Partition, session_id: str | None) -> Sequence[SessionHead]:
        names = self.store.sessions(partition) if session_id is None else [session_id]
        heads = [self.store.session(partition, name) for name in names]
        if session_id is not None and heads == [None]:
            raise NotFound("session", session_id)
        return [head for head in heads if head is not None]

    def _now(self, head: SessionHead, start: int, *, again: bool, take: Take) -> list[Reflection]:
        """Run it as a job like any other, but here and at once; nothing when someone else is at it."""
        key = f"{head.id}:{start}-{head.turns}" + (f":{self.new_id()}" if again else "")
        payload = {"session": head.id, "start": start, "stop": head.turns, "again": again}
        with take(head.partition, REFLECT, key, payload) as job:
            report = None if job is None else self._read(job)
        return [] if report is None else [report]

    def _reflect_job(self, job: Job) -> None:
        self._read(job)

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
