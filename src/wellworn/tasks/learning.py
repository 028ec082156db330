"""Attempts brought to their end: judged, distilled, kept, and what they were given made surer or less sure.

Every step reads what the one before it wrote, so that it can be gone on with after a crash at any point. Models are
called and texts embedded before the transaction that keeps the items.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from wellworn.core.errors import NotFound
from wellworn.core.values import Entry, Partition
from wellworn.ingest.remember import keep
from wellworn.learning.outcome import FAILURE_STEP, OutcomeInput, judged, outcome_input
from wellworn.models.port import Model
from wellworn.reflection.apply import scope_of
from wellworn.store.port import Event, NewEntry, Tx
from wellworn.tasks.consolidation.watch import ConsolidationWatch
from wellworn.tasks.distill import Distilled, distill, distill_attempts
from wellworn.tasks.engine import Engine
from wellworn.tasks.followed import refuted
from wellworn.tasks.items import Origin, Outcome, draft_of
from wellworn.tasks.judge import Verdict, judge
from wellworn.tasks.tasks import Run, Task, Tasks
from wellworn.tasks.trajectory import Trajectory

EARLIER_ATTEMPTS = 50
"""Of a partition's latest tasks, looked through for other attempts at the same one."""

REFUTED_STEP = 0.3
"""What an item loses when its advice was followed and failed: that is seen, where a verdict is an opinion."""

ModelFor = Callable[[Task], "Model | None"]


class Finisher:
    """Takes attempts from `judging` to `reinforced`."""

    def __init__(self, engine: Engine, tasks: Tasks, model_for: ModelFor, watch: ConsolidationWatch) -> None:
        self._engine = engine
        self._watch = watch
        self._tasks = tasks
        self._model_for = model_for

    def finish(self, task: Task) -> tuple[Task, Distilled | None]:
        """One attempt, from wherever it is; what was distilled is None when that had been done before."""
        found = None
        if task.state == "judging":
            task = self.judge(task)
        if task.state == "distilling":
            task, found = self._distil(task)
        if task.state == "stored":
            task = self.reinforce(task)
        return task, found

    def judge(self, task: Task) -> Task:
        """The attempt with its verdict."""
        return self._tasks.move(task, "distilling", verdict=judge(_done(task), self._model_for(task)))

    def _distil(self, task: Task) -> tuple[Task, Distilled]:
        model, verdict = self._model_for(task), _verdict(task)
        earlier = [] if model is not None or not verdict.success else self._earlier(task)
        found = distill(_done(task), verdict, model, earlier=earlier)
        outcome: Outcome = "success" if verdict.success else "failure"
        (stored,) = self._keep([task], found, outcome)
        return stored, found

    def finish_run(self, tasks: Sequence[Task], run: Run, *, best: str) -> tuple[list[Task], Run, Distilled]:
        """Several attempts at one task, all judged: compared, kept in one transaction with their run, reinforced."""
        found = distill_attempts([(_done(task), _verdict(task)) for task in tasks], self._model_for(tasks[0]))
        verdicts = {_verdict(task).success for task in tasks}
        outcome: Outcome = "contrast" if len(verdicts) == 2 else "success" if True in verdicts else "failure"
        ended = replace(run, state="stored", best=best)
        stored = self._keep(tasks, found, outcome, run=ended)
        ended = replace(ended, entry_ids=stored[0].entry_ids)
        return [self.reinforce(task) for task in stored], ended, found

    def _earlier(self, task: Task) -> list[tuple[Trajectory, Verdict]]:
        """Other attempts at the same task that were judged."""
        found = self._tasks.find(task.partition, task.task_id, states=("stored", "reinforced"), limit=EARLIER_ATTEMPTS)
        return [
            (other.trajectory, other.verdict)
            for other in found
            if other.id != task.id and other.trajectory is not None and other.verdict is not None
        ]

    def _keep(self, tasks: Sequence[Task], found: Distilled, outcome: Outcome, *, run: Run | None = None) -> list[Task]:
        """Items and states in one transaction: either all of it is there afterwards or none."""
        records = self._records(tasks[0], found, outcome, trusted=all(_done(task).trusted for task in tasks))
        now = self._engine.clock()
        with self._engine.writer.transact() as tx:
            ids = tuple(dict.fromkeys(keep(tx, record, now) for record in records))
            stored = [self._tasks.move_in(tx, task, "stored", entry_ids=ids) for task in tasks]
            if run is not None:
                self._tasks.put_run_in(tx, replace(run, entry_ids=ids))
            new = len({record.entry.id for record in records} & set(ids))
            queued = new > 0 and self._watch.added(tx, tasks[0].partition, new)
        if queued:
            self._watch.committed()
        return stored

    def _records(self, task: Task, found: Distilled, outcome: Outcome, *, trusted: bool) -> list[NewEntry]:
        writer, now = self._engine.writer, self._engine.clock()
        origin = Origin(
            task=task.task_id, agent=task.agent_id, domain=task.domain, outcome=outcome, run=task.run_id, by=found.by
        )
        drafts = [
            replace(draft_of(item, origin, layer=task.partition.layer), trust="trusted" if trusted else "untrusted")
            for item in found.items
        ]
        scope = scope_of(task.partition)
        entries = [writer.entry(draft, scope, now) for draft in drafts]
        return writer.records_of(entries) if entries else []

    def reinforce(self, task: Task) -> Task:
        """Tell what became of the recall, and count the use of what was shown.

        A verdict is about the items that were used, where the trajectory says which, and not about those whose advice
        was seen to fail: these lose whatever the verdict. An unsure verdict is about none. The log takes a verdict
        once, so a second try after a crash changes nothing; the rest is written together with the last transition.
        """
        verdict, used = _verdict(task), _used(task)
        failed = self._refuted(task, used)
        about = [place for place in used if place not in failed] if verdict.teaches else []
        told = not task.shown or self._tell(task, verdict.success, about)
        with self._engine.store.transact() as tx:
            moved = self._tasks.move_in(tx, task, "reinforced")
            self._count(tx, task, dict.fromkeys(about, verdict.success), also_judge=not told)
            self._count(tx, task, dict.fromkeys(failed, False), also_judge=True, step=REFUTED_STEP)
        return moved

    def _refuted(self, task: Task, used: Sequence[int]) -> list[int]:
        """Places of the items that were given and used, whose advice this attempt followed to an error."""
        if not any(step.failed for step in _done(task).steps):
            return []
        there = self._shown(self._engine.store.get, task)
        return [place for place in used if (entry := there.get(task.shown[place])) and refuted(entry.text, _done(task))]

    def _shown(
        self, get: Callable[[Sequence[Partition], Sequence[str]], dict[str, Entry]], task: Task
    ) -> dict[str, Entry]:
        """The items that it was given, which are still there."""
        partitions = {*self._engine.store.where(task.shown).values()}
        there = get([*partitions], task.shown)
        return {id: entry for id, entry in there.items() if entry.tenant == task.partition.tenant}

    def _tell(self, task: Task, success: bool, about: Sequence[int]) -> bool:
        """Into the outcome log; False when the log does not have the recall (learning is off, or a crash took it)."""
        learner, tenant = self._engine.learner, task.partition.tenant
        used = _done(task).used
        try:
            if used is not None:
                cited = [place for place in used if place < len(task.shown)]
                told = outcome_input(cited=cited)
                learner.outcome(task.recall_id, told, tenant=tenant)
            if about:
                verdict = OutcomeInput(kind="verdict", value={"success": success}, places=tuple(about))
                learner.outcome(task.recall_id, verdict, tenant=tenant)
        except NotFound:
            return False
        return True

    def _count(
        self, tx: Tx, task: Task, how: Mapping[int, bool], *, also_judge: bool, step: float = FAILURE_STEP
    ) -> None:
        """One more use of each of these items, unless the log counted those used; and an event each."""
        now = self._engine.clock()
        counted = _done(task).used is not None  # `cited` did
        there = self._shown(tx.get, task) if how else {}
        for place, success in how.items():
            entry = there.get(task.shown[place])
            if entry is None:
                continue
            if also_judge:
                entry = judged(entry, success, now, step=step)
            if not counted:
                entry = replace(entry, usage_count=entry.usage_count + 1, updated_at=max(now, entry.updated_at))
            tx.update(entry, change=None)
            detail: dict[str, int | float | str] = {"task": task.id, "success": int(success)}
            tx.audit(Event(at=now, tenant=entry.tenant, action="reinforce", entry_id=entry.id, detail=detail))


def _used(task: Task) -> list[int]:
    """Places of the items shown that count as used: all, when the trajectory does not say."""
    used = _done(task).used
    return [*range(len(task.shown))] if used is None else sorted({place for place in used if place < len(task.shown)})


def _done(task: Task) -> Trajectory:
    """The trajectory, which every attempt from `judging` on has."""
    return task.trajectory or Trajectory(query=task.query)


def _verdict(task: Task) -> Verdict:
    """The verdict, which every attempt from `distilling` on has."""
    return task.verdict or Verdict(success=False, confidence=0.5, reasons=("not judged",))
