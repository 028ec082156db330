"""Consolidation of a bank: compare its items, and settle what concerns each other.

Comparing happens outside any transaction. Then each step is one transaction: it reads its entries again, decides from
how they stand now, and writes the result. So a killed process leaves a shorter run that the next one completes, a
second run finds nothing to do, and several processes may work on one partition. Holds the vectors and a few numbers an
item, and texts only a page at a time.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from wellworn.core.values import Entry, Job, Partition, Progress, Scope
from wellworn.ingest.validate import checked_count
from wellworn.jobs.queue import list_jobs
from wellworn.store.events import Event, audit
from wellworn.store.port import Record, RecordFilter, Store, Tx
from wellworn.tasks.advice import contradiction, duplicates
from wellworn.tasks.alike import PAGE, Rows, alike_pairs, read_rows
from wellworn.tasks.engine import Parts
from wellworn.tasks.items import Stage, stage_of
from wellworn.tasks.settle import ConsolidationSettings, ConsolidationStep, Plan, contradict, look_at, merge

RUN, REVIEW, TALLY = "consolidation", "review", "consolidation_tally"
"""Kinds of records: a run, a question for people, the count of new items."""
JOB = "consolidate"
ACTIONS = ("merge", "resolve", "flag", "prune", "promote", "decay", "ask")
STALE_S = 120.0
"""A run that says it is running, and has written nothing for so long, has died."""
_MANY = 1_000_000

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Consolidation:
    """One run over a partition."""

    id: str
    partition: Partition
    at: datetime
    state: str = "running"
    """`running` or `done`; a run whose process died stays `running`."""
    entries: int = 0
    """Strategies and guardrails that were looked at."""
    counts: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(ACTIONS, 0))
    seconds: float = 0.0
    dry_run: bool = False
    decisions: list[ConsolidationStep] = field(default_factory=list)
    """In the order made; empty when the run is looked up later."""

    @property
    def changed(self) -> int:
        """How many decisions were made."""
        return sum(self.counts.values())


class Consolidator:
    """Consolidates the partitions of one store; also by itself, as a job after every so many new items."""

    def __init__(self, parts: Parts, settings: ConsolidationSettings) -> None:
        self._parts = parts
        self._store = parts.store
        self._settings = settings

    def run(
        self,
        *,
        scope: Scope | None = None,
        layer: str | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Consolidation:
        """Consolidate a partition; `dry_run` only says what would be done."""
        return self._run(self._parts.partition(scope, layer), dry_run=dry_run, progress=progress)

    def run_job(self, job: Job) -> None:
        """The handler of the job: its last transaction finishes the job too."""
        queue = self._parts.queue
        self._run(job.partition, finish=lambda tx, run: queue.finish(tx, job, {"run": run.id, **run.counts}))

    def run_due(self, *, scope: Scope | None = None) -> int:
        """Run the consolidations that are queued for a partition, for processes without a worker; returns how many."""
        partition, done = self._parts.partition(scope), 0
        for job in list_jobs(self._store, partition=partition, kinds=[JOB], states=["queued"]):
            taken = self._parts.queue.take("due", partition, JOB, job.key, job.payload)
            if taken is not None:
                try:
                    self.run_job(taken)
                except Exception as error:
                    self._parts.queue.fail(taken, error)
                    raise
                done += 1
        return done

    def added(self, tx: Tx, partition: Partition, number: int = 1) -> bool:
        """Count new items in the transaction that stores them; whether a job was queued.

        None is missed or counted twice, because the count is written with the items.
        """
        now = self._parts.clock()
        tally = tx.record(partition, TALLY, "new") or Record(
            partition=partition, kind=TALLY, key="new", body={"new": 0, "all": 0}, created_at=now, updated_at=now
        )
        new, total = tally.body["new"] + number, tally.body["all"] + number
        due = new >= self._settings.every
        tx.put_records([replace(tally, body={"new": 0 if due else new, "all": total}, updated_at=now)])
        return due and self._parts.queue.add(tx, partition, JOB, f"after {total}", {"after": total})

    def _run(
        self,
        partition: Partition,
        *,
        dry_run: bool = False,
        progress: Progress | None = None,
        finish: Callable[[Tx, Consolidation], object] | None = None,
    ) -> Consolidation:
        began, now, due = time.perf_counter(), self._parts.clock(), list[str]()

        def look(entry: Entry) -> None:
            plan = Plan(entries={entry.id: entry}, now=now, asked=lambda _: False)
            look_at(plan, entry.id, self._settings)
            due.extend([entry.id] * bool(plan.steps))

        rows = read_rows(self._store, partition, look)
        run = Consolidation(
            id=self._parts.new_id(), partition=partition, at=now, entries=len(rows.ids), dry_run=dry_run
        )
        if not dry_run and rows.ids:
            with self._store.transact() as tx:
                _put(tx, run, now, "consolidating")
        steps = _Steps(self._parts, run, self._settings, progress)
        groups, opposed = self._compared(partition, rows, steps.tell)
        steps.take(groups, lambda group: group, merge)
        steps.take(opposed, lambda pair: pair[:2], lambda plan, pair: contradict(plan, *pair, self._settings.gap))
        changed = {step.other for step in steps.done if step.action == "merge"}
        steps.take(sorted({*due, *changed}), lambda one: (one,), lambda plan, one: look_at(plan, one, self._settings))
        steps.tell(steps.total)
        counts = Counter(step.action for step in steps.done)
        run = replace(
            run,
            state="done",
            counts={action: counts[action] for action in ACTIONS},
            decisions=steps.done,
            seconds=round(time.perf_counter() - began, 6),
        )
        if not dry_run:
            with self._store.transact() as tx:
                _put(tx, run, self._parts.clock(), "consolidate")
                for old in self._runs(partition, _MANY)[self._settings.keep_runs :]:
                    tx.drop_records(RecordFilter(partition=partition, kinds=[RUN], keys=[old.id]))
                if finish is not None:
                    finish(tx, run)
        return run

    def _compared(
        self, partition: Partition, rows: Rows, tell: Callable[[int], None]
    ) -> tuple[list[list[str]], list[tuple[str, str, float]]]:
        """Groups of items that may be duplicates, and pairs that contradict each other, the surest first."""
        same: list[Sequence[str]] = [*rows.words.values()]
        opposed: list[tuple[float, float, str, str, float]] = []
        pairs = alike_pairs(rows, self._settings.related, tell)
        for start in range(0, len(pairs), PAGE):
            part = pairs[start : start + PAGE]
            found = self._store.get([partition], sorted({id for a, b, _ in part for id in (a, b)}))
            for a, b, alike in part:
                one, other = found.get(a), found.get(b)
                if one is None or other is None:
                    continue
                if duplicates(one, other, near=alike >= self._settings.duplicate - 1e-6):
                    same.append((a, b))
                elif contradiction(one, other):
                    less, more = sorted((one.confidence, other.confidence))
                    opposed.append((-more, less, a, b, alike))
        return _joined(same), [(a, b, alike) for *_, a, b, alike in sorted(opposed)]

    # -- look back ---------------------------------------------------------------------------------------------------

    def runs(self, *, scope: Scope | None = None, layer: str | None = None, limit: int = 20) -> list[Consolidation]:
        """The runs over a partition, newest first."""
        return self._runs(self._parts.partition(scope, layer), checked_count("limit", limit, least=1))

    def _runs(self, partition: Partition, limit: int) -> list[Consolidation]:
        return [
            _run_in(record)
            for record in self._store.records(RecordFilter(partition=partition, kinds=[RUN], limit=limit))
        ]

    def stages(self, *, scope: Scope | None = None) -> Callable[[Entry], Stage]:
        """How far each item of a scope has come, its consolidations included.

        A run looks at every item that is older than itself, and writes only what it changes.
        """
        now = self._parts.clock()
        began: dict[tuple[Partition, Stage], datetime] = {}
        for partition in self._parts.scope(scope).partitions():
            for record in reversed(self._store.records(RecordFilter(partition=partition, kinds=[RUN], limit=_MANY))):
                if record.state == "done":
                    began[partition, "active"] = record.created_at
                elif record.state == "running" and not _stale(record, now):
                    began[partition, "consolidating"] = record.created_at

        def stage(entry: Entry) -> Stage:
            own = stage_of(entry)
            names: tuple[Stage, ...] = () if own == "pruned" else ("consolidating", "active")
            return next((name for name in names if _older(entry, began.get((entry.partition, name)))), own)

        return stage


class _Steps:
    """The steps of one run: each reads its entries, decides, and writes all of it in one transaction."""

    def __init__(
        self, parts: Parts, run: Consolidation, settings: ConsolidationSettings, progress: Progress | None
    ) -> None:
        self._parts = parts
        self._batch = settings.batch
        self._progress = progress
        self._would: dict[str, Entry] = {}
        """Entries as a dry run would have left them."""
        self.run = run
        self.total = 2 * run.entries
        self.done: list[ConsolidationStep] = []

    def tell(self, done: int) -> None:
        if self._progress is not None:
            self._progress(min(done, self.total), self.total)

    def take(self, cases: Sequence[T], ids_of: Callable[[T], Sequence[str]], decide: Callable[[Plan, T], None]) -> None:
        """Decide all cases, those of about `batch` entries in one transaction."""
        waiting: list[T] = []
        for place, case in enumerate(cases, start=1):
            waiting.append(case)
            if sum(len(ids_of(one)) for one in waiting) >= self._batch or place == len(cases):
                self._step(list(dict.fromkeys(id for one in waiting for id in ids_of(one))), waiting, decide)
                self.tell(self.run.entries + place)
                waiting = []

    def _step(self, ids: Sequence[str], cases: Sequence[T], decide: Callable[[Plan, T], None]) -> None:
        store = self._parts.store
        if self.run.dry_run:
            plan = self._plan(store, {**store.get([self.run.partition], ids), **self._would}, cases, decide)
            self._would.update(plan.entries)
        else:
            with store.transact() as tx:
                before = tx.get([self.run.partition], ids)
                plan = self._plan(tx, before, cases, decide)
                if plan.steps:
                    self._write(tx, plan, before)
        self.done += plan.steps

    def _plan(
        self, source: Store | Tx, found: dict[str, Entry], cases: Sequence[T], decide: Callable[[Plan, T], None]
    ) -> Plan:
        def asked(key: str) -> bool:
            return source.record(self.run.partition, REVIEW, key) is not None

        plan = Plan(entries=dict(found), now=self._parts.clock(), asked=asked)
        for case in cases:
            decide(plan, case)
        return plan

    def _write(self, tx: Tx, plan: Plan, before: Mapping[str, Entry]) -> None:
        run, now = self.run, plan.now
        changed = [entry for id, entry in plan.entries.items() if entry is not before[id]]
        for entry in changed:
            tx.update(entry, change=f"consolidated {run.id}", before=before[entry.id])
        for step in plan.steps:
            detail = {name: value for name in ("other", "why") if (value := getattr(step, name))}
            action, told = f"bank_{step.action}", {"run": run.id, **detail}
            audit(tx, Event(at=now, tenant=run.partition.tenant, action=action, entry_id=step.id, detail=told))
        for link in plan.links:
            tx.remove_link(link.target, link.source, link.type)  # what was revived by hand must not form a ring
        tx.add_links(plan.links)
        for ids, reason, alike in plan.reviews:
            body = {"reason": reason, "ids": list(ids), "similarity": alike, "run": run.id}
            record = _record(run, REVIEW, ":".join(sorted(ids)), "open", body, now)
            tx.put_records([replace(record, names=ids)])
        _put(tx, run, now)


def _joined(groups: Iterable[Sequence[str]]) -> list[list[str]]:
    """Groups that share an id put together, each in order."""
    leader: dict[str, str] = {}

    def find(id: str) -> str:
        while leader.setdefault(id, id) != id:
            leader[id] = leader[leader[id]]
            id = leader[id]
        return id

    for first, *others in groups:
        for other in others:
            low, high = sorted((find(first), find(other)))
            leader[high] = low
    found: dict[str, list[str]] = {}
    for id in sorted(leader):
        found.setdefault(find(id), []).append(id)
    return [group for group in found.values() if len(group) > 1]


def _put(tx: Tx, run: Consolidation, now: datetime, action: str = "") -> None:
    """Write the record of a run, and an event if an action is named."""
    body = {"entries": run.entries, "counts": dict(run.counts), "seconds": run.seconds}
    tx.put_records([_record(run, RUN, run.id, run.state, body, now)])
    if action:
        detail: dict[str, int | float | str] = {
            "run": run.id,
            **{name: number for name, number in run.counts.items() if number},
        }
        audit(tx, Event(at=now, tenant=run.partition.tenant, action=action, detail=detail))


def _record(run: Consolidation, kind: str, key: str, state: str, body: dict[str, Any], now: datetime) -> Record:
    return Record(
        partition=run.partition, kind=kind, key=key, state=state, body=body, created_at=run.at, updated_at=now
    )


def _run_in(record: Record) -> Consolidation:
    body = {name: record.body[name] for name in ("entries", "counts", "seconds")}
    return Consolidation(id=record.key, partition=record.home, at=record.created_at, state=record.state, **body)


def _stale(record: Record, now: datetime) -> bool:
    return now - record.updated_at >= timedelta(seconds=STALE_S)


def _older(entry: Entry, moment: datetime | None) -> bool:
    return moment is not None and entry.created_at <= moment
