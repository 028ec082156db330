"""A linear correction of the base score on named features, learned from citations, one recall at a time.

    score = base + clip(w·f - mean of w·f over the 30 best by base, ±3)        w = theta[1:] / max(theta[0], 0.25)

theta[0] is a weight on the base score itself, 1 at the start. It takes up how noisy the citations are: noise flattens
the likelihood, and without theta[0] the fit can flatten only by driving the strongest features down. Unshown rows count
too, since labels exist only for what a ranking chose to show. Each of the two prevents the collapse under noise.

There is no step size, decay, averaging or second pass, and nothing random. Knows neither whose ranker this is nor
whether it may serve.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from wellworn.core.values import filled
from wellworn.learning import exact
from wellworn.learning.exact import Array
from wellworn.learning.example import Example, Places, best_places

UNSHOWN_LOG = -1.2039728043259361
"""log 0.3: an unshown row is unlabelled, not refused, so it counts as three tenths of a row."""
MAX_CORRECTION = 3.0
"""The most a learned ranking may move a row, in units of the base score."""
MIN_BASE_WEIGHT = 0.25
"""Dividing by less would blow up the other weights whenever feedback is nearly pure noise."""
L2 = 10.0
"""Curvature at the start: how firmly weights are held where they began."""
PERSON_START = 100
"""The prior counts as this many recalls when a person starts from it."""
MAX_WEIGHT = 10.0
"""Honest weights stay below 2. Beyond 10 every correction is at its clip anyway, and a state driven there by a burst of
absurd recalls would need as many good ones to come back."""
MAX_BASE_WEIGHT = 3.0
"""theta[0] divides the weights: far above 1 it would silently make every correction vanish. Below 0 it would say that
the base ranking is inverted, which is a reason to distrust the feedback, not to learn from it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Ranker:
    """Weights with the curvature of all recalls they were learned from (an online Laplace approximation)."""

    theta: Array
    """Weight on the base score, then one per feature, shape (F+1,)."""
    precision: Array
    """Shape (F+1, F+1), symmetric positive definite."""
    steps: int
    """Recalls learned from since this ranker started."""

    @classmethod
    def fresh(cls, width: int) -> Ranker:
        """The ranker that changes nothing, for this many features."""
        theta = np.zeros(width + 1)
        theta[0] = 1.0
        return cls(theta=theta, precision=L2 * np.eye(width + 1), steps=0)

    @property
    def width(self) -> int:
        """How many features it weighs."""
        return len(self.theta) - 1

    @cached_property
    def weights(self) -> Array:
        """What each feature adds to the base score, shape (F,)."""
        found: Array = self.theta[1:] / max(float(self.theta[0]), MIN_BASE_WEIGHT)
        return found

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

        `best` are the places of the best by base, where they are known already. Centred before it is clipped:
        uncentred, all rows end at one bound, and learning is silently dead.
        """
        if len(base) == 0:
            return np.zeros(0)
        with np.errstate(all="ignore"):
            raw = exact.times(features, self.weights)  # (c, F) · (F,) -> (c,)
            best = best_places(base) if best is None else best
            centred = raw - exact.total(raw[best]) / len(best)
        # What is no number moves nothing: a damaged row is ranked as if untrained.
        centred[np.isnan(centred)] = 0.0
        return np.minimum(np.maximum(centred, -MAX_CORRECTION), MAX_CORRECTION)

    def updated(self, example: Example) -> Ranker:
        """The ranker after one more recall; itself when nothing was cited or the step is not finite."""
        return updated([self], example)[0]


def updated(rankers: Sequence[Ranker], example: Example) -> list[Ranker]:
    """Each of the rankers after one more recall, as by itself: numpy asks as much for one small array as for two.

    Loss: -Σ target · log p over the rows taught, p = softmax(z·theta + log count), target 1/c on each of c cited.
    """
    if not example.cited.any():
        return [*rankers]
    with np.errstate(all="ignore"):
        gradient, curvature = _slopes(np.array([ranker.theta for ranker in rankers]), example)
        return [_moved(ranker, gradient[n], ranker.precision + curvature[n]) for n, ranker in enumerate(rankers)]


def _moved(ranker: Ranker, gradient: Array, precision: Array) -> Ranker:
    """theta += A⁻¹ Σ (target - p) z, clipped; A is the precision with this recall's curvature."""
    step = exact.solve(precision, gradient)
    theta = [a + b for a, b in zip(ranker.theta.tolist(), step, strict=True)]
    if not all(map(math.isfinite, theta)):  # a precision that is not finite has no solution
        return ranker
    theta = [min(max(weight, -MAX_WEIGHT), MAX_WEIGHT) for weight in theta]
    theta[0] = min(max(theta[0], 0.0), MAX_BASE_WEIGHT)
    # `finite` is known, and asked for next.
    return filled(Ranker, theta=np.array(theta), precision=precision, steps=ranker.steps + 1, finite=True)


def _slopes(theta: Array, example: Example) -> tuple[Array, Array]:
    """Gradient (R, F+1) and curvature (R, F+1, F+1) of the log likelihood of a recall, at each of R thetas."""
    z = example.lesson  # (n, F+1)
    logits = exact.total(z.T[:, :, None] * theta.T[:, None, :])  # (n, R)
    logits[example.shown :] += UNSHOWN_LOG
    p = exact.softmax(logits)[:, :, None]  # (n, R, 1)
    mean = exact.total(p * z[:, None, :])  # (R, F+1), z̄ = Σ p z
    # Σ p (z - z̄)(z - z̄)ᵀ. With a root of p on either side it is symmetric to the bit.
    spread = np.sqrt(p) * (z[:, None, :] - mean)  # (n, R, F+1)
    return example.wanted - mean, exact.halved(spread[:, :, :, None] * spread[:, :, None, :])
