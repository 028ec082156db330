"""Which items are given: those that fit about as well as the one that fits best; of two that fit alike, the one that
says what to do before the one that says what not to.

Items about other tasks use up the tries of an agent that follows whatever it is given, so `k` is a limit.
There are more ways to fail than to succeed, so guardrails gather where strategies are few, and each use makes them look
more reliable, whatever came of it. With one item a task they would take the place of the only strategy.
"""

from __future__ import annotations

import numpy as np

from wellworn.core.values import KINDS
from wellworn.search.context import SearchContext
from wellworn.search.score import Ranked

GUARDRAIL_SHARE = 0.1
"""Taken off a guardrail's score."""
FACTOR = "guardrail"
SIMILARITY = "similarity"
ALIKE = 0.9
"""Of a guardrail's similarity: a strategy that fits at least so well comes first."""
FITS = 0.6
"""Of the best item's similarity: what fits less is about something else."""
_GUARDRAIL = KINDS.index("guardrail")


def preferred(ranked: Ranked, context: SearchContext) -> Ranked:
    """The ranking without what fits much less than the best, guardrails a little lower."""
    return strategies_first(fitting(ranked), context)


def fitting(ranked: Ranked) -> Ranked:
    """The ranking without items that fit much less than the one that fits best."""
    if not len(ranked.rows) or SIMILARITY not in ranked.names:
        return ranked
    similarity = ranked.values[:, ranked.names.index(SIMILARITY)]
    return ranked.take(np.flatnonzero(similarity >= FITS * max(float(similarity.max()), 0.0)))


def strategies_first(ranked: Ranked, context: SearchContext) -> Ranked:
    """The ranking with guardrails a little lower, where a strategy fits about as well; unchanged where none does."""
    guardrails = context.view.bank.column("kind", ranked.rows) == _GUARDRAIL
    if np.count_nonzero(guardrails) in (0, len(guardrails)) or SIMILARITY not in ranked.names:
        return ranked
    similarity = ranked.values[:, ranked.names.index(SIMILARITY)]
    matched = guardrails & (ALIKE * similarity <= similarity[~guardrails].max())
    return ranked.with_factor(FACTOR, matched, -GUARDRAIL_SHARE) if np.count_nonzero(matched) else ranked
