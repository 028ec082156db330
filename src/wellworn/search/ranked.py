"""Candidates with the factors of their scores, and their order. Knows nothing about where the factors come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from wellworn.core.values import filled


@dataclass(frozen=True, kw_only=True, eq=False)
class Ranked:
    """Candidates with their factors, best first."""

    rows: npt.NDArray[np.intp]
    names: list[str]
    weights: npt.NDArray[np.float64]
    values: npt.NDArray[np.float64]
    """Shape (rows, names)."""

    @property
    def scores(self) -> npt.NDArray[np.float64]:
        return self.values @ self.weights

    def take(self, places: Sequence[int] | npt.NDArray[np.intp]) -> Ranked:
        order = np.asarray(places, dtype=np.intp)
        values = self.values.take(order, axis=0)
        return filled(Ranked, rows=self.rows.take(order), names=self.names, weights=self.weights, values=values)

    def with_factor(self, name: str, values: npt.NDArray[np.float64] | npt.NDArray[np.bool_], weight: float) -> Ranked:
        """The ranking with one factor more; one that is there already with this weight grows instead."""
        if name in self.names and self.weights[(place := self.names.index(name))] == weight:
            added = self.values.copy()
            added[:, place] += values
            return Ranked(rows=self.rows, names=self.names, weights=self.weights, values=added)
        grown = np.empty((len(self.rows), len(self.names) + 1))
        grown[:, :-1], grown[:, -1] = self.values, values
        weights = np.empty(len(self.weights) + 1)
        weights[:-1], weights[-1] = self.weights, weight
        return filled(Ranked, rows=self.rows, names=[*self.names, name], weights=weights, values=grown)
