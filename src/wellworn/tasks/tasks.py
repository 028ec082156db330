"""Attempts at tasks and how far each has come, stored as records; every transition is an event in the audit log.

    ready → executing → judging → distilling → stored → reinforced
      └─────────┴──────────┴──────────┴──────→ abandoned

Each attempt has an id of its own. `stored` is written in one transaction with the items themselves, so an attempt is
never half stored. After a crash the state tells what to do: from `judging` on everything needed is stored and the
attempt can be finished; before it the work itself is lost and the attempt is abandoned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from wellworn.core.clock import Clock
from wellworn.core.errors import WellwornError
from wellworn.core.plain import from_plain, to_plain
from wellworn.core.values import Partition
from wellworn.ingest.forget import point_at
from wellworn.store.events import Event, audit
from wellworn.store.port import Record, RecordFilter, Store, Tx
from wellworn.tasks.judge import Verdict
from wellworn.tasks.trajectory import Trajectory

TaskState = Literal["ready", "executing", "judging", "distilling", "stored", "reinforced", "abandoned"]
UNFINISHED: tuple[TaskState, ...] = ("ready", "executing", "judging", "distilling", "stored")
KIND = "task"
NEXT: dict[TaskState, tuple[TaskState, ...]] = {
    "ready": ("executing", "abandoned"),
    "executing": ("judging", "abandoned"),
    "judging": ("distilling", "abandoned"),
    "distilling": ("stored", "abandoned"),
    "stored": ("reinforced",),
    "reinforced": (),
    "abandoned": (),
}


class TaskMoved(WellwornError):
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
    mode: str = ""
    """How its run makes attempts: `parallel` or `sequential`."""
    recall_id: str = ""
    shown: tuple[str, ...] = ()
    """Ids of the items it was given."""
    trajectory: Trajectory | None = None
    verdict: Verdict | None = None
    entry_ids: tuple[str, ...] = ()
    """Items that came from it."""
    why: str = ""
    """Why it was abandoned."""
    created_at: datetime
    updated_at: datetime

    @property
    def finished(self) -> bool:
        return self.state in ("reinforced", "abandoned")

    @property
    def done(self) -> Trajectory:
        """The trajectory, which every attempt from `judging` on has."""
        return self.trajectory or Trajectory(query=self.query)

    @property
    def judged(self) -> Verdict:
        """The verdict, which every attempt from `distilling` on has."""
        return self.verdict or Verdict(success=False, confidence=0.5, reasons=("not judged",))


@dataclass(frozen=True, kw_only=True)
class Run:
    """Several attempts at one task, made together or one after the other: what they are as a whole."""

    id: str
    task_id: str
    mode: str
    """`parallel` or `sequential`."""
    state: str
    """`executing`, `stored` or `abandoned`."""
    attempts: tuple[str, ...]
    best: str
    entry_ids: tuple[str, ...]
    created_at: datetime


def run_of(tasks: Sequence[Task]) -> Run:
    """The run that these attempts are."""
    first = min(tasks, key=lambda task: task.number)
    judged = [task for task in sorted(tasks, key=lambda task: task.number) if task.verdict is not None]
    states = {task.state for task in tasks}
    stored = "stored" if "reinforced" in states and states <= {"reinforced", "abandoned"} else "executing"
    return Run(
        id=first.run_id,
        task_id=first.task_id,
        mode=first.mode,
        state="abandoned" if states == {"abandoned"} else stored,
        attempts=tuple(task.id for task in judged),
        best=judged[best_of([(task.done, task.judged) for task in judged])].id if judged else "",
        entry_ids=tuple(dict.fromkeys(id for task in tasks for id in task.entry_ids)),
        created_at=first.created_at,
    )


def best_of(attempts: Sequence[tuple[Trajectory, Verdict]]) -> int:
    """The place of the attempt to go with: one that succeeded before one that failed; then the surer success or the
    less sure failure, the fewer steps, the earlier."""

    def rank(place: int) -> tuple[bool, float, int]:
        trajectory, verdict = attempts[place]
        sure = verdict.confidence if verdict.success else -verdict.confidence
        return (not verdict.success, -sure, len(trajectory.steps))

    return min(range(len(attempts)), key=rank)


class Tasks:
    """Reads and writes attempts."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def open(self, task: Task, *, home: Partition) -> Task:
        """A new attempt; `home` is where its session is stored, which may be elsewhere."""
        record = _record(task)
        with self._store.transact() as tx:
            tx.put_records([record])
            if task.session_id is not None and home != task.partition:
                point_at(tx, home, record)
            self._event(tx, task, "")
        return task

    def move(self, task: Task, to: TaskState, **changes: Any) -> Task:  # fields of Task
        """The attempt in its next state, written."""
        with self._store.transact() as tx:
            return self.move_in(tx, task, to, **changes)

    def move_in(self, tx: Tx, task: Task, to: TaskState, **changes: Any) -> Task:  # fields of Task
        """The same within a transaction; `TaskMoved` when the attempt is no longer as it was read."""
        now = tx.record(task.partition, KIND, task.id)
        if now is None or now.state != task.state or to not in NEXT[task.state]:
            state = "gone" if now is None else now.state
            raise TaskMoved(f"task {task.id} was {task.state} and is {state}: it cannot become {to}")
        moved = replace(task, state=to, updated_at=max(self._clock(), task.updated_at), **changes)
        if tx.put_records([_record(moved)]) == [None]:  # it names what it was given and what came from it
            raise TaskMoved(f"an item of task {task.id} was forgotten meanwhile")
        self._event(tx, moved, task.state)
        return moved

    def get(self, partition: Partition, id: str) -> Task | None:
        found = self._store.record(partition, KIND, id)
        return None if found is None else _task_in(found)

    def all(self, partition: Partition, *, states: Sequence[TaskState] | None = None, limit: int = 100) -> list[Task]:
        """Newest first."""
        found = self._store.records(RecordFilter(partition=partition, kinds=[KIND], states=states, limit=limit))
        return [_task_in(record) for record in found]

    def find(self, partition: Partition, task_id: str, *, states: Sequence[TaskState], limit: int = 200) -> list[Task]:
        """Attempts at a task in one of these states, newest first, among the partition's latest."""
        return [task for task in self.all(partition, states=states, limit=limit) if task.task_id == task_id]

    def _event(self, tx: Tx, task: Task, before: str) -> None:
        """The transition, by the attempt's own id: what a caller names a task may say more than a log should."""
        detail: dict[str, int | float | str] = {"task": task.id, "from": before, "to": task.state}
        if task.verdict is not None and task.state == "distilling":
            detail["success"] = int(task.verdict.success)
        if task.state == "stored":
            detail["items"] = len(task.entry_ids)
        audit(tx, Event(at=task.updated_at, tenant=task.partition.tenant, action="task", detail=detail))


# -- records ---------------------------------------------------------------------------------------------------------

_COLUMNS = ("id", "partition", "session_id", "state", "created_at", "updated_at")
_SHORT = {"task_id": "task", "agent_id": "agent", "run_id": "run", "recall_id": "recall", "entry_ids": "entries"}
_LONG = {short: name for name, short in _SHORT.items()}
"""Names of fields in a stored body, where they differ; and back."""


def _record(task: Task) -> Record:
    body = {_SHORT.get(name, name): value for name, value in to_plain(task).items() if name not in _COLUMNS}
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


def _task_in(record: Record) -> Task:
    stored = {
        "id": record.key,
        "partition": to_plain(record.partition),
        "session_id": record.session,
        "state": record.state,
        "created_at": record.created_at,
        "updated_at": record.updated_at,
    }
    return from_plain(Task, {**{_LONG.get(name, name): value for name, value in record.body.items()}, **stored})
