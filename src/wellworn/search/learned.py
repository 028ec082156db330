"""What was learned, on top of the base ranking; and the record of what was shown, for learning more.

Knows the learner as a port: who serves, and where to log. The base ranking knows nothing of this.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from wellworn.core.clock import Clock
from wellworn.core.values import Partition, filled
from wellworn.ingest.hashing import hash64
from wellworn.learning.learner import Serving
from wellworn.learning.lowrank import ROWS
from wellworn.learning.residual import TAU, Residual
from wellworn.learning.swaps import TIMES_EXPLORE, lot, swapped, with_swap
from wellworn.search.bank import Bank
from wellworn.search.evidence import EVIDENCE, evidence
from wellworn.search.features import View
from wellworn.search.ranked import Ranked
from wellworn.store.port import LoggedRecall

SPARE = 5
"""Rows ranked beyond those asked for: the last slot may try one of them."""
LOGGED_ROWS = 30
"""Best rows by base score that are logged beside the shown ones: unlabelled, and so the cure of selection bias."""


class Policies(Protocol):
    """What serves, and where recalls are logged."""

    def serving(self, partition: Partition) -> Serving: ...

    def residual(self, partition: Partition) -> Residual | None: ...

    def record(self, recall: LoggedRecall, *, new: bool) -> None: ...

    def forget(self, nos: Iterable[int]) -> None: ...


@dataclass(frozen=True, kw_only=True, eq=False)
class Seen:
    """The candidates of one recall as learning sees them, in the order of `rows`."""

    rows: npt.NDArray[np.intp]
    base: npt.NDArray[np.float64]
    features: npt.NDArray[np.float64]
    level: str
    profile: str
    try_place: int | None
    """How far beyond the last slot the candidate lies that is tried in it; None: none is."""
    swap: int | None = None
    """The first place that changes places with the next, and every other from there on; None: none does."""

    @classmethod
    def of_nothing(cls, profile: str) -> Seen:
        none = np.empty(0)
        return cls(
            rows=np.empty(0, dtype=np.intp),
            base=none,
            features=np.empty((0, len(EVIDENCE))),
            level="base",
            profile=profile,
            try_place=None,
        )

    def explored(self, ranked: Ranked, k: int) -> Ranked:
        """The best k of a longer list; the last slot may go to a candidate further down, neighbours change places."""
        places = [*range(min(k, len(ranked.rows)))]
        if self.try_place is not None and k >= 2 and len(ranked.rows) > k + self.try_place:
            places[-1] = k + self.try_place
        return ranked.take([places[place] for place in swapped(len(places), self.swap)])


class Learned:
    """Corrects rankings by what serves, tries a candidate now and then, and logs."""

    def __init__(self, policies: Policies, *, explore: float, clock: Clock) -> None:
        self._policies = policies
        self._explore = explore
        self._clock = clock

    def corrected(self, ranked: Ranked, view: View, home: Partition, recall_id: str) -> tuple[Ranked, Seen]:
        """The ranking with the factor `learned`, when a learned one serves."""
        if view.profile.reranker == "paper":
            return self._sampled(ranked, view, home, recall_id)
        base = ranked.scores
        serving = self._policies.serving(home)
        known = ranked.values[:, ranked.names.index("recency")] if "recency" in ranked.names else None
        view = view if view.rows is ranked.rows else replace(view, rows=ranked.rows)
        features = evidence(view, base, serving.echoes, known)
        seen = filled(
            Seen,
            rows=ranked.rows,
            base=base,
            features=features,
            level=serving.level,
            profile=view.profile.name,
            try_place=self._try_place(serving, view),
            swap=lot(TIMES_EXPLORE * self._explore, serving.told, view.question.terms),
        )
        if serving.ranker is None:
            return ranked, seen
        ranked = ranked.with_factor("learned", serving.ranker.correction(base, features), 1.0)
        if serving.residual is None or view.vector is None or len(view.vector) != serving.residual.width:
            return ranked, seen
        best = np.argsort(-ranked.scores, kind="stable")[:ROWS].tolist()
        vectors = view.bank.vectors(ranked.rows).astype(np.float64)
        moves = serving.residual.moves(view.vector.astype(np.float64), vectors, best)
        return ranked.with_factor("residual", moves, 1.0), seen

    def _sampled(self, ranked: Ranked, view: View, home: Partition, recall_id: str) -> tuple[Ranked, Seen]:
        """The paper's Equations 1 and 2: the K best by cosine, ordered by s/τ + g.

        Shown as s + τ·g, the same order: factors `residual` (s minus the cosine) and `noise` (g, weight τ). The dice
        are seeded by the recall's id, so a run with given ids can be repeated.
        """
        order = np.argsort(-ranked.scores, kind="stable")[: view.profile.candidates]
        ranked = ranked.take(order)
        base = ranked.scores
        residual = self._policies.residual(home)
        level = "base" if residual is None else "person"
        seen = Seen(
            rows=ranked.rows,
            base=base,
            features=np.zeros((len(base), 0)),
            level=level,
            profile=view.profile.name,
            try_place=None,
        )
        if residual is None or view.vector is None:
            return ranked, seen
        vectors = view.bank.vectors(ranked.rows).astype(np.float64)
        moved = residual.scores(view.vector.astype(np.float64), vectors) - vectors @ view.vector.astype(np.float64)
        dice = np.random.default_rng(hash64(recall_id))
        noise = dice.gumbel(size=len(base))
        return ranked.with_factor("residual", moved, 1.0).with_factor("noise", noise, TAU), seen

    def _try_place(self, serving: Serving, view: View) -> int | None:
        """Whether and what to try: by a hash of the query and of how much was learned, so it can be repeated.

        Nobody who gives no outcomes is tried on.
        """
        if not self._explore or not serving.outcomes:
            return None
        dice = hash64(f"{serving.outcomes}:{view.question.terms}")
        return dice // 1000 % SPARE if dice % 1000 < 1000 * self._explore else None

    def forget(self, nos: Iterable[int]) -> None:
        """Rows are gone."""
        self._policies.forget(nos)

    def record(self, recall: LoggedRecall, *, new: bool) -> None:
        """Log a recall; `new` says that its partition is not there yet."""
        self._policies.record(recall, new=new)

    def logged(
        self,
        seen: Seen | None,
        shown: npt.NDArray[np.intp],
        bank: Bank,
        *,
        recall_id: str,
        home: Partition,
        query: str,
        profile: str,
    ) -> LoggedRecall:
        """What was shown, and the best that was not; nothing of either when there was nothing to see."""
        if seen is None:
            seen = Seen.of_nothing(profile)
        places = seen.rows.tolist()
        first = [places.index(row) for row in shown.tolist()]
        best = np.argsort(-seen.base, kind="stable")[:LOGGED_ROWS].tolist()
        kept = np.array([*dict.fromkeys(first + best)], dtype=np.intp)
        return filled(
            LoggedRecall,
            id=recall_id,
            partition=home,
            at=self._clock(),
            query=query,
            profile=seen.profile,
            level=with_swap(seen.level, seen.swap),
            nos=bank.column("no", seen.rows.take(kept)).tolist() if len(kept) else [],
            shown=len(first),
            base=seen.base.take(kept).astype(np.float32),
            names=list(EVIDENCE) if seen.features.shape[1] else [],
            features=seen.features.take(kept, axis=0).astype(np.float32),
        )
