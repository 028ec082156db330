"""Attempts at tasks and how far each has come, stored as records; every transition is an event in the audit log.

    executing → judging → reinforced
        └──────────┴────→ abandoned

Each attempt has an id of its own. `judging` is written with the work itself, `reinforced` in one transaction with what
the work taught. So after a crash the state tells what to do: from `judging` on the attempt can be finished; before it
the work is lost and the attempt is abandoned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal

from wellworn.core.clock import Clock
from wellworn.core.dataclass import dataclass
from wellworn.core.errors import WellwornError
from wellworn.core.plain import from_plain, to_plain
from wellworn.core.values import Partition
from wellworn.ingest.forget import point_at
from wellworn.ingest.validate import checked_line
from wellworn.store.events import Event, audit
from wellworn.store.port import Record, RecordFilter, Store, Tx
from wellworn.tasks.judge import Verdict
from wellworn.tasks.trajectory import Trajectory

TaskState = Literal["executing", "judging", "reinforced", "abandoned"]
KIND = "task"
NEXT: dict[TaskState, tuple[TaskState, ...]] = {
    "executing": ("judging", "abandoned"),
    "judging": ("reinforced", "abandoned"),
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
    state: TaskState = "executing"
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
        return not NEXT[self.state]

    @property
    def done(self) -> Trajectory:
        """The trajectory, which every attempt from `judging` on has."""
        return self.trajectory or Trajectory(query=self.query)


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
        record = tx.record(task.partition, KIND, task.id)
        now = "gone" if record is None else record.state
        if now != task.state or to not in NEXT[task.state]:
            raise TaskMoved(f"task {task.id} was {task.state} and is {now}: it cannot become {to}")
        moved = replace(task, state=to, updated_at=max(self._clock(), task.updated_at), **changes)
        if tx.put_records([_record(moved)]) == [None]:  # it names what it was given and what came from it
            raise TaskMoved(f"an item of task {task.id} was forgotten meanwhile")
        self._event(tx, moved, task.state)
        return moved

    def all(self, partition: Partition, *, states: Sequence[TaskState] | None = None, limit: int = 100) -> list[Task]:
        """Newest first."""
        wanted = [*(NEXT if states is None else states)]
        found = self._store.records(RecordFilter(partition=partition, kinds=[KIND], states=wanted, limit=limit))
        return [_task_in(record) for record in found]

    def find(self, partition: Partition, task_id: str) -> list[Task]:
        """Attempts at a task that are under way, newest first, among the partition's latest."""
        name = checked_line("task_id", task_id)
        return [task for task in self.all(partition, states=("executing",), limit=200) if task.task_id == name]

    def drop(self, task: Task) -> None:
        """Remove an attempt, unless somebody else has moved it on."""
        with self._store.transact() as tx:
            tx.drop_records(RecordFilter(partition=task.partition, kinds=[KIND], keys=[task.id], states=[task.state]))

    def _event(self, tx: Tx, task: Task, before: str) -> None:
        """The transition, by the attempt's own id: what a caller names a task may say more than a log should."""
        detail: dict[str, int | float | str] = {"task": task.id, "from": before, "to": task.state}
        if task.verdict is not None:
            detail |= {"outcome": task.verdict.outcome, "items": len(task.entry_ids)}
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
