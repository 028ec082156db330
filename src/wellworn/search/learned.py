"""What was learned, on top of the base ranking; and the record of what was shown, for learning more."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
import numpy.typing as npt

from wellworn.core.values import Partition, filled
from wellworn.learning.learner import Learner
from wellworn.learning.log import LoggedRecall
from wellworn.search.bank import Bank
from wellworn.search.evidence import EVIDENCE, evidence
from wellworn.search.features import View
from wellworn.search.ranked import Ranked

SPARE = 5
"""Rows ranked beyond those asked for: the last place may try one of them."""
LOGGED_ROWS = 30
"""Best rows by base score that are logged besides the shown ones: they have no label, which corrects selection bias."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Seen:
    """The candidates of one recall as learning sees them, in the order of `rows`."""

    rows: npt.NDArray[np.intp]
    base: npt.NDArray[np.float64]
    features: npt.NDArray[np.float64]
    level: str
    tried: int | None
    """How far beyond the last place the candidate lies that is tried in it; None: none is."""

    def explored(self, ranked: Ranked, k: int) -> Ranked:
        """The best k of a longer list; the last place may go to a candidate further down."""
        places = [*range(min(k, len(ranked.rows)))]
        if self.tried is not None and k >= 2 and len(ranked.rows) > k + self.tried:
            places[-1] = k + self.tried
        return ranked.take(places)


def corrected(ranked: Ranked, view: View, learner: Learner, home: Partition, recall_id: str) -> tuple[Ranked, Seen]:
    """The ranking with the factor `learned`, when a learned one serves."""
    base, serving = ranked.scores, learner.serving(home)
    recency = ranked.values[:, ranked.names.index("recency")] if "recency" in ranked.names else None
    view = view if view.rows is ranked.rows else replace(view, rows=ranked.rows)
    features = evidence(view, base, serving.repeated, recency)
    tried = learner.tried_place(serving, view.question.terms, SPARE)
    seen = filled(Seen, rows=ranked.rows, base=base, features=features, level=serving.level, tried=tried)
    if serving.ranker is not None:
        ranked = ranked.with_factor("learned", serving.ranker.correction(base, features), 1.0)
    if serving.matrices is not None and view.vector is not None:
        for name, values, weight in serving.matrices.factors(view.vector, view.bank.vectors(ranked.rows), recall_id):
            ranked = ranked.with_factor(name, values, weight)
    return ranked, seen


def logged(
    seen: Seen | None,
    shown: npt.NDArray[np.intp],
    bank: Bank,
    *,
    recall_id: str,
    home: Partition,
    at: datetime,
    query: str,
    profile: str,
) -> LoggedRecall:
    """What was shown, and the best that was not; nothing of either when there were no candidates."""
    if seen is None:
        none = np.empty(0)
        seen = Seen(
            rows=none.astype(np.intp), base=none, features=none.reshape(0, len(EVIDENCE)), level="base", tried=None
        )
    places = seen.rows.tolist()
    first = [places.index(row) for row in shown.tolist()]
    best = np.argsort(-seen.base, kind="stable")[:LOGGED_ROWS].tolist()
    kept = np.array([*dict.fromkeys(first + best)], dtype=np.intp)
    return filled(
        LoggedRecall,
        id=recall_id,
        partition=home,
        at=at,
        query=query,
        profile=profile,
        level=seen.level,
        nos=bank.column("no", seen.rows.take(kept)).tolist() if len(kept) else [],
        shown=len(first),
        base=seen.base.take(kept).astype(np.float32),
        names=list(EVIDENCE),
        features=seen.features.take(kept, axis=0).astype(np.float32),
    )
