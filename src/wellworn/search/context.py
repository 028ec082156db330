"""An open search that more can be asked of: further queries, texts of rows, links, rows added to the ranking.

It is bound to one recall: everything it gives has passed that recall's scope, filters and time, so whoever works on it
cannot reach further than the recall may. Knows nothing about why more is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from wellworn.core.values import Entry, Layer
from wellworn.search.bank import Bank, Mask
from wellworn.search.features import View, features
from wellworn.search.ranked import Ranked

Rows = npt.NDArray[np.intp]
Vector = npt.NDArray[np.float32]
Check = Callable[[], None]
"""Raises when it is time to stop."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SearchContext:
    """What a refinement of a ranking works with."""

    query: str
    """What is asked, scrubbed."""
    view: View
    eligible: Mask | None
    """Rows that the recall may return; None: all that are not dead."""
    layers: Sequence[Layer]
    """The layer of each partition of the bank."""
    embed: Callable[[str], Vector | None] | None
    """The vector of another query, which may be slow to come; None where there is no embedder."""
    again: Callable[[str, Vector | None, Check], View]
    """Both arms for another query and its vector, with its best rows as candidates."""
    seconds: float
    """What both arms took for the query of the recall, and so may take for another."""
    read: Callable[[Rows], dict[int, Entry]]
    """Texts of rows, by row."""
    linked: Callable[[Rows], list[tuple[int, int, str, float]]]
    """Hand-made links that touch these rows, between rows: (source, target, type, confidence)."""

    @property
    def bank(self) -> Bank:
        return self.view.bank

    def may_return(self, rows: Rows) -> Mask:
        """Which of these rows the recall may return."""
        if self.eligible is not None:
            return self.eligible[rows]
        return ~np.isin(rows, self.bank.dead)

    def on_layers(self, rows: Rows, layers: Sequence[str]) -> Mask:
        """Which of these rows are on one of these layers; on any when none is named."""
        wanted = np.array([not layers or layer in layers for layer in self.layers], dtype=bool)
        return wanted[self.bank.owner(rows)]

    def with_rows(self, ranked: Ranked, rows: Rows) -> Ranked:
        """The ranking with further rows; factors that were added to it are 0 for these."""
        new = np.setdiff1d(rows[self.may_return(rows)], ranked.rows)
        if not len(new):
            return ranked
        values = np.zeros((len(new), len(ranked.names)))
        own = features(replace(self.view, rows=new))
        values[:, : own.shape[1]] = own
        return Ranked(
            rows=np.concatenate([ranked.rows, new]),
            names=ranked.names,
            weights=ranked.weights,
            values=np.vstack([ranked.values, values]),
        )

    def about(self, query: str, vector: Vector | None, check: Check) -> tuple[Ranked, SearchContext]:
        """The ranking for another query, and the context of that; `check` is called on the way and may stop it."""
        view = self.again(query, vector, check)
        weights = view.profile.weights
        ranked = Ranked(
            rows=view.rows,
            names=[*weights],
            weights=np.array([*weights.values()], dtype=np.float64),
            values=features(view),
        )
        return ranked, replace(self, query=query, view=view)


class Refine(Protocol):
    """Changes a ranking before it is corrected by what was learned and cut."""

    def __call__(self, ranked: Ranked, context: SearchContext) -> Ranked: ...
