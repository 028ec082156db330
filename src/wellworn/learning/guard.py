"""Whether a person's feedback can be predicted, and whether the learned ranking predicts it better than the untrained one.

Both are judged on outcomes before they teach, among the rows that were shown (AUC - 1/2, so chance is 0):

    agreement = how well the LEARNED order predicts what was cited
    gain      = agreement - the same of the untrained order

Citations that follow any rule the features can express are predictable, whether or not the untrained ranking agrees with
them. Random ones are not. Inverted ones cite most of what is shown: that does not say what is better, so it teaches
nothing, and until a person is trusted it counts as chance.

Trust is gained by a lower bound (mean - z standard errors) and lost by the mean, so that it does not flip back and forth
near the bar. Feedback has turned when the shortfall is large: a running sum of what agreement lacks to half of its own
long mean, in units of its variance, never below 0 (Page's CUSUM). This module knows neither rankers nor stores.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from wellworn.core.dataclass import dataclass
from wellworn.core.values import altered

MEMORY = 500
"""Outcomes that evidence remembers (exponentially), so that drift is seen."""
LEAST = 30
"""Outcomes before any verdict."""
AGREEMENT_BAR = 0.05
"""Agreement must be at least this. Measured: honest 0.13-0.40, random 0.00, inverted -0.18."""
Z_AGREE = 2.0
SLACK = 0.5
"""Agreement below this share of its own mean adds to the shortfall."""
TURNED = 50.0
"""The shortfall at which feedback has turned."""
USUAL_VARIANCE = 0.1
"""Variance of honest agreement with five shown. Where it is larger, as with two shown, more outcomes are needed."""
Z_GAIN = 1.0
MIN_VARIANCE = 0.01
"""A handful of equal values must not look like certainty."""


class Evidence(NamedTuple):
    """A mean with its uncertainty, over a fading memory."""

    n: float = 0.0
    total: float = 0.0
    squares: float = 0.0

    def add(self, x: float) -> Evidence:
        """One more value; all earlier ones fade a little."""
        keep = 1.0 - 1.0 / MEMORY
        return Evidence(self.n * keep + 1.0, self.total * keep + x, self.squares * keep + x * x)

    def plus(self, other: Evidence, most: float = math.inf) -> Evidence:
        """Both together, the other counting as at most `most` values."""
        share = min(1.0, most / other.n) if other.n > 0.0 else 0.0
        return Evidence(*(mine + share * theirs for mine, theirs in zip(self, other, strict=True)))

    @property
    def mean(self) -> float:
        """0 when empty."""
        return self.total / self.n if self.n > 0.0 else 0.0

    @property
    def variance(self) -> float:
        """Of one value; 0 when empty."""
        return self.squares / self.n - self.mean * self.mean if self.n > 0.0 else 0.0

    @property
    def error(self) -> float:
        """Standard error of the mean; infinite below two values."""
        return math.sqrt(max(self.variance, MIN_VARIANCE) / self.n) if self.n >= 2.0 else math.inf

    def bound(self, z: float) -> float:
        """mean + z standard errors: a lower bound for z < 0, an upper one for z > 0."""
        return self.mean + z * self.error

    def sure(self, z: float) -> float:
        """The lower bound; 0 below two values."""
        return self.bound(-z) if self.n >= 2.0 else 0.0

    def __str__(self) -> str:
        return f"{self.mean:.2f} ± {self.error:.2f} over {self.n:.0f} outcomes"


NO_EVIDENCE = Evidence()


@dataclass(frozen=True, kw_only=True)
class Guard:
    """The evidence about one person, whether they are trusted, and whether the learned ranking beats the base."""

    agree: Evidence = NO_EVIDENCE
    """How well their own ranker predicted their citations."""
    gain: Evidence = NO_EVIDENCE
    """How much better than the base it did."""
    beats: bool = False
    """They are trusted, and the gain is proven."""
    trusted: bool = False
    """Their citations are predicted clearly better than by chance."""
    shortfall: float = 0.0

    def see(self, found: tuple[float, float]) -> Guard:
        """With one more outcome: its agreement and gain, both from BEFORE it teaches."""
        agreement, gain = found
        lacks = (SLACK * self.agree.mean - agreement) / max(self.agree.variance, USUAL_VARIANCE)
        agree = self.agree.add(agreement)
        trusted = agree.mean >= AGREEMENT_BAR if self.trusted else earned(agree)
        shortfall = max(0.0, self.shortfall + lacks) if self.trusted else 0.0
        gained = self.gain.add(gain)
        beats = trusted and proven(gained, self.beats)
        return altered(self, agree=agree, gain=gained, beats=beats, trusted=trusted, shortfall=shortfall)

    @property
    def turned(self) -> bool:
        """Feedback is not what it was: what was learned from it says nothing about what comes."""
        return self.shortfall > TURNED

    def distrust(self) -> str:
        """Why this feedback is not trusted, in one line; empty while it is, or while there are too few outcomes."""
        if self.trusted or self.agree.n < LEAST:
            return ""
        return f"nothing that was learned predicts this feedback better than chance: agreement {self.agree}"


def proven(gain: Evidence, before: bool = False) -> bool:
    """Whether a ranking with this gain may serve: on when its lower bound is above 0, off when its upper is below.

    In between it stays as it was `before`.
    """
    if gain.n < LEAST or gain.bound(Z_GAIN) < 0.0:
        return False
    return before or gain.bound(-Z_GAIN) > 0.0


def earned(agree: Evidence) -> bool:
    """Whether this agreement is enough to begin to trust."""
    return agree.n >= LEAST and agree.bound(-Z_AGREE) >= AGREEMENT_BAR


def auc(scores: list[float], cited: list[bool]) -> float:
    """Share of (cited, not cited) pairs in the right order, minus 1/2; ties count half. Needs both sorts."""
    above = [score for score, flag in zip(scores, cited, strict=True) if flag]
    below = [score for score, flag in zip(scores, cited, strict=True) if not flag]
    right = sum(1.0 if a > b else 0.5 if a == b else 0.0 for a in above for b in below)
    return right / (len(above) * len(below)) - 0.5
