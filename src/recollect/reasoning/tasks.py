"""Tasks and how far each has come, kept in the store; every transition an event.

    ready → executing → judging → distilling → stored → reinforced
      └─────────┴──────────┴──────────┴──────→ abandoned

An attempt at a task is a dossier of kind `task` under an id of its own: a second attempt takes nothing from the first.
`stored` is written in one transaction with the items themselves, so an attempt is never half stored. What comes out of
a crash is told apart by state: from `judging` on everything needed is kept and can be gone on with; before it, the work
itself is lost and the attempt is abandoned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, cast, get_args

from recollect.clock import Clock
from recollect.errors import RecollectError
from recollect.ingest.elsewhere import point_at
from recollect.reasoning.judge import Verdict
from recollect.reasoning.trajectory import Trajectory, as_value, trajectory_of
from recollect.stores.base import Dossier, Event, Store, Tx
from recollect.types import Shelf

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


class Overtaken(RecollectError):
    """Somebody else has moved the task on meanwhile: what was prepared for it must not be written."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """One attempt at a task."""

    id: str
    shelf: Shelf
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
    shelf: Shelf
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

    def open(self, task: Task, *, home: Shelf | None = None) -> Task:
        """A new attempt, ready; `home` is where its session lies, when that is not where the task does."""
        with self._store.transact() as tx:
            tx.put_dossier(_dossier(task))
            if task.session_id is not None and home is not None and home != task.shelf:
                point_at(tx, home, _dossier(task))
            self._event(tx, task, "", task.state)
        return task

    def move(self, task: Task, to: TaskState, **changes: Any) -> Task:  # fields of Task
        """The attempt in its next state, written."""
        with self._store.transact() as tx:
            return self.move_in(tx, task, to, **changes)

    def move_in(self, tx: Tx, task: Task, to: TaskState, **changes: Any) -> Task:  # fields of Task
        """The same as part of a transaction; `Overtaken` when the attempt is no longer as it was seen."""
        now = tx.dossier(task.shelf, KIND, task.id)
        if now is None or now.state != task.state:
            at = "gone" if now is None else now.state
            raise Overtaken(f"task {task.id} was {task.state}, and now is {at}: somebody else goes on with it")
        if to not in NEXT[task.state]:
            raise Overtaken(f"task {task.id} cannot go from {task.state} to {to}")
        moved = replace(task, state=to, updated_at=max(self._clock(), task.updated_at), **changes)
        if not tx.put_dossier(_dossier(moved)):  # what came out of it, or what it was given: it may quote either
            raise Overtaken(f"an item of task {task.id} was forgotten meanwhile")
        self._event(tx, moved, task.state, to)
        return moved

    def get(self, shelf: Shelf, id: str) -> Task | None:
        found = self._store.dossier(shelf, KIND, id)
        return None if found is None else task_in(found)

    def find(self, shelf: Shelf, task_id: str, *, states: Sequence[TaskState], limit: int = 200) -> list[Task]:
        """Attempts at a task in one of these states, newest first, among the shelf's latest."""
        return [task for task in self.all(shelf, states=states, limit=limit) if task.task_id == task_id]

    def all(self, shelf: Shelf, *, states: Sequence[TaskState] | None = None, limit: int = 100) -> list[Task]:
        """Newest first."""
        found = self._store.dossiers(shelf=shelf, kinds=[KIND], states=states, limit=limit)
        return [task_in(dossier) for dossier in found]

    # -- runs ----------------------------------------------------------------------------------------------------

    def put_run(self, run: Run) -> Run:
        with self._store.transact() as tx:
            return self.put_run_in(tx, run)

    def put_run_in(self, tx: Tx, run: Run) -> Run:
        run = replace(run, updated_at=max(self._clock(), run.updated_at))
        tx.put_dossier(_run_dossier(run))
        detail: dict[str, int | float | str] = {"run": run.id, "mode": run.mode, "to": run.state}
        tx.audit(Event(at=run.updated_at, tenant=run.shelf.tenant, action="matts", detail=detail))
        return run

    def run(self, shelf: Shelf, id: str) -> Run | None:
        found = self._store.dossier(shelf, RUN_KIND, id)
        return None if found is None else run_in(found)

    def runs(self, shelf: Shelf, *, states: Sequence[str] | None = None, limit: int = 100) -> list[Run]:
        """Newest first."""
        found = self._store.dossiers(shelf=shelf, kinds=[RUN_KIND], states=states, limit=limit)
        return [run_in(dossier) for dossier in found]

    def _event(self, tx: Tx, task: Task, before: str, after: str) -> None:
        """The transition, by the attempt's own id: what a caller names a task may say more than a log should."""
        detail: dict[str, int | float | str] = {"task": task.id, "from": before, "to": after}
        if task.verdict is not None and after == "distilling":
            detail["success"] = int(task.verdict.success)
        if after == "stored":
            detail["items"] = len(task.entry_ids)
        tx.audit(Event(at=task.updated_at, tenant=task.shelf.tenant, action="task", detail=detail))


def _dossier(task: Task) -> Dossier:
    body = {
        "task": task.task_id, "agent": task.agent_id, "query": task.query, "domain": task.domain,
        "number": task.number, "run": task.run_id, "recall": task.recall_id, "shown": list(task.shown),
        "trajectory": None if task.trajectory is None else as_value(task.trajectory),
        "verdict": None if task.verdict is None else {**vars(task.verdict), "reasons": [*task.verdict.reasons]},
        "entries": list(task.entry_ids), "why": task.why,
    }  # fmt: skip
    return Dossier(
        shelf=task.shelf, kind=KIND, key=task.id, state=task.state, body=body, names=(*task.entry_ids, *task.shown),
        session=task.session_id, created_at=task.created_at, updated_at=task.updated_at,
    )  # fmt: skip


def task_in(dossier: Dossier) -> Task:
    """The attempt that a dossier keeps."""
    body = dossier.body
    said, told = body.get("trajectory"), body.get("verdict")
    return Task(
        id=dossier.key, shelf=dossier.shelf, task_id=body["task"], agent_id=body.get("agent", ""),
        query=body["query"], domain=body.get("domain", ""), session_id=dossier.session,
        state=cast("TaskState", dossier.state), number=body.get("number", 1), run_id=body.get("run", ""),
        recall_id=body.get("recall", ""), shown=tuple(body.get("shown", ())),
        trajectory=None if said is None else trajectory_of(said),
        verdict=None if told is None else Verdict(**{**told, "reasons": tuple(told["reasons"])}),
        entry_ids=tuple(body.get("entries", ())), why=body.get("why", ""), created_at=dossier.created_at,
        updated_at=dossier.updated_at,
    )  # fmt: skip


def _run_dossier(run: Run) -> Dossier:
    body = {
        "task": run.task_id, "mode": run.mode, "attempts": list(run.attempts), "best": run.best,
        "entries": list(run.entry_ids), "why": run.why,
    }  # fmt: skip
    return Dossier(
        shelf=run.shelf, kind=RUN_KIND, key=run.id, state=run.state, body=body, names=(), created_at=run.created_at,
        updated_at=run.updated_at,
    )  # fmt: skip


def run_in(dossier: Dossier) -> Run:
    body = dossier.body
    return Run(
        id=dossier.key, shelf=dossier.shelf, task_id=body["task"], mode=body["mode"], state=dossier.state,
        attempts=_texts(body.get("attempts", ())), best=body.get("best", ""), why=body.get("why", ""),
        entry_ids=_texts(body.get("entries", ())), created_at=dossier.created_at, updated_at=dossier.updated_at,
    )  # fmt: skip


def _texts(values: Iterable[Any]) -> tuple[str, ...]:  # from JSON
    return tuple(str(value) for value in values)
