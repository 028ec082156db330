"""Tasks and how far each has come, kept in the store; every transition an event.

    ready → executing → judging → distilling → stored → reinforced
      └─────────┴──────────┴──────────┴──────→ abandoned

An attempt at a task is a record of kind `task` under an id of its own: a second attempt takes nothing from the first.
`stored` is written in one transaction with the items themselves, so an attempt is never half stored. What comes out of
a crash is told apart by state: from `judging` on everything needed is kept and can be gone on with; before it, the work
itself is lost and the attempt is abandoned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, cast, get_args

from wellworn.core.clock import Clock
from wellworn.core.errors import WellwornError
from wellworn.core.values import Partition
from wellworn.ingest.forget import point_at
from wellworn.store.port import Event, Record, Store, Tx
from wellworn.tasks.judge import Verdict
from wellworn.tasks.trajectory import Trajectory, as_value, trajectory_of

TaskState = Literal["ready", "executing", "judging", "distilling", "stored", "reinforced", "abandoned"]
TASK_STATES: tuple[TaskState, ...] = get_args(TaskState)
UNFINISHED: tuple[TaskState, ...] = ("ready", "executing", "judging", "distilling", "stored")
KIND = "task"
RUN_KIND = "matts"
NEXT: dict[TaskState, frozenset[TaskState]] = {
    "ready": frozenset({"executing", "abandoned"}),
    "executing": frozenset({"judging", "abandoned"}),
    "judging": frozenset({"distilling", "abandoned"}),
    "distilling": frozenset({"stored", "abandoned"}),
    "stored": frozenset({"reinforced"}),
    "reinforced": frozenset(),
    "abandoned": frozenset(),
}


class Overtaken(WellwornError):
    """Somebody else has moved the task on meanwhile: what was prepared for it must not be written."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """One attempt at a task."""

    id: str
    partition: Partition
    task_id: str
    agent_id: str = ""
    query: str
    domain: str = ""
    session_id: str | None = None
    state: TaskState = "ready"
    number: int = 1
    """Which attempt of its run it is."""
    run_id: str = ""
    recall_id: str = ""
    shown: tuple[str, ...] = ()
    """Ids of the items it was given."""
    trajectory: Trajectory | None = None
    verdict: Verdict | None = None
    entry_ids: tuple[str, ...] = ()
    """Items that came out of it."""
    why: str = ""
    """Why it was abandoned."""
    created_at: datetime
    updated_at: datetime

    @property
    def finished(self) -> bool:
        return self.state in ("reinforced", "abandoned")


@dataclass(frozen=True, kw_only=True)
class Run:
    """Several attempts at one task, made together or one after the other."""

    id: str
    partition: Partition
    task_id: str
    mode: str
    """`parallel` or `sequential`."""
    state: str = "executing"
    """`executing`, `stored` or `abandoned`."""
    attempts: tuple[str, ...] = ()
    best: str = ""
    entry_ids: tuple[str, ...] = ()
    created_at: datetime
    updated_at: datetime
    why: str = field(default="")


class Tasks:
    """Reads and writes them."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def open(self, task: Task, *, home: Partition | None = None) -> Task:
        """A new attempt, ready; `home` is where its session lies, when that is not where the task does."""
        with self._store.transact() as tx:
            tx.put_record(_record(task))
            if task.session_id is not None and home is not None and home != task.partition:
                point_at(tx, home, _record(task))
            self._event(tx, task, "", task.state)
        return task

    def move(self, task: Task, to: TaskState, **changes: Any) -> Task:  # fields of Task
        """The attempt in its next state, written."""
        with self._store.transact() as tx:
            return self.move_in(tx, task, to, **changes)

    def move_in(self, tx: Tx, task: Task, to: TaskState, **changes: Any) -> Task:  # fields of Task
        """The same as part of a transaction; `Overtaken` when the attempt is no longer as it was seen."""
        now = tx.record(task.partition, KIND, task.id)
        if now is None or now.state != task.state:
            at = "gone" if now is None else now.state
            raise Overtaken(f"task {task.id} was {task.state}, and now is {at}: somebody else goes on with it")
        if to not in NEXT[task.state]:
            raise Overtaken(f"task {task.id} cannot go from {task.state} to {to}")
        moved = replace(task, state=to, updated_at=max(self._clock(), task.updated_at), **changes)
        if not tx.put_record(_record(moved)):  # what came out of it, or what it was given: it may quote either
            raise Overtaken(f"an item of task {task.id} was forgotten meanwhile")
        self._event(tx, moved, task.state, to)
        return moved

    def get(self, partition: Partition, id: str) -> Task | None:
        found = self._store.record(partition, KIND, id)
        return None if found is None else task_in(found)

    def find(self, partition: Partition, task_id: str, *, states: Sequence[TaskState], limit: int = 200) -> list[Task]:
        """Attempts at a task in one of these states, newest first, among the partition's latest."""
        return [task for task in self.all(partition, states=states, limit=limit) if task.task_id == task_id]

    def all(self, partition: Partition, *, states: Sequence[TaskState] | None = None, limit: int = 100) -> list[Task]:
        """Newest first."""
        found = self._store.records(partition=partition, kinds=[KIND], states=states, limit=limit)
        return [task_in(record) for record in found]

    # -- runs ----------------------------------------------------------------------------------------------------

    def put_run(self, run: Run) -> Run:
        with self._store.transact() as tx:
            return self.put_run_in(tx, run)

    def put_run_in(self, tx: Tx, run: Run) -> Run:
        run = replace(run, updated_at=max(self._clock(), run.updated_at))
        tx.put_record(_run_record(run))
        detail: dict[str, int | float | str] = {"run": run.id, "mode": run.mode, "to": run.state}
        tx.audit(Event(at=run.updated_at, tenant=run.partition.tenant, action="matts", detail=detail))
        return run

    def run(self, partition: Partition, id: str) -> Run | None:
        found = self._store.record(partition, RUN_KIND, id)
        return None if found is None else run_in(found)

    def runs(self, partition: Partition, *, states: Sequence[str] | None = None, limit: int = 100) -> list[Run]:
        """Newest first."""
        found = self._store.records(partition=partition, kinds=[RUN_KIND], states=states, limit=limit)
        return [run_in(record) for record in found]

    def _event(self, tx: Tx, task: Task, before: str, after: str) -> None:
        """The transition, by the attempt's own id: what a caller names a task may say more than a log should."""
        detail: dict[str, int | float | str] = {"task": task.id, "from": before, "to": after}
        if task.verdict is not None and after == "distilling":
            detail["success"] = int(task.verdict.success)
        if after == "stored":
            detail["items"] = len(task.entry_ids)
        tx.audit(Event(at=task.updated_at, tenant=task.partition.tenant, action="task", detail=detail))


def _record(task: Task) -> Record:
    body = {
        "task": task.task_id,
        "agent": task.agent_id,
        "query": task.query,
        "domain": task.domain,
        "number": task.number,
        "run": task.run_id,
        "recall": task.recall_id,
        "shown": list(task.shown),
        "trajectory": None if task.trajectory is None else as_value(task.trajectory),
        "verdict": None if task.verdict is None else {**vars(task.verdict), "reasons": [*task.verdict.reasons]},
        "entries": list(task.entry_ids),
        "why": task.why,
    }
    return Record(
        partition=task.partition,
        kind=KIND,
        key=task.id,
        state=task.state,
        body=body,
        names=(*task.entry_ids, *task.shown),
        session=task.session_id,
        created_at=task.created_at,
        updated_at=task.updated_at,
    )


def task_in(record: Record) -> Task:
    """The attempt that a record keeps."""
    body = record.body
    said, told = body.get("trajectory"), body.get("verdict")
    return Task(
        id=record.key,
        partition=record.partition,
        task_id=body["task"],
        agent_id=body.get("agent", ""),
        query=body["query"],
        domain=body.get("domain", ""),
        session_id=record.session,
        state=cast("TaskState", record.state),
        number=body.get("number", 1),
        run_id=body.get("run", ""),
        recall_id=body.get("recall", ""),
        shown=tuple(body.get("shown", ())),
        trajectory=None if said is None else trajectory_of(said),
        verdict=None if told is None else Verdict(**{**told, "reasons": tuple(told["reasons"])}),
        entry_ids=tuple(body.get("entries", ())),
        why=body.get("why", ""),
        created_at=record.created_at,
        updated_at=record.updated_at,
    )


def _run_record(run: Run) -> Record:
    body = {
        "task": run.task_id,
        "mode": run.mode,
        "attempts": list(run.attempts),
        "best": run.best,
        "entries": list(run.entry_ids),
        "why": run.why,
    }
    return Record(
        partition=run.partition,
        kind=RUN_KIND,
        key=run.id,
        state=run.state,
        body=body,
        names=(),
        created_at=run.created_at,
        updated_at=run.updated_at,
    )


def run_in(record: Record) -> Run:
    body = record.body
    return Run(
        id=record.key,
        partition=record.partition,
        task_id=body["task"],
        mode=body["mode"],
        state=record.state,
        attempts=_texts(body.get("attempts", ())),
        best=body.get("best", ""),
        why=body.get("why", ""),
        entry_ids=_texts(body.get("entries", ())),
        created_at=record.created_at,
        updated_at=record.updated_at,
    )


def _texts(values: Iterable[Any]) -> tuple[str, ...]:  # from JSON
    return tuple(str(value) for value in values)
