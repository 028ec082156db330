"""What a search taught, as the log of outcomes keeps it: numbers and names, so that a policy can be made again from it.

A row of kind `searched` stands behind the outcome that was told of a search, one of kind `inferred` says what its
context or its session showed:

    {"shape", "choice", "score", "near", "reward", "seconds", "trusted"}

Whether the person was trusted is part of it: what they told before waits until they are. Learned as it comes or from
the log it is the same step over the same numbers, so both lead to the same state bit for bit. Knows no store.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from wellworn.core.errors import InvalidInput
from wellworn.search.steps.choices import CHOICES, Choice
from wellworn.search.steps.cues import Shape
from wellworn.search.steps.routing import SHAPES
from wellworn.search.steps.trainer import Policy

SEARCHED, INFERRED = "searched", "inferred"
KINDS = (SEARCHED, INFERRED)
"""Kinds of rows in the log of outcomes that hold lessons."""
FIELDS = ("shape", "choice", "score", "near", "reward", "seconds", "trusted")
MOST_WAITING = 200
"""Lessons of a person not yet trusted that are held; the oldest go first."""


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """One search and its reward."""

    shape: Shape
    choice: Choice
    reward: float
    score: float = 0.0
    """What the router gave the question."""
    near: bool = False
    """It was left plain, or tried, beside those that are recursive: evidence for routing alone."""
    seconds: float = 0.0
    trusted: bool = False


@dataclass(frozen=True, kw_only=True)
class Learned:
    """A policy, and what waits until a person is trusted."""

    policy: Policy
    waiting: tuple[Lesson, ...] = field(default=())

    def after(self, lesson: Lesson, *, kind: str) -> Learned:
        """After one row of the log."""
        if kind == INFERRED:
            return Learned(policy=_step(self.policy, lesson, counts=False), waiting=self.waiting)
        if not lesson.trusted:
            return Learned(policy=self.policy, waiting=(*self.waiting, lesson)[-MOST_WAITING:])
        policy = self.policy
        for one in (*self.waiting, lesson):
            policy = _step(policy, one, counts=True)
        return Learned(policy=policy)


def _step(policy: Policy, lesson: Lesson, *, counts: bool) -> Policy:
    return policy.learned(
        lesson.shape,
        lesson.choice,
        lesson.reward,
        counts=counts,
        score=lesson.score,
        near=lesson.near,
        seconds=lesson.seconds,
    )


def plain_lesson(lesson: Lesson) -> dict[str, Any]:
    """As the log keeps it."""
    return {name: getattr(lesson, name) for name in FIELDS}


def lesson_of(value: object) -> Lesson:
    """The lesson in a row of the log; an error when it is none."""
    if isinstance(value, dict) and set(value) == set(FIELDS):
        numbers = [value[name] for name in ("reward", "score", "seconds")]
        flags = [value[name] for name in ("near", "trusted")]
        if (
            value["shape"] in SHAPES
            and value["choice"] in CHOICES
            and all(isinstance(flag, bool) for flag in flags)
            and all(isinstance(one, int | float) and math.isfinite(one) for one in numbers)
        ):
            return Lesson(**value)
    raise InvalidInput("value", f"{value!r:.60} is no lesson of a search", f"it has {', '.join(FIELDS)}")
