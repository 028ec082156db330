"""Which of two items that fit a task alike: the one that says what to do before the one that says what not to.

There are more ways to fail than to succeed, so guardrails gather where strategies are few, and each use makes them look
more reliable, whatever came of it. With one item a task they would take the place of the only strategy.
"""

from __future__ import annotations

import numpy as np

from recollect.retrieval.desk import Desk
from recollect.retrieval.ranked import Ranked
from recollect.types import KINDS

GUARDRAIL_SHARE = 0.1
"""Taken off a guardrail's score."""
FACTOR = "guardrail"
_GUARDRAIL = KINDS.index("guardrail")


def strategies_first(ranked: Ranked, desk: Desk) -> Ranked:
    """The ranking with guardrails a little lower; unchanged where there are none."""
    guardrails = desk.view.bank.column("kind", ranked.rows) == _GUARDRAIL
    return ranked.with_factor(FACTOR, guardrails, -GUARDRAIL_SHARE) if np.count_nonzero(guardrails) else ranked
