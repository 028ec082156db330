"""What one recall with its citations teaches: numbers only, no text and no names of entries.

Knows the shape of a logged recall. Does not know what the features mean, nor what is learned from them.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recollect.learning.exact import Array
from recollect.stores.base import LoggedRecall

Flags = npt.NDArray[np.bool_]

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

    @property
    def taught(self) -> Array:
        """The rows that teach, as indices: all shown, then the unshown among the `PLACES` best by base."""
        best = best_places(self.base)
        return np.concatenate([np.arange(self.shown), best[best >= self.shown]])


def best_places(base: Array) -> npt.NDArray[np.intp]:
    """Indices of the `PLACES` best by base score, best first; equals keep their order."""
    return np.argsort(-base, kind="stable")[:PLACES]


def example_of(recall: LoggedRecall, cited_nos: Set[int], alive: Set[int]) -> Example | None:
    """The recall as a lesson, or None when nothing of what was shown is left.

    Rows not in `alive` are dropped (forgotten entries teach nothing), and so are rows with a score or feature that is
    not a finite number. Cited numbers that were not shown are ignored. The log keeps float32; here it becomes float64,
    so that learning at once and learning from the log compute on the same values.
    """
    finite = np.isfinite(recall.base) & np.isfinite(recall.features).all(axis=1)
    kept = [place for place, no in enumerate(recall.nos) if no in alive and finite[place]]
    shown = [place for place in kept if place < recall.shown]
    if not shown:
        return None
    return Example(
        base=recall.base[kept].astype(np.float64),
        features=recall.features[kept].astype(np.float64),
        shown=len(shown),
        cited=np.array([recall.nos[place] in cited_nos for place in shown], dtype=np.bool_),
    )
