"""Whether feedback can be believed, and whether the learned ranking beats the untrained one: from the log alone.

Agreement: does the BASE order among the shown predict what was cited? Honest citations agree with any ranking that is
better than chance; random, inverted and positional ones do not. Gain: does the learned order predict it better, judged
before it learns from it? Both compare orders (AUC), since likelihood is won by a better temperature alone.

Trust is gained by a bound and lost by the mean, so that it does not flap near the bar. It is lost at once by feedback
that turns: the shortfall is a running sum of what agreement lacks to half of its own long mean, in units of its
variance and never below 0 (Page's CUSUM). Honest outcomes keep it near 0; inverted ones add some 4 each, random ones 1.

Feedback by place is told from feedback by content where neighbours had changed places (`swaps`): a running sum of log
likelihood ratios, never below 0, of "the better one is cited one time in four" against "55 times in a hundred".

Bounds are mean ± z standard errors and are looked at after every outcome, so 97.7 % and 84 % are per look. Knows
neither rankers nor stores.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from wellworn.core.values import filled
from wellworn.learning.exact import Array
from wellworn.learning.example import Flags

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
9 / 5 and 30 / 15 citations); turned to inverted it is seen after 12 to 16 outcomes, to random after 36 to 93."""
USUAL_VARIANCE = 0.1
"""Variance of honest agreement with five shown (0.10). Where it is larger, as with two shown, it takes more to tell."""
FOR_PLACE, FOR_CONTENT = math.log(0.75 / 0.45), math.log(0.55 / 0.25)
"""What a swapped pair adds when the one that stood first was cited, and takes off when the better one was."""
BY_PLACE = 5.0
"""The sum at which feedback goes by the place; at half of it, it does so no longer."""
Z_GAIN = 1.0
TENANT_SHARE = 100
"""The tenant's gain counts as at most this many outcomes of a person."""
MIN_VARIANCE = 0.01
"""A handful of equal values must not look like certainty."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A mean with its uncertainty, over a fading memory."""

    n: float = 0.0
    total: float = 0.0
    squares: float = 0.0

    def add(self, x: float) -> Evidence:
        """One more value; all earlier ones fade a little."""
        keep = 1.0 - 1.0 / MEMORY
        n, total, squares = self.n * keep + 1.0, self.total * keep + x, self.squares * keep + x * x
        return filled(Evidence, n=n, total=total, squares=squares)

    def plus(self, other: Evidence, most: float = math.inf) -> Evidence:
        """Both together, the other counting as at most `most` values."""
        share = min(1.0, most / other.n) if other.n > 0.0 else 0.0
        return Evidence(
            n=self.n + share * other.n,
            total=self.total + share * other.total,
            squares=self.squares + share * other.squares,
        )

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
        return self.mean + z * self.error if z else self.mean

    def __str__(self) -> str:
        return f"{self.mean:.2f} ± {self.error:.2f} over {self.n:.0f} outcomes"


@dataclass(frozen=True, kw_only=True)
class Guard:
    """A person's evidence, whether they are believed, and whether the learned ranking was found to beat the base."""

    agree: Evidence = field(default_factory=Evidence)
    """Since they began, or since their feedback turned."""
    gain: Evidence = field(default_factory=Evidence)
    beats: bool = False
    trusted: bool = False
    """Feedback agrees with the untrained ranking clearly better than chance."""
    lost: bool = False
    """They were trusted and are no longer: nothing is learned from them until they are again."""
    shortfall: float = 0.0
    placed: float = 0.0
    """How much speaks for feedback by place."""
    positional: bool = False

    def see(self, found: tuple[float, float] | None, by_place: Sequence[bool] = ()) -> Guard:
        """With one more outcome, as `compare` judges it: the learned ranking BEFORE its update.

        `by_place` says of each swapped pair of which one was cited whether that was the one that stood first.
        """
        if found is None:
            return self
        placed = self.placed
        for first in by_place:
            placed = min(max(0.0, placed + (FOR_PLACE if first else -FOR_CONTENT)), BY_PLACE)
        positional = placed >= (BY_PLACE / 2 if self.positional else BY_PLACE)
        shortfall = self._shortfall(found[0]) if self.trusted else 0.0
        if shortfall > TURNED:
            return Guard(gain=self.gain, lost=True, placed=placed, positional=positional)
        agree = self.agree.add(found[0])
        trusted = not positional and (agree.mean >= AGREEMENT_BAR if self.trusted else earned(agree))
        return filled(
            Guard,
            agree=agree,
            gain=self.gain if self.lost else self.gain.add(found[1]),
            beats=self.beats,
            trusted=trusted,
            lost=(self.lost or self.trusted) and not trusted,
            shortfall=shortfall if trusted else 0.0,
            placed=placed,
            positional=positional,
        )

    def _shortfall(self, agreement: float) -> float:
        lacks = SLACK * self.agree.mean - agreement
        return max(0.0, self.shortfall + lacks / max(self.agree.variance, USUAL_VARIANCE))

    def serve(self, tenant_gain: Evidence) -> bool:
        """Whether a learned ranking may serve: on when the gain's lower bound is above 0, off when its upper is below.

        In between it stays as it was. A person who is not trusted speaks neither for nor against: then only the
        tenant's gain counts, and where that is too thin the answer is no.
        """
        gain = self.gain.plus(tenant_gain, TENANT_SHARE) if self.trusted else tenant_gain
        if gain.n < LEAST or gain.bound(Z_GAIN) < 0.0:
            return False
        return self.beats or gain.bound(-Z_GAIN) > 0.0

    def distrust(self) -> str:
        """Why this feedback is not believed, in one line; empty while it is, or while there are too few outcomes."""
        if self.positional:
            return "feedback follows the place, not what stands there: swapped neighbours are cited where they stand"
        if self.trusted or self.agree.n < LEAST:
            return f"feedback turned, {self.agree.n:.0f} outcomes ago" if self.lost else ""
        if self.agree.bound(Z_AGREE) < 0.0:
            return f"feedback contradicts the untrained ranking: agreement {self.agree}"
        return f"feedback agrees with the untrained ranking no better than chance: agreement {self.agree}"


def earned(agree: Evidence) -> bool:
    """Whether this agreement is enough to begin to trust."""
    return agree.n >= LEAST and agree.bound(-Z_AGREE) >= AGREEMENT_BAR


def auc(scores: Array, cited: Flags) -> float:
    """Share of (cited, not cited) pairs in the right order, minus 1/2; equals count half. Needs both sorts."""
    return auc_of(scores.tolist(), cited.tolist())


def auc_of(scores: list[float], cited: list[bool]) -> float:
    """The same of lists: in plain Python, as there are some five."""
    above = [score for score, flag in zip(scores, cited, strict=True) if flag]
    below = [score for score, flag in zip(scores, cited, strict=True) if not flag]
    right = 0.0
    for a in above:
        for b in below:
            right += 1.0 if a > b else 0.5 if a == b else 0.0
    return right / (len(above) * len(below)) - 0.5


def compare(base: Array, learned: Array, cited: Flags) -> tuple[float, float] | None:
    """Agreement of the base and gain of the learned ranking; None when all or none were cited (no pairs)."""
    flags = cited.tolist()
    if all(flags) or not any(flags):
        return None
    agreement = auc_of(base.tolist(), flags)
    return agreement, auc_of(learned.tolist(), flags) - agreement
