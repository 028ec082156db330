"""What an agent is given for a task, and what the bank gives back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from wellworn.core.values import Hit, Recall
from wellworn.tasks.distill import Distilled
from wellworn.tasks.judge import Verdict
from wellworn.tasks.prompts import prompt
from wellworn.tasks.shown import shown_attempts
from wellworn.tasks.tasks import Run, Task
from wellworn.tasks.trajectory import Trajectory


@dataclass(frozen=True, kw_only=True)
class Work:
    """A task to be done, with what the bank knows for it."""

    task: Task | None
    """The attempt as the store keeps it; None when the store could not be written to."""
    task_id: str
    agent_id: str
    query: str
    domain: str
    recall: Recall | None
    number: int = 1
    previous: tuple[tuple[Trajectory, Verdict], ...] = ()
    """Earlier attempts of a sequential run, oldest first."""

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
        name = "refine" if len(self.previous) == 1 else "refine_again"
        shown = [(trajectory, verdict.success) for trajectory, verdict in self.previous]
        return f"{prompt(name)}\n{shown_attempts(shown)}"


Execute = Callable[[Work], Any]
"""Does the work: anything that `trajectory_of` takes may come back. What it raises is a failed attempt."""


@dataclass(frozen=True, kw_only=True)
class TaskResult:
    """How one attempt ended."""

    task_id: str
    id: str
    """The attempt's own; empty when it could not be kept."""
    state: str
    trajectory: Trajectory
    verdict: Verdict
    recall: Recall | None
    entry_ids: tuple[str, ...] = ()
    """Items that came out of it, new or strengthened."""
    value: Any = None
    """What the agent gave back."""
    exception: BaseException | None = None
    distilled: Distilled | None = None
    fault: str = ""
    """What went wrong with the memory meanwhile; the agent was not stopped by it."""

    @property
    def success(self) -> bool:
        return self.verdict.success

    @property
    def output(self) -> str:
        return self.trajectory.output


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """How several attempts at one task ended, the best of them first named."""

    run: Run | None
    best: TaskResult
    attempts: Sequence[TaskResult] = field(default_factory=list)
    entry_ids: tuple[str, ...] = ()
    distilled: Distilled | None = None
    fault: str = ""

    @property
    def success(self) -> bool:
        return self.best.success


def best_of(results: Sequence[TaskResult]) -> TaskResult:
    """The attempt to go with: one that succeeded before one that failed; then the surer success or the less sure
    failure, the fewer steps, the earlier."""

    def rank(result: TaskResult) -> tuple[bool, float, int]:
        sure = result.verdict.confidence if result.success else -result.verdict.confidence
        return (not result.success, -sure, len(result.trajectory.steps))

    return min(results, key=rank)
