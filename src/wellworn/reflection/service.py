"""When sessions are reflected on, and the jobs that do it.

A job is queued at a session's end, every so many turns, or after a session has been idle; in the transaction that is its
reason, and named by session and turns, so the same turns are never queued twice.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

from wellworn.core.clock import Clock, NewId
from wellworn.core.dataclass import dataclass
from wellworn.core.errors import BudgetExceeded, NotFound
from wellworn.core.values import READ_BY_MODEL, Job, Partition, Progress, unwatched
from wellworn.core.wellformed import one_line
from wellworn.ingest.remember import Writer, keep
from wellworn.ingest.validate import Draft
from wellworn.jobs.queue import Queue, find_job
from wellworn.jobs.worker import Handler
from wellworn.models.port import Model, Request
from wellworn.reflection import Candidate, Reflection, ReflectionSettings
from wellworn.reflection.extract import Window, dialogue, evidence_of, prompt, rejection, turns_before, windows
from wellworn.reflection.reflector import MAX_EVIDENCE_CHARS, Reflector, link_to_turns
from wellworn.store.events import Event, audit
from wellworn.store.port import Selection, SessionHead, Store, Tx

REFLECT = "reflect"
SUMMARIZE = "summarize"
MOST_AT_ONCE = 1_000
_POLL_S = 0.02
Take = Callable[[Partition, str, str, Mapping[str, Any]], AbstractContextManager[Job | None]]
"""Has the job of a partition, kind and key while a block lasts; None when it is done or someone else has it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Reflections:
    """Told of every turn and every end; queues the reflections and summaries that they call for, and runs them."""

    store: Store
    queue: Queue
    settings: ReflectionSettings
    reflector: Reflector
    summarizer: Summarizer | None
    clock: Clock
    new_id: NewId
    committed: Callable[[], None]
    """To be called when what was queued is durable."""
    background: bool
    """Whether a thread of this process runs it then."""

    def added(self, tx: Tx, partition: Partition, session_id: str, turns: int) -> bool:
        """Queue a reflection in the middle of a session, where that is asked for; whether anything was queued."""
        every, above = self.settings.every_turns, self.settings.summarize_above
        reflects = every is not None and turns % every == 0
        if reflects and (head := tx.session(partition, session_id)) is not None:
            self._reflect(tx, head)
        summarizes = self.summarizer is not None and turns % above == 0
        if summarizes:
            self._summarize(tx, partition, session_id, turns)
        return reflects or summarizes

    def ended(self, tx: Tx, partition: Partition, session_id: str) -> str | None:
        """Queue what is left to read; the key of the reflection's job, also when it was queued before."""
        head = tx.session(partition, session_id)
        if head is None:
            return None
        if self.summarizer is not None and head.turns >= self.settings.summarize_above:
            self._summarize(tx, partition, session_id, head.turns)
        return self._reflect(tx, head)

    def _reflect(self, tx: Tx, head: SessionHead) -> str | None:
        if head.reflected >= head.turns:
            return None
        key = f"{head.id}:{head.reflected}-{head.turns}"
        payload = {"session": head.id, "start": head.reflected, "stop": head.turns}
        self.queue.add(tx, head.partition, REFLECT, key, payload)
        return key

    def _summarize(self, tx: Tx, partition: Partition, session_id: str, turns: int) -> None:
        self.queue.add(tx, partition, SUMMARIZE, f"{session_id}:{turns}", {"session": session_id, "stop": turns})

    def sweep(self, *, tenants: Sequence[str] | None) -> int:
        """End every session of these tenants (None: of all) that was left idle; returns how many there were."""
        if self.settings.idle_minutes is None:
            return 0
        before = self.clock() - timedelta(minutes=self.settings.idle_minutes)
        ended = 0
        idle = [
            head
            for tenant in ([None] if tenants is None else tenants)
            for head in self.store.sessions(tenant=tenant, idle_since=before, limit=MOST_AT_ONCE)
        ]
        for head in idle:
            with self.store.transact() as tx:
                now = tx.session(head.partition, head.id)
                if now is None or now.ended_at is not None or now.touched_at >= before:
                    continue  # forgotten, ended or gone on meanwhile
                tx.mark_session(head.partition, head.id, ended_at=self.clock())
                self.ended(tx, head.partition, head.id)
                ended += 1
        if ended:
            self.committed()
        return ended

    def job(self, partition: Partition, key: str, *, wait_s: float) -> Job | None:
        """The reflection's job when it is done or dead, or as it stands when the time is up."""
        deadline = time.monotonic() + wait_s
        while True:
            job = find_job(self.store, partition, REFLECT, key)
            if job is None or job.state in ("done", "dead") or time.monotonic() >= deadline:
                return job
            if job.state == "queued" and not self.background:
                return job  # nobody here will run it
            time.sleep(_POLL_S)

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """What a worker needs to run the jobs of this package, by kind."""
        return {REFLECT: self._read, SUMMARIZE: self._summarize_job}

    def reflect(
        self, partition: Partition, session_id: str | None, *, again: bool, take: Take, progress: Progress = unwatched
    ) -> list[Reflection]:
        """Read a session, or every session of the partition, as far as it has not been read; with `again` all of it."""
        known = self.store.sessions(partition, session_id=session_id)
        if session_id is not None and not known:
            raise NotFound("session", session_id)
        heads = [head for head in known if again or head.reflected < head.turns]
        done: list[Reflection] = []
        for number, head in enumerate(heads):
            progress(number, len(heads))
            done += self._now(head, 0 if again else head.reflected, again=again, take=take)
        progress(len(heads), len(heads))
        return done

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
            self._finish(job, {"by": "nobody"})
            return None

        def finish(tx: Tx, report: Reflection) -> None:
            self.queue.finish(tx, job, report.result())

        return self.reflector.reflect(job.partition, session_id, start, stop, finish=finish)

    def _summarize_job(self, job: Job) -> None:
        session_id, stop = str(job.payload["session"]), int(job.payload["stop"])
        start = summarized(self.store, job.partition, session_id)
        short = stop - start < self.settings.summarize_above // 2
        if self.summarizer is None or short or self.store.session(job.partition, session_id) is None:
            return self._finish(job, {"summaries": 0})

        def finish(tx: Tx, counts: Counter[str]) -> None:
            self.queue.finish(tx, job, dict(counts))

        try:
            self.summarizer.summarize(job.partition, session_id, start, stop, finish=finish)
        except BudgetExceeded:  # the cheaper route is no summary: the turns are all there
            self._finish(job, {"summaries": 0, "over_budget": 1})

    def _finish(self, job: Job, result: Mapping[str, Any]) -> None:
        with self.store.transact() as tx:
            self.queue.finish(tx, job, result)


# -- summaries ---------------------------------------------------------------------------------------------------------
#
# A long session also gets a summary, whose parts are kept and linked. Only where a summariser is.

SUMMARY_TOKENS = 400
MAX_SUMMARY_CHARS = 2_500
CONFIDENCE = 0.7


def summarized(store: Store, partition: Partition, session_id: str) -> int:
    """Turns below this number have a summary."""
    found = store.select([partition], Selection(session_id=session_id, kinds=["summary"]), limit=10_000)
    return max((max(entry.turn_refs) + 1 for _, entry in found if entry.turn_refs), default=0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Summarizer:
    """Writes one summary a window of a session."""

    store: Store
    writer: Writer
    model_for: Callable[[Partition, str], Model]

    def summarize(
        self,
        partition: Partition,
        session_id: str,
        start: int,
        stop: int,
        *,
        finish: Callable[[Tx, Counter[str]], None],
    ) -> None:
        """Summarise turns [start, stop); all summaries are written at once, with `finish`."""
        _, episodes, said = turns_before(self.store, partition, session_id, stop)
        doubtful = {id for id, episode in episodes.items() if episode.trust == "untrusted"}
        model = self.model_for(partition, session_id)
        found = [
            (window, self._draft(model, window, session_id, partition, doubtful)) for window in windows(said, start)
        ]
        drafted = [(window, draft) for window, draft in found if draft is not None]
        counts = +Counter(summaries=len(drafted), dropped=len(found) - len(drafted))
        now = self.writer.clock()
        entries = [self.writer.entry(draft, partition.scope, now) for _, draft in drafted]
        records = self.writer.records_of(entries) if entries else []
        with self.writer.transact(tenant=partition.tenant) as tx:
            for (window, _), record in zip(drafted, records, strict=True):
                link_to_turns(tx, keep(tx, record, now), window.turns, partition, now)
            audit(tx, Event(at=now, tenant=partition.tenant, action="summarize", detail=dict(counts)))
            finish(tx, counts)

    def _draft(
        self, model: Model, window: Window, session_id: str, partition: Partition, doubtful: Collection[str]
    ) -> Draft | None:
        """The summary of a window, or None when the model's says what nobody said."""
        told = dialogue(window.turns, context=window.context)
        request = Request.of(prompt("summarize"), told, purpose="summarize", max_output_tokens=SUMMARY_TOKENS)
        text = one_line(model.complete(request).text)
        numbers = tuple(turn.number for turn in window.turns)
        candidate = Candidate(summary=text, turns=numbers)
        if not text or len(text) > MAX_SUMMARY_CHARS:
            return None
        if rejection(candidate, window.turns, [*window.context, *window.turns]) is not None:
            return None
        return Draft(
            text=text,
            kind="summary",
            layer=partition.layer,
            session_id=session_id,
            turn_refs=numbers,
            source=READ_BY_MODEL,
            evidence=evidence_of(window.turns)[:MAX_EVIDENCE_CHARS],
            confidence=CONFIDENCE,
            at=window.turns[-1].at,
            trust="untrusted" if any(turn.entry_id in doubtful for turn in window.turns) else "trusted",
        )
