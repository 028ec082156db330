"""Simulated citations: what a model that was shown some memories would have cited, with the mistakes it makes.

Knows which of the shown are evidence, nothing about memories. Every draw comes from the generator that is given.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from wellworn.core.errors import InvalidInput

Feedback = Literal["honest", "random", "inverted", "first", "first-two", "last"]
FEEDBACKS: tuple[str, ...] = get_args(Feedback)

RANDOM_SHARE = 0.3
"""How often random feedback cites, about as often as honest feedback does with five shown."""


@dataclass(frozen=True, kw_only=True)
class Citing:
    """How citations come about.

    `honest` cites evidence, but leaves out a share `miss` of it and cites a share `false` of the rest. `random` cites
    each with the same chance, `inverted` exactly what is not evidence. `first`, `first-two` and `last` go by the place
    alone, whatever stands there.
    """

    feedback: str = "honest"
    miss: float = 0.0
    false: float = 0.0

    def __post_init__(self) -> None:
        if self.feedback not in FEEDBACKS:
            raise InvalidInput("--feedback", f"{self.feedback!r} is not known", f"one of {', '.join(FEEDBACKS)}")

    def cited(self, evidence: Sequence[bool], rng: random.Random) -> list[int]:
        """Places of the cited among the shown. One draw for each that is shown, whatever the feedback."""
        draws = [rng.random() for _ in evidence]
        return [
            place
            for place, (useful, draw) in enumerate(zip(evidence, draws, strict=True))
            if self._cites(useful, draw, place=place, last=len(evidence) - 1)
        ]

    def _cites(self, useful: bool, draw: float, *, place: int, last: int) -> bool:
        if self.feedback == "honest":
            return draw >= self.miss if useful else draw < self.false
        if self.feedback == "random":
            return draw < RANDOM_SHARE
        if self.feedback == "inverted":
            return not useful
        return place in {"first": (0,), "first-two": (0, 1), "last": (last,)}[self.feedback]

    def __str__(self) -> str:
        if self.feedback != "honest":
            return self.feedback
        return f"{100 * self.miss:g} % missed, {100 * self.false:g} % false"


def parse_noise(text: str) -> tuple[float, float]:
    """Shares missed and false from text such as `0.09,0.05`, or `9,5` in percent (when one is above 1)."""
    try:
        miss, false = (float(part.strip().removesuffix("%")) for part in text.split(","))
    except ValueError:
        miss = false = -1.0
    if max(miss, false) > 1 or "%" in text:
        miss, false = miss / 100, false / 100
    if not (0 <= miss <= 1 and 0 <= false <= 1):
        raise InvalidInput("--noise", f"{text!r} is not two shares", "as in 0.09,0.05, or in percent 9,5")
    return miss, false
