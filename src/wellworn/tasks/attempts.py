"""One attempt at a task: found what helps, done, and told. A fault of the memory never stops the agent.

What the caller got wrong is an error before anything is done. From then on, whatever the store or the embedder raises
is noted in the result, and the work goes on without.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from wellworn.core.clock import NewId
from wellworn.core.errors import WellwornError
from wellworn.core.values import Recall, Scope
from wellworn.tasks.distill import Distilled
from wellworn.tasks.engine import Engine
from wellworn.tasks.items import bank_partition
from wellworn.tasks.judge import Verdict, Verify, judge, verified
from wellworn.tasks.learning import Finisher
from wellworn.tasks.tasks import NEXT, Task, Tasks
from wellworn.tasks.trajectory import Trajectory, bounded, mapped, said, trajectory_of
from wellworn.tasks.work import Execute, TaskResult, Work

_log = logging.getLogger("wellworn.tasks")


@dataclass(frozen=True, kw_only=True)
class Order:
    """What a caller wants done, checked."""

    task_id: str
    agent_id: str
    query: str
    domain: str
    scope: Scope
    session_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class Made:
    """An attempt whose work is over: judged, but not yet distilled."""

    work: Work
    trajectory: Trajectory
    verdict: Verdict
    value: Any = None  # whatever the agent gave back
    exception: BaseException | None = None
    fault: str = ""

    def result(self, task: Task | None = None, *, distilled: Distilled | None = None, fault: str = "") -> TaskResult:
        kept = task or self.work.task
        return TaskResult(
            task_id=self.work.task_id,
            id="" if kept is None else kept.id,
            state="" if kept is None else kept.state,
            trajectory=self.trajectory,
            verdict=self.verdict,
            recall=self.work.recall,
            entry_ids=() if kept is None else kept.entry_ids,
            value=self.value,
            exception=self.exception,
            distilled=distilled,
            fault=self.fault or fault,
        )


@dataclass(frozen=True, kw_only=True)
class Done:
    """What came of an agent's work: what it gave back, or what it raised."""

    trajectory: Trajectory
    value: Any = None  # whatever the agent gave back
    exception: Exception | None = None


def done_with(value: object, work: Work) -> Done:
    """Work that ended; raises where what it gave back is no trajectory, which is a failure of its own."""
    return Done(trajectory=trajectory_of(value, query=work.query), value=value)


def failed_with(error: Exception, work: Work) -> Done:
    """Work that ended in an exception, with what that carries of it."""
    trajectory = _so_far(error, work.query)
    told = bounded(replace(trajectory, error=f"{type(error).__name__}: {said(error)}"))
    return Done(trajectory=told, exception=error)


class Attempts:
    """Begins attempts, does their work, and ends them."""

    def __init__(self, engine: Engine, tasks: Tasks, finisher: Finisher, new_id: NewId) -> None:
        self._engine = engine
        self._tasks = tasks
        self._finisher = finisher
        self._new_id = new_id

    def begin(
        self,
        order: Order,
        look: Callable[[], Recall],
        *,
        number: int = 1,
        run_id: str = "",
        previous: tuple[tuple[Trajectory, Verdict], ...] = (),
    ) -> Work:
        """An attempt, written down and given what the bank knows."""
        kept: Task | None = self._guarded(
            lambda: self._tasks.open(self._task(order, number, run_id), home=order.scope.home())
        )
        recall = self._guarded(look)
        if kept is not None:
            opened = kept
            shown = () if recall is None else tuple(hit.entry.id for hit in recall.hits)
            recall_id = "" if recall is None else recall.id
            kept = self._guarded(lambda: self._tasks.move(opened, "executing", recall_id=recall_id, shown=shown))
        return Work(
            task=kept,
            task_id=order.task_id,
            agent_id=order.agent_id,
            query=order.query,
            domain=order.domain,
            recall=recall,
            number=number,
            previous=previous,
        )

    def do(self, work: Work, execute: Execute, verify: Verify | None) -> Made:
        """The work done and judged; what it raises is a failure, and what interrupts it leaves it abandoned."""
        try:
            done = done_with(execute(work), work)
        except Exception as error:  # an agent that fails is what this learns from
            done = failed_with(error, work)
        except BaseException as error:
            self.abandon(work, type(error).__name__)
            raise
        return self.settle(work, done, verify)

    def settle(self, work: Work, done: Done, verify: Verify | None) -> Made:
        """Work that is over, looked at by the caller's own check, kept and judged."""
        made = self.told(work, verified(done.trajectory, verify))
        return replace(made, value=done.value, exception=done.exception)

    def told(self, work: Work, trajectory: Trajectory) -> Made:
        """A trajectory for an attempt that was begun: kept, then judged."""
        if work.task is None:
            return Made(work=work, trajectory=trajectory, verdict=judge(trajectory), fault="the store was not writable")
        task = work.task
        try:
            scrubbed = mapped(trajectory, self._engine.scrubbing.sent(task.partition))
            task = self._tasks.move(task, "judging", trajectory=scrubbed)
            task = self._finisher.judge(task)
            verdict = task.verdict or judge(scrubbed)
        except Exception as error:  # of the store, a model, or ours: the agent has done its work
            _note(error)
            fault = f"{type(error).__name__}: {said(error)}"
            return Made(work=replace(work, task=task), trajectory=trajectory, verdict=judge(trajectory), fault=fault)
        return Made(work=replace(work, task=task), trajectory=trajectory, verdict=verdict)

    def end(self, made: Made) -> TaskResult:
        """The attempt distilled, kept and reinforced."""
        task = made.work.task
        if task is None or made.fault:
            return made.result()
        try:
            ended, distilled = self._finisher.finish(task)
        except Exception as error:  # of the store, a model, or ours: the agent has done its work
            _note(error)
            return made.result(fault=f"{type(error).__name__}: {said(error)}")
        return made.result(ended, distilled=distilled)

    def abandon(self, work: Work, why: str) -> None:
        """The work will not come to an end."""
        task = work.task
        if task is not None and "abandoned" in NEXT[task.state]:
            self._guarded(lambda: self._tasks.move(task, "abandoned", why=why))

    def _task(self, order: Order, number: int, run_id: str) -> Task:
        now, partition = self._engine.clock(), bank_partition(order.scope)
        return Task(
            id=self._new_id(),
            partition=partition,
            task_id=order.task_id,
            agent_id=order.agent_id,
            query=self._engine.scrubbing.sent(partition)(order.query),
            domain=order.domain,
            session_id=order.session_id,
            number=number,
            run_id=run_id,
            created_at=now,
            updated_at=now,
        )

    def _guarded(self, call: Callable[[], Any]) -> Any:  # what the call gives, or None
        try:
            return call()
        except WellwornError as error:
            _note(error)
            return None


def _so_far(error: Exception, query: str) -> Trajectory:
    """What an exception carries of the work until then (`error.trajectory`), if it is one."""
    try:
        return trajectory_of(getattr(error, "trajectory", None), query=query)
    except Exception:  # whatever an exception of anybody's does when it is looked at
        return Trajectory(query=query)


def _note(error: Exception) -> None:
    _log.warning("a task goes on without the bank: %s", type(error).__name__)
