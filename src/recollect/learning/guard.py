"""Whether feedback can be believed, and whether the learned ranking beats the untrained one: from the log alone.

Agreement: does the BASE order among the shown predict what was cited? Honest citations agree with any ranking that is
better than chance; random, inverted and positional ones do not. Gain: does the learned order predict it better, judged
before it learns from it? Both compare orders (AUC), since likelihood is won by a better temperature alone.

Bounds are mean ± z standard errors and are looked at after every outcome, so 97.7 % and 84 % are per look. Knows
neither rankers nor stores.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from recollect.learning.exact import Array
from recollect.learning.example import Flags

MEMORY = 500
"""Outcomes that evidence remembers (exponentially), so that drift is seen."""
LEAST = 30
"""Outcomes before any verdict."""
AGREEMENT_BAR = 0.05
"""Agreement must be at least this. Measured: honest 0.13-0.30, random 0.00, inverted -0.30, "the longest" 0.04."""
Z_AGREE = 2.0
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
        return Evidence(n=self.n * keep + 1.0, total=self.total * keep + x, squares=self.squares * keep + x * x)

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
    def error(self) -> float:
        """Standard error of the mean; infinite below two values."""
        if self.n < 2.0:
            return math.inf
        return math.sqrt(max(self.squares / self.n - self.mean * self.mean, MIN_VARIANCE) / self.n)

    def bound(self, z: float) -> float:
        """mean + z standard errors: a lower bound for z < 0, an upper one for z > 0."""
        return self.mean + z * self.error if z else self.mean

    def __str__(self) -> str:
        return f"{self.mean:.2f} ± {self.error:.2f} over {self.n:.0f} outcomes"


@dataclass(frozen=True, kw_only=True)
class Guard:
    """A person's evidence, and whether the learned ranking was found to beat the base."""

    agree: Evidence = field(default_factory=Evidence)
    gain: Evidence = field(default_factory=Evidence)
    beats: bool = False

    def see(self, base: Array, learned: Array, cited: Flags) -> Guard:
        """With one more outcome: scores of the shown rows under both rankings, the learned one BEFORE its update."""
        found = compare(base, learned, cited)
        if found is None:
            return self
        return Guard(agree=self.agree.add(found[0]), gain=self.gain.add(found[1]), beats=self.beats)

    @property
    def trusted(self) -> bool:
        """Feedback agrees with the untrained ranking clearly better than chance."""
        return self.agree.n >= LEAST and self.agree.bound(-Z_AGREE) >= AGREEMENT_BAR

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
        if self.trusted or self.agree.n < LEAST:
            return ""
        if self.agree.bound(Z_AGREE) < 0.0:
            return f"feedback contradicts the untrained ranking: agreement {self.agree}"
        return f"feedback agrees with the untrained ranking no better than chance: agreement {self.agree}"


def auc(scores: Array, cited: Flags) -> float:
    """Share of (cited, not cited) pairs in the right order, minus 1/2; equals count half. Needs both sorts."""
    above, below = scores[cited][:, None], scores[~cited][None, :]
    right = int((above > below).sum()) + 0.5 * int((above == below).sum())
    return right / (above.size * below.size) - 0.5


def compare(base: Array, learned: Array, cited: Flags) -> tuple[float, float] | None:
    """Agreement of the base and gain of the learned ranking; None when all or none were cited (no pairs)."""
    if cited.all() or not cited.any():
        return None
    agreement = auc(base, cited)
    return agreement, auc(learned, cited) - agreement
