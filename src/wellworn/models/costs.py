"""What language-model calls cost, and caps on it.

Prices come from `prices.yaml` of this package and, over it, a file of the user's; a model in neither counts as free. A
budget is checked before each call with the most it may take; over a cap it raises `BudgetExceeded`, and the caller
takes a cheaper route. Knows no store and no model: `ledger` brings the sums.
"""

from __future__ import annotations

import functools
import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from wellworn.core.errors import BudgetExceeded, InvalidInput
from wellworn.core.plain import from_plain

Span = Literal["session", "tenant", "day"]
"""What a cap sums: one session, everything of the tenant, or the tenant's present day (UTC)."""
SPANS: tuple[Span, ...] = ("session", "tenant", "day")

_TABLE = "usd_per_million_tokens"
_DATED = re.compile(r"-(?:\d{8}|\d{4}-\d{2}-\d{2}|latest)$")
_PRICE_REMEDY = f"as in {_TABLE}: {{my-model: {{input: 0.15, output: 0.60}}}}"
_CAP_REMEDIES = {
    "call": "raise the cap, ask for less at once, or choose a cheaper model",
    "session": "raise the cap, or go on without a model in this session",
    "tenant": "raise the cap, or go on without a model",
    "day": "raise the cap, or wait for tomorrow (UTC)",
}


Dollars = Annotated[float, Meta(ge=0)]


@dataclass(frozen=True, kw_only=True)
class LongPrice:
    """What a whole call costs whose prompt has more than `tokens` tokens."""

    tokens: int
    input: Dollars
    output: Dollars


@dataclass(frozen=True, kw_only=True)
class Price:
    """US dollars per million tokens; `over` applies to long prompts."""

    input: Dollars
    output: Dollars
    over: LongPrice | None = None

    def usd(self, input_tokens: int, output_tokens: int) -> float:
        """What a call costs."""
        rate = self.over if self.over is not None and input_tokens > self.over.tokens else self
        return (input_tokens * rate.input + output_tokens * rate.output) / 1_000_000


class Prices:
    """A price for each model name. A name that ends in `*` stands for every longer one."""

    def __init__(self, prices: Mapping[str, Price]) -> None:
        self._exact = {name: price for name, price in prices.items() if not name.endswith("*")}
        starts = [(name[:-1], price) for name, price in prices.items() if name.endswith("*")]
        self._starts = sorted(starts, key=lambda start: -len(start[0]))  # the longest fits best

    @classmethod
    def load(cls, path: str | Path | None = None) -> Prices:
        """The shipped table, overridden and extended by the file at `path`, else at `WELLWORN_PRICES`."""
        extra = path or os.environ.get("WELLWORN_PRICES")
        if not extra:
            return _load(None, 0)
        try:
            return _load(str(extra), Path(extra).stat().st_mtime_ns)
        except OSError as error:
            raise InvalidInput("prices", f"cannot read {str(extra)!r}: {error.strerror}", "give a YAML file") from error

    def of(self, model: str) -> Price | None:
        """The price of a model by the name it has in the ledger; None when it is in no table.

        Looked up: the whole name, then without the provider (`openai:`, `langchain:CLASS:`), then without its date.
        """
        names = [model, model.partition(":")[2]]
        if model.startswith("langchain:"):
            names.append(model.split(":", 2)[-1])
        for name in filter(None, names):
            price = self._exact.get(name) or self._exact.get(_DATED.sub("", name))
            price = price or next((price for start, price in self._starts if name.startswith(start)), None)
            if price is not None:
                return price
        return None

    def usd(self, model: str, input_tokens: int, output_tokens: int) -> float:
        """What a call costs; 0 for a model without a price, see `of`."""
        price = self.of(model)
        return price.usd(input_tokens, output_tokens) if price is not None else 0.0


@dataclass(frozen=True, kw_only=True)
class CallCost:
    """Tokens read and written, and US dollars."""

    tokens: int = 0
    usd: float = 0.0

    def __add__(self, other: CallCost) -> CallCost:
        return CallCost(tokens=self.tokens + other.tokens, usd=self.usd + other.usd)


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

    def check(self, wanted: CallCost, spent: Callable[[Span], CallCost]) -> None:
        """Raise `BudgetExceeded` when what was spent and what is wanted exceed a cap together.

        `spent` is called only for spans that have a cap.
        """
        self._check("call", wanted, CallCost)
        for span in SPANS:
            self._check(span, wanted, functools.partial(spent, span))

    def _check(self, span: str, wanted: CallCost, spent: Callable[[], CallCost]) -> None:
        caps = {unit: getattr(self, f"per_{span}_{unit}") for unit in ("usd", "tokens")}
        if caps["usd"] is None and caps["tokens"] is None:
            return
        sums = spent()
        for unit, limit in caps.items():
            gone, more = getattr(sums, unit), getattr(wanted, unit)
            if limit is not None and gone + more > limit:
                cap = f"per_{span}_{unit}"
                raise BudgetExceeded(cap, limit=limit, spent=gone, wanted=more, remedy=_CAP_REMEDIES[span])


@functools.lru_cache(maxsize=8)
def _load(path: str | None, changed_at: int) -> Prices:  # noqa: ARG001 - a changed file is read again
    shipped = Path(__file__).with_name("prices.yaml").read_text(encoding="utf-8")
    prices = _parsed(shipped, "prices.yaml")
    if path is not None:
        try:
            own = Path(path).read_text(encoding="utf-8")
        except ValueError as error:
            raise InvalidInput("prices", f"cannot read {path!r}: {error}", "give a YAML file") from error
        prices |= _parsed(own, path)
    return Prices(prices)


def _parsed(text: str, where: str) -> dict[str, Price]:
    import yaml

    try:
        data = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InvalidInput("prices", f"{where!r} is not YAML: {error}", _PRICE_REMEDY) from error
    table = data.get(_TABLE) if isinstance(data, dict) else None
    if not isinstance(table, dict):
        raise InvalidInput("prices", f"{where!r} has no {_TABLE}", _PRICE_REMEDY)
    prices = {}
    for name, row in table.items():
        try:
            prices[str(name)] = from_plain(Price, row)
        except ValueError as error:
            raise InvalidInput("prices", f"{where}: {name} is {row!r}: {error}", _PRICE_REMEDY) from None
    return prices
