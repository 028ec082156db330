"""Memory-aware test-time scaling: several attempts at one task, compared, so that each teaches more than alone.

Parallel attempts know nothing of each other; sequential ones are shown those before them, until one succeeds. Either
way all are judged first and distilled together (self-contrast), in one transaction with the record of the run. A budget
that is used up ends a run early: what was made until then is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Event as Flag

from wellworn.core.clock import Clock, NewId
from wellworn.core.errors import BudgetExceeded, WellwornError
from wellworn.core.values import Recall
from wellworn.tasks.attempts import Attempts, Made, Order
from wellworn.tasks.distill import Distilled
from wellworn.tasks.items import bank_partition
from wellworn.tasks.judge import Verify
from wellworn.tasks.learning import Finisher
from wellworn.tasks.tasks import Run, Task, Tasks
from wellworn.tasks.trajectory import said
from wellworn.tasks.work import Execute, RunResult, TaskResult, best_of

CONCURRENT = 3


class Matts:
    """Makes runs of several attempts."""

    def __init__(self, attempts: Attempts, tasks: Tasks, finisher: Finisher, *, clock: Clock, new_id: NewId) -> None:
        self._attempts = attempts
        self._tasks = tasks
        self._finisher = finisher
        self._clock = clock
        self._new_id = new_id

    def parallel(
        self,
        order: Order,
        look: Callable[[], Recall],
        execute: Execute,
        verify: Verify | None,
        *,
        k: int,
        concurrency: int,
    ) -> RunResult:
        """k attempts, at most `concurrency` at a time."""
        run = self.open(order, "parallel")
        stop = Flag()

        def one(number: int) -> Made | None:
            if stop.is_set():
                return None
            work = self._attempts.begin(order, look, number=number, run_id=run.id)
            made = self._attempts.do(work, execute, verify)
            if isinstance(made.exception, BudgetExceeded):
                stop.set()
            return made

        with ThreadPoolExecutor(max_workers=concurrency) as pool:
            made = [made for made in pool.map(one, range(1, k + 1)) if made is not None]
        return self.end(run, made)

    def sequential(
        self, order: Order, look: Callable[[], Recall], execute: Execute, verify: Verify | None, *, r: int
    ) -> RunResult:
        """Up to r attempts, each shown those before it, until one succeeds."""
        run = self.open(order, "sequential")
        made: list[Made] = []
        for number in range(1, r + 1):
            previous = tuple((one.trajectory, one.verdict) for one in made)
            work = self._attempts.begin(order, look, number=number, run_id=run.id, previous=previous)
            made.append(self._attempts.do(work, execute, verify))
            if made[-1].verdict.success or isinstance(made[-1].exception, BudgetExceeded):
                break
        return self.end(run, made)

    def open(self, order: Order, mode: str) -> Run:
        """A run, written down."""
        now = self._clock()
        run = Run(
            id=self._new_id(),
            partition=bank_partition(order.scope),
            task_id=order.task_id,
            mode=mode,
            created_at=now,
            updated_at=now,
        )
        try:
            return self._tasks.put_run(run)
        except WellwornError:  # the attempts say so too, each for itself
            return run

    def give_up(self, run: Run, why: str) -> None:
        """The run will not come to an end."""
        try:
            self._tasks.put_run(replace(run, state="abandoned", why=why))
        except WellwornError:
            return  # `resume` finds it

    def end(self, run: Run, made: list[Made]) -> RunResult:
        """All that was made, compared, distilled together and kept with the run."""
        kept = [one.work.task for one in made if one.work.task is not None and one.work.task.state == "distilling"]
        best = best_of([one.result() for one in made])
        if not kept:
            return RunResult(run=None, best=best, attempts=[one.result() for one in made], fault=best.fault)
        run = replace(run, attempts=tuple(task.id for task in kept))
        try:
            ended, run, distilled = self._finisher.finish_run(kept, run, best=best.id)
        except Exception as error:  # of the store, a model, or ours: the agents have done their work
            fault = f"{type(error).__name__}: {said(error)}"
            return RunResult(run=run, best=best, attempts=[one.result() for one in made], fault=fault)
        results = [_result(one, ended, distilled) for one in made]
        return RunResult(
            run=run,
            best=next(one for one in results if one.id == best.id),
            attempts=results,
            entry_ids=run.entry_ids,
            distilled=distilled,
        )


def _result(made: Made, ended: list[Task], distilled: Distilled) -> TaskResult:
    own = {task.id: task for task in ended}
    task = made.work.task
    return made.result(None if task is None else own.get(task.id), distilled=distilled)
