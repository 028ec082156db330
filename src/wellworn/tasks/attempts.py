"""Attempts at a task: retrieve what helps, run the agent, judge, hand over to `finish`. One, or several compared.

What the caller got wrong is an error before anything is done. From then on, whatever the store or the embedder raises
is reported in the result, and the agent works without the bank. Several attempts (memory-aware test-time scaling) are
all judged first and distilled together, in one transaction with the record of the run. A budget that is used up ends a
run early; what was made until then is kept.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from threading import Event as Flag
from typing import Any, TypedDict, TypeVar

from wellworn.core.errors import BudgetExceeded, InvalidInput, WellwornError
from wellworn.core.values import Hit, Partition, Recall, Scope
from wellworn.ingest.validate import checked_line, checked_query, checked_session_id
from wellworn.tasks.distill import Distilled, Judged
from wellworn.tasks.engine import Parts
from wellworn.tasks.finish import Finisher
from wellworn.tasks.items import bank_partition, checked_domain
from wellworn.tasks.judge import Verdict, Verify, judge, verified
from wellworn.tasks.prompting import prompt, shown_attempts
from wellworn.tasks.tasks import NEXT, Run, Task, Tasks, best_of, run_of
from wellworn.tasks.trajectory import Trajectory, bounded, scrubbed, text_of, trajectory_of

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
    """What the task is about, as `web.admin`. What it teaches is stored under it."""
    within: str | None
    """Where to look for items, as `web.*`; default the task's own domain."""
    scope: Scope | None
    session_id: str | None
    """The session it belongs to: forgetting the session forgets the task."""


def planned(spec: TaskSpec, scope: Scope, parts: Parts) -> Task:
    """The attempt that a caller wants, checked before anything is done. It is not stored yet."""
    task_id, session_id = checked_line("task_id", spec.get("task_id", "")), spec.get("session_id")
    if not task_id.strip():
        raise InvalidInput("task_id", "is empty", "give the task a name; an id will do")
    now = parts.clock()
    return Task(
        id=parts.new_id(),
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
    def domain(self) -> str:
        return self.task.domain

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
        shown = [(trajectory, verdict.success) for trajectory, verdict in self.previous]
        return f"{prompt('refine' if len(shown) == 1 else 'refine_again')}\n{shown_attempts(shown)}"


Execute = Callable[[Work], Any]
"""The agent. It may return anything that `trajectory_of` takes. An exception is a failed attempt."""


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """Who is to do what: everything that an attempt needs."""

    plan: Task
    home: Partition
    """Where its session is stored."""
    look: Callable[[], Recall]
    """Retrieves the items for the task."""
    execute: Execute
    verify: Verify | None = None


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

    @property
    def output(self) -> str:
        return self.trajectory.output


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """How several attempts at one task ended."""

    run: Run | None
    best: TaskResult
    attempts: Sequence[TaskResult] = ()
    distilled: Distilled | None = None
    fault: str = ""

    @property
    def entry_ids(self) -> tuple[str, ...]:
        """Items that came from it, new or strengthened."""
        return () if self.run is None else self.run.entry_ids

    @property
    def success(self) -> bool:
        return self.best.success


class Attempts:
    """Begins attempts, runs the agent, and ends them."""

    def __init__(self, parts: Parts, tasks: Tasks, finisher: Finisher) -> None:
        self._parts = parts
        self._tasks = tasks
        self._finisher = finisher

    def begin(self, given: Assignment, previous: tuple[Judged, ...] = ()) -> Work:
        """An attempt, stored and given what the bank knows."""
        plan = given.plan

        def opened() -> Task:
            query = self._parts.scrubbing.sent(plan.partition)(plan.query)
            return self._tasks.open(replace(plan, query=query), home=given.home)

        task, recall = _guarded(opened), _guarded(given.look)
        if task is not None:
            shown = tuple(hit.entry.id for hit in recall.hits) if recall else ()
            changes = {"recall_id": recall.id if recall else "", "shown": shown}
            task = _guarded(partial(self._tasks.move, task, "executing", **changes))
        work = Work(task=task or plan, query=plan.query, recall=recall, previous=previous)
        return work if task is not None else replace(work, stored=False)

    def run(self, work: Work, execute: Execute, verify: Verify | None) -> TaskResult:
        """Let the agent work, then judge. An exception is a failure; an interrupt leaves the attempt abandoned."""
        value, exception = None, None
        try:
            value = execute(work)
            trajectory = trajectory_of(value, query=work.query)
        except Exception as error:  # an agent that fails is what this learns from
            exception = error
            told = f"{type(error).__name__}: {text_of(error)}"
            trajectory = bounded(replace(_until(error, work.query), error=told))
        except BaseException as error:
            self.abandon([work], type(error).__name__)
            raise
        trajectory = verified(trajectory, verify)
        task, verdict, fault = work.task, None, "" if work.stored else "the store was not writable"
        try:
            if work.stored:
                task = self._tasks.move(task, "judging", trajectory=self._scrubbed(trajectory, task.partition))
                task = self._finisher.judge(task)
                verdict = task.judged
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

    def _scrubbed(self, trajectory: Trajectory, partition: Partition) -> Trajectory:
        on = self._parts.scrubbing.on
        return scrubbed(trajectory, self._parts.scrubbing.sent(partition)) if on else trajectory

    def end(self, made: TaskResult) -> TaskResult:
        """The attempt distilled, stored and reinforced."""
        if made.fault:
            return made
        try:
            ended, distilled = self._finisher.finish(made.work.task)
        except Exception as error:  # of the store, a model, or ours: the agent has done its work
            return replace(made, fault=_noted(error))
        return replace(made, work=replace(made.work, task=ended), distilled=distilled)

    def abandon(self, works: Sequence[Work], why: str) -> None:
        """The work will not come to an end."""
        for work in works:
            if work.stored and "abandoned" in NEXT[work.task.state]:
                _guarded(partial(self._tasks.move, work.task, "abandoned", why=why))

    # -- several -----------------------------------------------------------------------------------------------------

    def parallel(self, given: Assignment, *, k: int, at_once: int) -> RunResult:
        """k attempts that know nothing of each other, at most `at_once` at a time."""
        stop, made = Flag(), dict[int, TaskResult]()
        run_id = self._parts.new_id()

        def one(number: int) -> None:
            if stop.is_set():
                return
            try:
                made[number] = self._one(given, run_id, "parallel", number)
            except BaseException:
                stop.set()
                raise
            if isinstance(made[number].exception, BudgetExceeded):
                stop.set()

        with self._giving_up(made), ThreadPoolExecutor(max_workers=at_once) as pool:
            for attempt in [pool.submit(one, number) for number in range(1, k + 1)]:
                attempt.result()
        return self._end_run([made[number] for number in sorted(made)])

    def sequential(self, given: Assignment, *, r: int) -> RunResult:
        """Up to r attempts, each shown those before it, until one succeeds."""
        made, run_id = dict[int, TaskResult](), self._parts.new_id()
        with self._giving_up(made):
            for number in range(1, r + 1):
                previous = tuple((one.trajectory, one.verdict) for one in made.values())
                made[number] = self._one(given, run_id, "sequential", number, previous)
                if made[number].success or isinstance(made[number].exception, BudgetExceeded):
                    break
        return self._end_run([*made.values()])

    def _one(
        self, given: Assignment, run_id: str, mode: str, number: int, previous: tuple[Judged, ...] = ()
    ) -> TaskResult:
        now, own = self._parts.clock(), self._parts.new_id()
        plan = replace(given.plan, id=own, run_id=run_id, mode=mode, number=number, created_at=now, updated_at=now)
        return self.run(self.begin(replace(given, plan=plan), previous), given.execute, given.verify)

    @contextmanager
    def _giving_up(self, made: Mapping[int, TaskResult]) -> Iterator[None]:
        """Attempts of a run that is interrupted are abandoned: they cannot be compared."""
        try:
            yield
        except BaseException as error:
            self.abandon([one.work for one in made.values()], type(error).__name__)
            raise

    def _end_run(self, made: list[TaskResult]) -> RunResult:
        """All that was made, compared, distilled together and stored."""
        place = best_of([(one.trajectory, one.verdict) for one in made])
        tasks = [one.work.task for one in made if one.work.task.state == "distilling"]
        if not tasks:
            return RunResult(run=None, best=made[place], attempts=made, fault=made[place].fault)
        try:
            ended, distilled = self._finisher.finish_run(tasks)
        except Exception as error:  # of the store, a model, or ours: the agents have done their work
            return RunResult(run=run_of(tasks), best=made[place], attempts=made, fault=_noted(error))
        own = {task.id: task for task in ended}
        made = [
            replace(one, work=replace(one.work, task=own.get(one.id, one.work.task)), distilled=distilled)
            for one in made
        ]
        return RunResult(run=run_of(ended), best=made[place], attempts=made, distilled=distilled)


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


def _until(error: Exception, query: str) -> Trajectory:
    """What an exception carries of the work until then (`error.trajectory`), if it does."""
    try:
        return trajectory_of(getattr(error, "trajectory", None), query=query)
    except Exception:  # whatever anybody's exception does when it is looked at
        return Trajectory(query=query)
