"""Attempts at a task: retrieve what helps, run the agent, judge, hand over to `finish`. One, or several compared.

What the caller got wrong is an error before anything is done. From then on, whatever the store or the embedder raises
is reported in the result, and the agent works without the bank. Several attempts (memory-aware test-time scaling) are
all judged first and distilled together. A budget that is used up ends a run early; what was made until then is kept.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from threading import Event as Flag
from typing import Any, TypedDict, TypeVar

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import BudgetExceeded, InvalidInput, WellwornError
from wellworn.core.values import Hit, Partition, Recall, Scope
from wellworn.ingest.validate import checked_line, checked_query, checked_session_id
from wellworn.tasks.distill import Distilled
from wellworn.tasks.engine import Parts
from wellworn.tasks.finish import Finisher
from wellworn.tasks.items import bank_partition, checked_domain
from wellworn.tasks.judge import Judged, Verdict, judge, prompt, shown_attempts
from wellworn.tasks.tasks import Task, Tasks
from wellworn.tasks.trajectory import Trajectory, bounded, text_of, trajectory_of

T = TypeVar("T")
_log = logging.getLogger("wellworn.tasks")


class TaskSpec(TypedDict, total=False):
    """What a caller says about a task. `task_id` and `query` are needed."""

    task_id: str
    """The caller's name for the task. Each attempt at it gets an id of its own."""
    query: str
    """What is to be done, in words. Items are retrieved by it."""
    agent_id: str
    domain: str
    """What the task is about, as `web.admin`. What it teaches is stored under it, and items are looked for there."""
    scope: Scope | None
    session_id: str | None
    """The session it belongs to: forgetting the session forgets the task."""


def planned(spec: TaskSpec, scope: Scope, parts: Parts) -> Task:
    """The attempt that a caller wants, checked before anything is done. It is not stored yet."""
    task_id, session_id = checked_line("task_id", spec.get("task_id", "")), spec.get("session_id")
    if not task_id.strip():
        raise InvalidInput("task_id", "is empty", "give the task a name; an id will do")
    now = parts.engine.clock()
    return Task(
        id=parts.engine.new_id(),
        partition=bank_partition(scope),
        task_id=task_id,
        query=checked_query(spec.get("query", "")),
        agent_id=checked_line("agent_id", spec.get("agent_id", "")),
        domain=checked_domain(spec.get("domain", "")),
        session_id=None if session_id is None else checked_session_id(session_id),
        created_at=now,
        updated_at=now,
    )


@dataclass(frozen=True, kw_only=True)
class Work:
    """A task for an agent, with what the bank knows about it."""

    task: Task
    query: str
    """The task in the caller's own words; what is stored is scrubbed."""
    stored: bool = True
    """False when the store could not be written to."""
    recall: Recall | None = None
    previous: tuple[Judged, ...] = ()
    """Earlier attempts of a sequential run, oldest first."""

    @property
    def task_id(self) -> str:
        return self.task.task_id

    @property
    def number(self) -> int:
        """Which attempt of its run it is, from 1 on."""
        return self.task.number

    @property
    def hits(self) -> list[Hit]:
        """The items found, best first."""
        return [] if self.recall is None else self.recall.hits

    def context(self, *, max_tokens: int = 1500) -> str:
        """The items as a fenced block of data for a prompt; empty when there are none."""
        return "" if self.recall is None else self.recall.context(max_tokens=max_tokens)

    def instruction(self) -> str:
        """In a sequential run, from the second attempt on: what to do with the earlier ones, and these as data."""
        if not self.previous:
            return ""
        return f"{prompt('refine' if len(self.previous) == 1 else 'refine_again')}\n{shown_attempts(self.previous)}"


Execute = Callable[[Work], Any]
"""The agent. It may return anything that `trajectory_of` takes; other values are an error of the caller. An exception is a
failed attempt."""


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """Everything that an attempt needs but the agent."""

    plan: Task
    home: Partition
    """Where its session is stored."""
    look: Callable[[], Recall]
    """Retrieves the items for the task."""


@dataclass(frozen=True, kw_only=True)
class TaskResult:
    """How one attempt ended."""

    work: Work
    trajectory: Trajectory
    verdict: Verdict
    value: Any = None
    """What the agent returned."""
    exception: Exception | None = None
    distilled: Distilled | None = None
    fault: str = ""
    """What went wrong with the memory meanwhile; the agent was not stopped by it."""

    @property
    def task_id(self) -> str:
        return self.work.task_id

    @property
    def id(self) -> str:
        """The attempt's own; empty when it could not be stored."""
        return self.work.task.id if self.work.stored else ""

    @property
    def state(self) -> str:
        return self.work.task.state if self.work.stored else ""

    @property
    def entry_ids(self) -> tuple[str, ...]:
        """Items that came from it, new or strengthened."""
        return self.work.task.entry_ids

    @property
    def recall(self) -> Recall | None:
        return self.work.recall

    @property
    def success(self) -> bool:
        return self.verdict.success


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """How several attempts at one task ended."""

    run_id: str
    """The `run_id` of its attempts among `ReasoningBank.tasks`."""
    best: TaskResult
    attempts: Sequence[TaskResult]
    distilled: Distilled | None = None
    fault: str = ""

    @property
    def entry_ids(self) -> tuple[str, ...]:
        """Items that came from it, new or strengthened."""
        return self.best.entry_ids

    @property
    def success(self) -> bool:
        return self.best.success


def _rank(one: TaskResult) -> tuple[bool, float, int]:
    """Best first: a success before a failure; then the surer success or the less sure failure, then the fewer steps."""
    sure = one.verdict.confidence if one.success else -one.verdict.confidence
    return (not one.success, -sure, len(one.trajectory.steps))


class Attempts:
    """Begins attempts, runs the agent, and ends them."""

    def __init__(self, parts: Parts, tasks: Tasks, finisher: Finisher) -> None:
        self._parts = parts
        self._tasks = tasks
        self._finisher = finisher

    def begin(self, given: Assignment, previous: tuple[Judged, ...] = ()) -> Work:
        """An attempt, stored and given what the bank knows."""
        plan, recall = given.plan, _guarded(given.look)
        shown = tuple(hit.entry.id for hit in recall.hits) if recall else ()

        def opened() -> Task:
            query = self._parts.scrubbing.sent(plan.partition)(plan.query)
            named = replace(plan, query=query, recall_id=recall.id if recall else "", shown=shown)
            return self._tasks.open(named, home=given.home)

        task = _guarded(opened)
        stored = task is not None
        return Work(task=task or plan, query=plan.query, stored=stored, recall=recall, previous=previous)

    def run(self, work: Work, execute: Execute) -> TaskResult:
        """Let the agent work, then judge. An exception is a failure; an interrupt, or a value that is no trajectory,
        leaves the attempt abandoned."""
        value, exception = None, None
        try:
            value = execute(work)
            trajectory = trajectory_of(value, query=work.query)
        except BaseException as error:
            if not isinstance(error, Exception) or (value is not None and isinstance(error, InvalidInput)):
                self.abandon([work], type(error).__name__)
                raise
            exception = error  # of the agent, perhaps while its steps are read: what this learns from
            trajectory = bounded(Trajectory(query=work.query, error=f"{type(error).__name__}: {text_of(error)}"))
        task, verdict, fault = work.task, None, "" if work.stored else "the store was not writable"
        try:
            if work.stored:
                task = self._tasks.move(task, "judging", trajectory=self._parts.scrubbed(trajectory, task.partition))
                verdict = self._finisher.judge(task)
        except Exception as error:  # of the store, a model, or ours: the agent has done its work
            fault = _noted(error)
        return TaskResult(
            work=replace(work, task=task),
            trajectory=trajectory,
            verdict=verdict or judge(trajectory),
            value=value,
            exception=exception,
            fault=fault,
        )

    def end(self, made: Sequence[TaskResult]) -> list[TaskResult]:
        """Attempts at one task, distilled together, stored and reinforced."""
        sound = [one for one in made if not one.fault]
        if not sound:
            return [*made]
        try:
            tasks, distilled = self._finisher.finish([(one.work.task, one.verdict) for one in sound])
        except Exception as error:  # of the store, a model, or ours: the agents have done their work
            fault = _noted(error)
            return [replace(one, fault=one.fault or fault) for one in made]
        own = {task.id: task for task in tasks}
        return [
            replace(one, work=replace(one.work, task=own[one.id]), distilled=distilled) if one.id in own else one
            for one in made
        ]

    def abandon(self, works: Sequence[Work], why: str) -> None:
        """The work will not come to an end."""
        for work in works:
            if work.stored and not work.task.finished:
                _guarded(partial(self._tasks.move, work.task, "abandoned", why=why))

    # -- several -----------------------------------------------------------------------------------------------------

    def several(self, given: Assignment, execute: Execute, mode: str, *, most: int, at_once: int = 1) -> RunResult:
        """Attempts at one task: `parallel` ones know nothing of each other, `sequential` ones see those before them and
        end with a success. An interrupted run is abandoned: its attempts cannot be compared."""
        stop, made, run_id = Flag(), dict[int, TaskResult](), self._parts.engine.new_id()
        sequential = mode == "sequential"

        def one(number: int) -> None:
            if stop.is_set():
                return
            previous = tuple((one.trajectory, one.verdict) for one in made.values()) if sequential else ()
            try:
                now, id = self._parts.engine.clock(), self._parts.engine.new_id()
                plan = replace(
                    given.plan, id=id, run_id=run_id, mode=mode, number=number, created_at=now, updated_at=now
                )
                made[number] = out = self.run(self.begin(replace(given, plan=plan), previous), execute)
            except BaseException:
                stop.set()
                raise
            if isinstance(out.exception, BudgetExceeded) or (sequential and out.success):
                stop.set()

        try:
            if at_once == 1:
                for number in range(1, most + 1):
                    one(number)
            else:
                from concurrent.futures import ThreadPoolExecutor

                with ThreadPoolExecutor(max_workers=at_once) as pool:
                    for attempt in [pool.submit(one, number) for number in range(1, most + 1)]:
                        attempt.result()
        except BaseException as error:
            self.abandon([each.work for each in made.values()], type(error).__name__)
            raise
        ended = self.end([made[number] for number in sorted(made)])
        best = min(ended, key=_rank)
        return RunResult(run_id=run_id, best=best, attempts=ended, distilled=best.distilled, fault=best.fault)


def _guarded(call: Callable[[], T]) -> T | None:
    """The result of a call, or None when the memory fails: the agent goes on."""
    try:
        return call()
    except WellwornError as error:
        _noted(error)
        return None


def _noted(error: Exception) -> str:
    _log.warning("a task goes on without the bank: %s", type(error).__name__)
    return f"{type(error).__name__}: {text_of(error)}"
