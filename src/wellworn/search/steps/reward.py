"""What a search was worth: from what became of it to one number.

    reward = 1.0 · success + 0.3 · (1 - min(tokens / 100,000, 1)), within ±1
    success = the quality, when it was used; 0.3 when asked anew; -0.5 when ignored; 0 without a signal

So a search that costs more must be used better. Knows neither plans nor stores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from wellworn.learning.outcome import OutcomeInput

Kind = Literal["used", "refined", "ignored", "none"]

SUCCESS_WEIGHT, EFFICIENCY_WEIGHT = 1.0, 0.3
MOST_TOKENS = 100_000
REFINED, IGNORED = 0.3, -0.5
ENOUGH_CITED = 2
"""Hits that must be cited for full quality: what is searched in several steps needs more than one."""


@dataclass(frozen=True, kw_only=True)
class Became:
    """What became of a search, and who says so."""

    kind: Kind
    quality: float = 0.0
    """0 … 1, of `used` only."""
    by: str = "told"
    """`told` (by `outcome`), `assembly` (it was put into a context), `session` (asked anew, or left alone)."""

    @property
    def success(self) -> float:
        return {"used": self.quality, "refined": REFINED, "ignored": IGNORED, "none": 0.0}[self.kind]


def became(told: OutcomeInput) -> Became:
    """An outcome as it was told: cited hits are a quality, none cited is ignored; work that failed counts alike."""
    if told.kind == "cited":
        count = len(told.places or ())
        return Became(kind="used", quality=min(count / ENOUGH_CITED, 1.0)) if count else Became(kind="ignored")
    if told.kind == "used":
        return Became(kind="used", quality=float(told.value["quality"]))
    if told.kind == "verdict":
        return Became(kind="used", quality=1.0) if told.value["success"] else Became(kind="ignored")
    return Became(kind="refined" if told.kind == "refined" else "ignored")


def reward_of(outcome: Became, tokens: int) -> float:
    """The reward of a search that used so many tokens."""
    efficiency = 1.0 - min(tokens / MOST_TOKENS, 1.0)
    return max(-1.0, min(1.0, SUCCESS_WEIGHT * outcome.success + EFFICIENCY_WEIGHT * efficiency))
