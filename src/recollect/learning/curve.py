"""How learning came to where it is: the log replayed, one point after each outcome of a person."""

from __future__ import annotations

from collections import deque

from recollect.learning.guard import Z_GAIN
from recollect.learning.learner import Learner
from recollect.types import CurvePoint, Shelf

RECENT = 20
"""Outcomes that the citation rate is taken over."""


def curve(learner: Learner, shelf: Shelf) -> list[CurvePoint]:
    """The points of one person since the last reset, in order."""
    points: list[CurvePoint] = []
    recent: deque[float] = deque(maxlen=RECENT)
    for step in learner.replay(shelf.tenant).steps():
        if step.shelf != shelf:
            continue
        recent.append(float(step.example.cited.mean()))
        person = step.after.person
        gain = person.guard.gain
        points.append(CurvePoint(
            number=len(points) + 1, at=step.at, cited_rate=sum(recent) / len(recent), gain=gain.mean,
            bound=gain.bound(-Z_GAIN) if gain.n >= 2 else 0.0, level=person.level,
            weights=dict(zip(learner.names, person.own.weights.tolist(), strict=True)),
        ))  # fmt: skip
    return points
