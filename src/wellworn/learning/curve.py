"""How learning came to where it is: the log replayed, one point after each outcome of a person."""

from __future__ import annotations

from collections import deque

from wellworn.core.values import CurvePoint, Partition
from wellworn.learning.guard import Z_GAIN
from wellworn.learning.learner import Learner

RECENT = 20
"""Outcomes that the citation rate is taken over."""


def curve(learner: Learner, partition: Partition) -> list[CurvePoint]:
    """The points of one person since the last reset, in order."""
    points: list[CurvePoint] = []
    recent: deque[float] = deque(maxlen=RECENT)
    for step in learner.replay(partition.tenant).steps():
        if step.partition != partition:
            continue
        recent.append(float(step.example.cited.mean()))
        person = step.after.person
        gain = person.guard.gain
        points.append(
            CurvePoint(
                number=len(points) + 1,
                at=step.at,
                cited_rate=sum(recent) / len(recent),
                gain=gain.mean,
                bound=gain.bound(-Z_GAIN) if gain.n >= 2 else 0.0,
                level=person.level,
                weights=dict(zip(learner.names, person.own.weights.tolist(), strict=True)),
            )
        )
    return points
