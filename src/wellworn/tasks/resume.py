"""What a crash left behind, gone on with or given up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime

from wellworn.core.errors import ModelFailed, StoreError
from wellworn.core.values import Partition
from wellworn.tasks.judge import Verdict
from wellworn.tasks.learning import Finisher
from wellworn.tasks.tasks import NEXT, UNFINISHED, Overtaken, Task, Tasks
from wellworn.tasks.trajectory import Trajectory
from wellworn.tasks.work import TaskResult, best_of

LOST = "the process ended before the work did"
MOST = 10_000


def resume(tasks: Tasks, finisher: Finisher, partition: Partition, before: datetime) -> list[Task]:
    """Attempts that nothing has happened to since a moment, each brought to its end.

    Those of one run are distilled together, as they would have been. One that somebody else goes on with is left.
    """
    left = [task for task in tasks.all(partition, states=UNFINISHED, limit=MOST) if task.updated_at <= before]
    ended: list[Task] = []
    runs: dict[str, list[Task]] = {}
    for task in reversed(left):  # oldest first
        with _ending(tasks, [task]):
            if task.state in ("ready", "executing"):
                ended.append(tasks.move(task, "abandoned", why=LOST))
            elif task.run_id and task.state in ("judging", "distilling"):
                judged = finisher.judge(task) if task.state == "judging" else task
                runs.setdefault(task.run_id, []).append(judged)
            else:
                ended.append(finisher.finish(task)[0])
    for run_id, made in runs.items():
        with _ending(tasks, made):
            ended += _finish_run(tasks, finisher, partition, run_id, made)
    _give_up_runs(tasks, partition, before)
    return ended


def _finish_run(tasks: Tasks, finisher: Finisher, partition: Partition, run_id: str, made: list[Task]) -> list[Task]:
    run = tasks.run(partition, run_id)
    if run is None:  # forgotten, or never written: each for itself
        return [finisher.finish(task)[0] for task in made]
    best = best_of([_result(task) for task in made]).id
    run = replace(run, attempts=tuple(task.id for task in made))
    return finisher.finish_run(made, run, best=best)[0]


@contextmanager
def _ending(tasks: Tasks, attempts: Sequence[Task]) -> Iterator[None]:
    """Attempts that cannot be ended, whatever is wrong with them, must not keep the others from it: they are abandoned.

    A store or a model that does not answer is nobody's fault: that goes on up, and another time will do.
    """
    try:
        yield
    except Overtaken:
        return
    except (StoreError, ModelFailed):
        raise
    except Exception as error:
        for task in attempts:
            now = tasks.get(task.partition, task.id)
            if now is not None and "abandoned" in NEXT[now.state]:
                tasks.move(now, "abandoned", why=type(error).__name__)


def _give_up_runs(tasks: Tasks, partition: Partition, before: datetime) -> None:
    """Runs of which nothing is left to go on with."""
    open_ = {task.run_id for task in tasks.all(partition, states=UNFINISHED, limit=MOST)}
    for run in tasks.runs(partition, states=["executing"], limit=MOST):
        if run.updated_at <= before and run.id not in open_:
            tasks.put_run(replace(run, state="abandoned", why=LOST))


def _result(task: Task) -> TaskResult:
    return TaskResult(
        task_id=task.task_id,
        id=task.id,
        state=task.state,
        recall=None,
        trajectory=task.trajectory or Trajectory(query=task.query),
        verdict=task.verdict or Verdict(success=False, confidence=0.5),
    )
