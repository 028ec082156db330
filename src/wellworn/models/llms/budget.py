"""Caps on what model calls may cost.

Asked before each call, with the most it may take; over a cap it says `BudgetExceeded`, and the caller takes a cheaper
route. Knows no store and no model: `ledger` brings the sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Literal

from wellworn.core.errors import BudgetExceeded, InvalidInput

Span = Literal["session", "tenant", "day"]
"""What a cap adds up: one session, everything of the tenant, or the tenant's present day (UTC)."""
SPANS: tuple[Span, ...] = ("session", "tenant", "day")

_REMEDIES = {
    "call": "raise the cap, ask for less at once, or choose a cheaper model",
    "session": "raise the cap, or go on without a model in this session",
    "tenant": "raise the cap, or go on without a model",
    "day": "raise the cap, or wait for tomorrow (UTC)",
}


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Tokens read and written, and US dollars."""

    tokens: int
    usd: float

    def __add__(self, other: Cost) -> Cost:
        return Cost(tokens=self.tokens + other.tokens, usd=self.usd + other.usd)


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Caps in US dollars and in tokens; None is no cap. A tenant's day is the calendar's, in UTC."""

    per_call_usd: float | None = None
    per_call_tokens: int | None = None
    per_session_usd: float | None = None
    per_session_tokens: int | None = None
    per_tenant_usd: float | None = None
    per_tenant_tokens: int | None = None
    per_day_usd: float | None = None
    per_day_tokens: int | None = None

    def __post_init__(self) -> None:
        for each in fields(self):
            cap = getattr(self, each.name)
            bad = isinstance(cap, bool) or not isinstance(cap, int | float) or math.isnan(cap) or cap < 0
            if cap is not None and bad:
                raise InvalidInput(each.name, f"{cap!r} is no cap", "0 or more, or None for no cap")

    @property
    def capped_in_usd(self) -> bool:
        """Whether any cap is in dollars, which a model without a price does not reach."""
        return any(getattr(self, each.name) is not None for each in fields(self) if each.name.endswith("_usd"))

    def capped(self, span: Span) -> bool:
        """Whether a span has a cap at all: only then need its sum be known."""
        return getattr(self, f"per_{span}_usd") is not None or getattr(self, f"per_{span}_tokens") is not None

    def check(self, wanted: Cost, spent: Callable[[Span], Cost]) -> None:
        """`BudgetExceeded` when what was spent and what is wanted pass a cap together."""
        self._check("call", wanted, Cost(tokens=0, usd=0.0))
        for span in SPANS:
            if self.capped(span):
                self._check(span, wanted, spent(span))

    def _check(self, span: str, wanted: Cost, spent: Cost) -> None:
        for unit in ("usd", "tokens"):
            cap = f"per_{span}_{unit}"
            limit, gone, more = getattr(self, cap), getattr(spent, unit), getattr(wanted, unit)
            if limit is not None and gone + more > limit:
                raise BudgetExceeded(cap, limit=limit, spent=gone, wanted=more, remedy=_REMEDIES[span])


NO_CAPS = Budget()
