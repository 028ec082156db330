"""One search as it is written down: what was asked, what was done and found, what it cost, what became of it.

Kept as a record of kind `search` under the recall's id. It names the entries that were shown, so it goes with any of
them, and it goes with its partition. Times of actions are seconds since the search began.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from wellworn.core.values import Partition, Step
from wellworn.search.steps.choices import Choice
from wellworn.search.steps.cues import Shape
from wellworn.search.steps.lessons import Lesson
from wellworn.search.steps.reward import Became, reward_of
from wellworn.store.port import Record

KIND = "search"
OPEN, TOLD, TAUGHT = "open", "told", "taught"
"""States: nothing is known yet; it is known what became of it; trusted, and so evidence for what serves."""


@dataclass(frozen=True, kw_only=True)
class Trajectory:
    """A search that the router thought worth several steps, or nearly."""

    id: str
    partition: Partition
    query: str
    shape: Shape
    choice: Choice
    at: datetime
    explored: bool = False
    """Whether it was a try."""
    actions: tuple[dict[str, Any], ...] = ()
    shown: tuple[str, ...] = ()
    """Ids of the hits."""
    tokens: int = 0
    depth: int = 0
    score: float = 0.0
    """What the router gave the question."""
    near: bool = False
    """It was left plain, or tried, beside those that are recursive."""
    seconds: float = 0.0
    outcome: Became | None = None
    state: str = OPEN
    reward: float | None = field(default=None)

    def ended(self, outcome: Became) -> Trajectory:
        """With what became of it, and so its reward."""
        return replace(self, outcome=outcome, reward=reward_of(outcome, self.tokens), state=TOLD)

    def lesson(self, *, trusted: bool) -> Lesson:
        """What it teaches, once it has ended."""
        return Lesson(
            shape=self.shape,
            choice=self.choice,
            reward=self.reward or 0.0,
            score=round(self.score, 6),
            near=self.near,
            seconds=float(math.floor(self.seconds)),
            trusted=trusted,
        )

    def record(self, now: datetime) -> Record:
        body: dict[str, Any] = {
            "query": self.query,
            "shape": self.shape,
            "choice": self.choice,
            "explored": self.explored,
            "actions": list(self.actions),
            "results": len(self.shown),
            "tokens": self.tokens,
            "depth": self.depth,
            "score": self.score,
            "near": self.near,
            "seconds": self.seconds,
            "outcome": None
            if self.outcome is None
            else {"kind": self.outcome.kind, "quality": self.outcome.quality, "by": self.outcome.by},
            "reward": self.reward,
        }
        return Record(
            partition=self.partition,
            kind=KIND,
            key=self.id,
            state=self.state,
            body=body,
            names=tuple(dict.fromkeys(self.shown)),
            created_at=self.at,
            updated_at=max(now, self.at),
        )


def trajectory_of(record: Record) -> Trajectory:
    """The search in a record."""
    body = record.body
    told = body["outcome"]
    return Trajectory(
        id=record.key,
        partition=record.partition,
        query=body["query"],
        shape=body["shape"],
        choice=body["choice"],
        at=record.created_at,
        explored=body["explored"],
        actions=tuple(body["actions"]),
        shown=record.names,
        tokens=body["tokens"],
        depth=body["depth"],
        state=record.state,
        reward=body["reward"],
        score=body.get("score", 0.0),
        near=body.get("near", False),
        seconds=body.get("seconds", 0.0),
        outcome=None if told is None else Became(kind=told["kind"], quality=told["quality"], by=told["by"]),
    )


def actions_of(steps: tuple[Step, ...]) -> tuple[dict[str, Any], ...]:
    """Steps with the time at which each ended; one that is deeper ended before the call that it belongs to."""
    ended, actions = 0.0, []
    for step in steps:
        ended += step.seconds if step.depth == 0 else 0.0
        actions.append(
            {
                "action": step.action,
                "detail": step.detail,
                "found": step.found,
                "seconds": round(step.seconds, 6),
                "ended": round(ended if step.depth == 0 else ended + step.seconds, 6),
                "depth": step.depth,
                "problem": step.problem,
            }
        )
    return tuple(actions)
