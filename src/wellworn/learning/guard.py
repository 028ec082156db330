"""Whether feedback can be trusted, and whether the learned ranking beats the untrained one, judged from the log alone.

Agreement: does the BASE order of the shown rows predict what was cited? Honest citations agree with any ranking that is
better than chance; random and inverted ones do not. Gain: does the learned order predict it better, judged
before it learns from it? Both compare orders (AUC), because a better temperature alone already improves a likelihood.

Trust is gained by a lower bound and lost by the mean, so that it does not flip back and forth near the bar. It is lost
at once when feedback turns: the shortfall is a running sum of what agreement lacks to half of its own long mean, in
units of its variance and never below 0 (Page's CUSUM). Honest outcomes keep it near 0; an inverted outcome adds about
4, a random one about 1.

Bounds are mean ± z standard errors and are checked after every outcome. This module knows neither rankers nor stores.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from wellworn.core.values import altered

MEMORY = 500
"""Outcomes that evidence remembers (exponentially), so that drift is seen."""
LEAST = 30
"""Outcomes before any verdict."""
AGREEMENT_BAR = 0.05
"""Agreement must be at least this. Measured: honest 0.13-0.30, random 0.00, inverted -0.30, "the longest" 0.04."""
Z_AGREE = 2.0
SLACK = 0.5
"""Agreement below this share of its own mean adds to the shortfall."""
TURNED = 50.0
"""The shortfall at which feedback has turned. Measured on LoCoMo: no false alarm in 28,469 honest outcomes (perfect,
9/5 and 30/15 citations); inverted feedback is noticed after 12 to 16 outcomes, random feedback after 36 to 93."""
USUAL_VARIANCE = 0.1
"""Variance of honest agreement with five shown. Where it is larger, as with two shown, more outcomes are needed."""
Z_GAIN = 1.0
TENANT_SHARE = 100
"""The tenant's gain counts as at most this many outcomes of a person."""
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
        if self.n < 2.0:
            return math.inf
        return math.sqrt(max(self.variance, MIN_VARIANCE) / self.n)

    def bound(self, z: float) -> float:
        """mean + z standard errors: a lower bound for z < 0, an upper one for z > 0."""
        return self.mean + z * self.error

    def __str__(self) -> str:
        return f"{self.mean:.2f} ± {self.error:.2f} over {self.n:.0f} outcomes"


NO_EVIDENCE = Evidence()


@dataclass(frozen=True, kw_only=True)
class Guard:
    """The evidence about one person, whether they are trusted, and whether the learned ranking beats the base."""

    agree: Evidence = NO_EVIDENCE
    """Since they began, or since their feedback turned."""
    gain: Evidence = NO_EVIDENCE
    beats: bool = False
    trusted: bool = False
    """Feedback agrees with the untrained ranking clearly better than chance."""
    lost: bool = False
    """They were trusted and are no longer: nothing is learned from them until they are again."""
    shortfall: float = 0.0

    def see(self, found: tuple[float, float] | None) -> Guard:
        """With one more outcome, as `compare` judges it: the learned ranking BEFORE its update."""
        if found is None:
            return self
        agreement, gain = found
        shortfall = self._shortfall(agreement) if self.trusted else 0.0
        if shortfall > TURNED:
            return Guard(gain=self.gain, lost=True)
        agree = self.agree.add(agreement)
        trusted = agree.mean >= AGREEMENT_BAR if self.trusted else earned(agree)
        return altered(
            self,
            agree=agree,
            gain=self.gain if self.lost else self.gain.add(gain),
            trusted=trusted,
            lost=(self.lost or self.trusted) and not trusted,
            shortfall=shortfall if trusted else 0.0,
        )

    def _shortfall(self, agreement: float) -> float:
        lacks = SLACK * self.agree.mean - agreement
        return max(0.0, self.shortfall + lacks / max(self.agree.variance, USUAL_VARIANCE))

    def serve(self, tenant_gain: Evidence) -> bool:
        """Whether a learned ranking may serve: on when the gain's lower bound is above 0, off when its upper is below.

        In between it stays as it was. For a person who is not trusted only the tenant's gain counts, and where that is
        too thin the answer is no.
        """
        gain = self.gain.plus(tenant_gain, TENANT_SHARE) if self.trusted else tenant_gain
        if gain.n < LEAST or gain.bound(Z_GAIN) < 0.0:
            return False
        return self.beats or gain.bound(-Z_GAIN) > 0.0

    def distrust(self) -> str:
        """Why this feedback is not trusted, in one line; empty while it is, or while there are too few outcomes."""
        if self.trusted or self.agree.n < LEAST:
            return f"feedback turned, {self.agree.n:.0f} outcomes ago" if self.lost else ""
        if self.agree.bound(Z_AGREE) < 0.0:
            return f"feedback contradicts the untrained ranking: agreement {self.agree}"
        return f"feedback agrees with the untrained ranking no better than chance: agreement {self.agree}"


def earned(agree: Evidence) -> bool:
    """Whether this agreement is enough to begin to trust."""
    return agree.n >= LEAST and agree.bound(-Z_AGREE) >= AGREEMENT_BAR


def auc(scores: list[float], cited: list[bool]) -> float:
    """Share of (cited, not cited) pairs in the right order, minus 1/2; ties count half. Needs both sorts."""
    above = [score for score, flag in zip(scores, cited, strict=True) if flag]
    below = [score for score, flag in zip(scores, cited, strict=True) if not flag]
    right = sum(1.0 if a > b else 0.5 if a == b else 0.0 for a in above for b in below)
    return right / (len(above) * len(below)) - 0.5


def compare(base: list[float], learned: list[float], cited: list[bool]) -> tuple[float, float] | None:
    """Agreement of the base and gain of the learned ranking; None when all or none were cited (no pairs)."""
    if all(cited) or not any(cited):
        return None
    agreement = auc(base, cited)
    return agreement, auc(learned, cited) - agreement
