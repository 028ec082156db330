"""What one recall with its citations teaches: numbers only, no text and no names of entries.

Knows the shape of a logged recall. Does not know what the features mean, nor what is learned from them.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from wellworn.core.values import filled
from wellworn.learning.exact import Array, total
from wellworn.learning.swaps import pairs, swap_of
from wellworn.store.port import LoggedRecall

Flags = npt.NDArray[np.bool_]
Places = npt.NDArray[np.intp]

PLACES = 30
"""How far down the base order a recall teaches and a correction is centred (15 and 60 measured the same or worse)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Example:
    """One recall: the first `shown` rows as they were shown, then unshown ones by falling base score."""

    base: Array
    """Base score of each row, shape (c,)."""
    features: Array
    """Shape (c, F), already in the scale in which weights are learned."""
    shown: int
    cited: Flags
    """Which of the shown were cited, shape (shown,)."""
    swapped: tuple[int, ...] = ()
    """Places among the shown that had changed places with the next: the next one ranked better."""

    @property
    def by_place(self) -> list[bool]:
        """For each swapped pair of which one was cited: whether it was the one that stood first, not the better."""
        cited = self.cited.tolist()
        return [cited[place] for place in self.swapped if cited[place] != cited[place + 1]]

    @property
    def taught(self) -> Places:
        """The rows that teach, as indices: all shown, then the unshown among the `PLACES` best by base."""
        best = self.best
        return np.concatenate([np.arange(self.shown), best[best >= self.shown]])

    # Kept once computed: an example is judged first, then a person's ranker and the prior learn from it.

    @cached_property
    def best(self) -> Places:
        """Where the best by base are, as `best_places` gives them."""
        return best_places(self.base)

    @cached_property
    def lesson(self) -> Array:
        """Base score and features of the rows that teach, shape (n, F+1)."""
        rows = self.taught
        lesson = np.empty((len(rows), 1 + self.features.shape[1]))
        lesson[:, 0], lesson[:, 1:] = self.base[rows], self.features[rows]
        return lesson

    @cached_property
    def wanted(self) -> Array:
        """Where a ranking should put its weight: the mean of the cited rows, shape (F+1,). Needs a cited one."""
        cited = self.lesson[: self.shown][self.cited]
        mean: Array = total(cited) / len(cited)
        return mean


def best_places(base: Array) -> Places:
    """Indices of the `PLACES` best by base score, best first; equals keep their order."""
    return np.argsort(-base, kind="stable")[:PLACES]


def example_of(recall: LoggedRecall, cited_nos: Set[int], alive: set[int]) -> Example | None:
    """The recall as a lesson, or None when nothing of what was shown is left.

    Rows not in `alive` are dropped (forgotten entries teach nothing), and so are rows with a score or feature that is
    not a finite number. Cited numbers that were not shown are ignored. The log keeps float32; here it becomes float64,
    so that learning at once and learning from the log compute on the same values.
    """
    nos, shown = recall.nos, recall.shown
    swapped = tuple(pairs(shown, swap_of(recall.level)))
    base, features = recall.base.astype(np.float64), recall.features.astype(np.float64)
    if not (alive.issuperset(nos) and np.isfinite(base).all() and np.isfinite(features).all()):
        finite = (np.isfinite(base) & np.isfinite(features).all(axis=1)).tolist()
        kept = [place for place, no in enumerate(nos) if finite[place] and no in alive]
        nos, shown = [nos[place] for place in kept], sum(place < shown for place in kept)
        base, features = base[kept], features[kept]
        swapped = ()  # places are no longer those that were swapped
    if not shown:
        return None
    cited = np.array([no in cited_nos for no in nos[:shown]], dtype=np.bool_)
    return filled(Example, base=base, features=features, shown=shown, cited=cited, swapped=swapped)
