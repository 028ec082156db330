"""Means with their uncertainty: bootstrap over questions. Knows nothing about what is averaged.

A question asked several times (once per seed) is one unit, since its answers go together. Questions of one
conversation go together too, which this does not model: true intervals are wider.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np

DRAWS = 2000
_SEED = 20260101


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A mean and the bounds between which 95 % of the resampled means lie."""

    mean: float
    low: float
    high: float
    n: int
    """Units, not values."""

    def __str__(self) -> str:
        return f"{self.mean:.1f} ({self.low:.1f} … {self.high:.1f})"


def interval(values: Iterable[tuple[Hashable, float]]) -> Interval:
    """The mean of all values, resampled by unit; the same values give the same bounds."""
    sums: dict[Hashable, list[float]] = {}
    for unit, value in values:
        sums.setdefault(unit, []).append(value)
    if not sums:
        return Interval(mean=0.0, low=0.0, high=0.0, n=0)
    totals = np.array([sum(found) for found in sums.values()])
    counts = np.array([len(found) for found in sums.values()])
    picked = np.random.default_rng(_SEED).integers(0, len(sums), size=(DRAWS, len(sums)))
    means = totals[picked].sum(axis=1) / counts[picked].sum(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return Interval(mean=float(totals.sum() / counts.sum()), low=float(low), high=float(high), n=len(sums))
