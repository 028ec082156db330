"""A linear correction of the base score on named features, learned from citations one recall at a time.

    score = base + clip(w·f - mean of w·f over the 30 best by base, ±3)        w = theta[1:] / max(theta[0], 0.25)

theta[0] is a weight on the base score itself, 1 at the start. It absorbs how noisy the citations are: noise flattens
the likelihood, and without theta[0] the fit can only flatten by driving the strongest features down. Rows that were
not shown count too, because labels exist only for what a ranking chose to show. Each of the two prevents a collapse
under noise. There is no step size, decay or randomness: on one machine the same recalls give the same bits.

This module knows neither whose ranker it is nor whether it may serve.
"""

from __future__ import annotations

import math
from collections.abc import Set

import numpy as np
import numpy.typing as npt

from wellworn.core.dataclass import dataclass
from wellworn.core.lazy import cached_property
from wellworn.core.values import filled
from wellworn.learning.records import LoggedRecall

Array = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Places = npt.NDArray[np.intp]

PLACES = 30
"""How far down the base order a recall teaches and a correction is centred (15 and 60 measured the same or worse)."""
UNSHOWN_LOG = float(np.log(0.3))
"""A row that was not shown is unlabelled, not rejected, so it counts as three tenths of a row."""
MAX_CORRECTION = 3.0
"""The most a learned ranking may move a row, in units of the base score."""
MIN_BASE_WEIGHT = 0.25
"""Dividing by less would blow up the other weights when feedback is nearly pure noise."""
L2 = 10.0
"""Curvature at the start: how firmly weights are held where they began."""
PERSON_START = 100
"""The prior counts as this many recalls when a person starts from it."""
MAX_WEIGHT = 10.0
"""Honest weights stay below 2. Beyond 10 every correction is clipped anyway, and a state driven there by a burst of
absurd recalls would need as many good ones to come back."""
MAX_BASE_WEIGHT = 3.0
"""theta[0] divides the weights: far above 1 it would make every correction vanish. Below 0 it would say that the base
ranking is inverted, which is a reason to distrust the feedback, not to learn from it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Example:
    """What one recall with its citations teaches: numbers only. The first `shown` rows were shown, in that order."""

    base: Array
    """Base score of each row, shape (c,)."""
    features: Array
    """Shape (c, F)."""
    shown: int
    cited: Flags
    """Which of the shown rows were cited, shape (shown,)."""

    @cached_property
    def best(self) -> Places:
        return best_places(self.base)

    @cached_property
    def rows(self) -> Array:
        """Base score and features of the rows that teach: all shown, then the best others by base. Shape (n, F+1)."""
        best = self.best
        places = np.concatenate([np.arange(self.shown), best[best >= self.shown]])
        rows = np.empty((len(places), 1 + self.features.shape[1]))
        rows[:, 0], rows[:, 1:] = self.base[places], self.features[places]
        return rows

    @cached_property
    def wanted(self) -> Array | None:
        """Where a ranking should put its weight: the mean of the cited rows, shape (F+1,). None when none was cited, or
        more than half: that does not say what is better, and inverted feedback looks like it."""
        cited = self.rows[: self.shown][self.cited]
        return np.add.reduce(cited) / len(cited) if 0 < len(cited) <= self.shown / 2 else None


def best_places(base: Array) -> Places:
    """Places of the `PLACES` best by base score, best first; ties keep their order."""
    return np.argsort(-base, kind="stable")[:PLACES]


def example_of(recall: LoggedRecall, cited_nos: Set[int], alive: set[int]) -> Example | None:
    """The recall as an example, or None when nothing of what it showed is left.

    Rows that are not in `alive` are dropped, because forgotten entries teach nothing, and so are rows with a score or
    feature that is not finite. Cited numbers that were not shown are ignored.
    """
    nos, shown = recall.nos, recall.shown
    # In C order, so that a recall in memory and the same recall read from the log give the same bits.
    base, features = recall.base.astype(np.float64, order="C"), recall.features.astype(np.float64, order="C")
    if not (alive.issuperset(nos) and np.isfinite(base).all() and np.isfinite(features).all()):
        finite = np.isfinite(base) & np.isfinite(features).all(axis=1)
        kept = [place for place, no in enumerate(nos) if finite[place] and no in alive]
        nos, shown = [nos[place] for place in kept], sum(place < shown for place in kept)
        base, features = base[kept], features[kept]
    if not shown:
        return None
    cited = np.array([no in cited_nos for no in nos[:shown]], dtype=np.bool_)
    return Example(base=base, features=features, shown=shown, cited=cited)


@dataclass(frozen=True, kw_only=True, eq=False)
class Ranker:
    """Weights, with the curvature of all recalls they were learned from (an online Laplace approximation)."""

    theta: Array
    """Weight on the base score, then one per feature, shape (F+1,)."""
    precision: Array
    """Shape (F+1, F+1), symmetric positive definite."""
    steps: int
    """Recalls learned from since this ranker started."""

    @classmethod
    def fresh(cls, width: int) -> Ranker:
        """The ranker that changes nothing, for this many features."""
        return cls(theta=np.eye(1, width + 1)[0], precision=L2 * np.eye(width + 1), steps=0)

    @property
    def width(self) -> int:
        """The number of features."""
        return len(self.theta) - 1

    @cached_property
    def weights(self) -> Array:
        """What each feature adds to the base score, shape (F,)."""
        return self.theta[1:] / max(float(self.theta[0]), MIN_BASE_WEIGHT)

    @cached_property
    def finite(self) -> bool:
        """False when the state is damaged and must neither serve nor learn."""
        return bool(np.isfinite(self.theta).all() and np.isfinite(self.precision).all())

    def person(self) -> Ranker:
        """A person's ranker: starts at this prior, held there by `PERSON_START` recalls' worth of its curvature."""
        start = L2 * np.eye(self.width + 1)
        share = min(1.0, PERSON_START / max(self.steps, 1))
        return Ranker(theta=self.theta, precision=start + (self.precision - start) * share, steps=0)

    def correction(self, base: Array, features: Array, best: Places | None = None) -> Array:
        """What to add to each base score, shape (c,), within ±`MAX_CORRECTION` for any input.

        Centred before it is clipped: uncentred, all rows can end at one bound, and learning has no effect.
        """
        if len(base) == 0:
            return np.zeros(0)
        with np.errstate(all="ignore"):
            raw = features @ self.weights  # (c, F) · (F,) -> (c,)
            top = raw[best_places(base) if best is None else best]
            centred: Array = raw - np.add.reduce(top) / len(top)
        centred[np.isnan(centred)] = 0.0  # a damaged row is ranked as if untrained
        return np.minimum(np.maximum(centred, -MAX_CORRECTION), MAX_CORRECTION)

    def updated(self, example: Example) -> Ranker:
        """The ranker after one more recall; itself when nothing was cited or the step is not finite.

        One Newton step on the loss -Σ target · log p over the rows that teach, with p = softmax(z·theta + log count)
        and target 1/c on each of c cited rows:

            A += Σ p (z - z̄)(z - z̄)ᵀ,  z̄ = Σ p z            theta += A⁻¹ Σ (target - p) z
        """
        with np.errstate(all="ignore"):
            z, wanted = example.rows, example.wanted  # (n, F+1), (F+1,)
            if wanted is None:
                return self
            logits = z @ self.theta
            logits[example.shown :] += UNSHOWN_LOG
            p = np.exp(logits - np.maximum.reduce(logits))  # (n,)
            p /= np.add.reduce(p)
            mean = p @ z  # (F+1,)
            spread = np.sqrt(p)[:, None] * (z - mean)  # (n, F+1)
            precision = self.precision + spread.T @ spread
            try:
                theta: Array = self.theta + np.linalg.solve(precision, wanted - mean)
            except np.linalg.LinAlgError:
                return self
            if not math.isfinite(np.add.reduce(theta) + np.add.reduce(precision, axis=None)):
                return self
        theta = np.minimum(np.maximum(theta, -MAX_WEIGHT), MAX_WEIGHT)
        theta[0] = min(max(theta[0], 0.0), MAX_BASE_WEIGHT)
        return filled(Ranker, theta=theta, precision=precision, steps=self.steps + 1, finite=True)
