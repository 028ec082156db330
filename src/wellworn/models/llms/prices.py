"""What tokens cost, from a table that the user can edit.

Reads `prices.yaml` of this package and, over it, a file of the user's. A model that is in neither costs nothing here
and is known to be unknown. Knows nothing about budgets.
"""

from __future__ import annotations

import functools
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from wellworn.core.errors import InvalidInput

_MILLION = 1_000_000
_TABLE = "usd_per_million_tokens"
_DATED = re.compile(r"-(?:\d{8}|\d{4}-\d{2}-\d{2}|latest)$")
_REMEDY = f"as in {_TABLE}: {{my-model: {{input: 0.15, output: 0.60}}}}"


@dataclass(frozen=True, kw_only=True)
class Price:
    """US dollars per million tokens. Where a prompt has more tokens than `over_tokens`, the whole call costs `over`."""

    input: float
    output: float
    over_tokens: int | None = None
    over: Price | None = None

    def usd(self, input_tokens: int, output_tokens: int) -> float:
        """What a call costs."""
        if self.over is not None and self.over_tokens is not None and input_tokens > self.over_tokens:
            return self.over.usd(input_tokens, output_tokens)
        return (input_tokens * self.input + output_tokens * self.output) / _MILLION


class Prices:
    """A price for each model name. Names end in `*` where they stand for every longer one."""

    def __init__(self, prices: Mapping[str, Price], *, as_of: str = "") -> None:
        self.as_of = as_of
        """The day the shipped table was checked."""
        self._exact = {name: price for name, price in prices.items() if not name.endswith("*")}
        starts = [(name[:-1], price) for name, price in prices.items() if name.endswith("*")]
        self._starts = sorted(starts, key=lambda start: -len(start[0]))  # the longest fits best

    @classmethod
    def load(cls, path: str | Path | None = None) -> Prices:
        """The shipped table, with those of the file at `path`, else at `WELLWORN_PRICES`, in its place and beside."""
        extra = path or os.environ.get("WELLWORN_PRICES")
        return _load(str(extra), _changed_at(Path(extra))) if extra else _load(None, 0)

    def of(self, model: str) -> Price | None:
        """The price of a model by the name it has in the ledger; None when it is in no table.

        Looked for: the whole name, then without the provider (`openai:`, `langchain:CLASS:`), then without its date.
        """
        names = [model, model.partition(":")[2]]
        if model.startswith("langchain:"):
            names.append(model.split(":", 2)[-1])
        for name in filter(None, names):
            for form in (name, _DATED.sub("", name)):
                price = self._exact.get(form)
                if price is not None:
                    return price
            for start, price in self._starts:
                if name.startswith(start):
                    return price
        return None

    def usd(self, model: str, input_tokens: int, output_tokens: int) -> float:
        """What a call costs; 0 for a model without a price, see `of`."""
        price = self.of(model)
        return price.usd(input_tokens, output_tokens) if price is not None else 0.0


def _changed_at(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError as error:
        raise InvalidInput("prices", f"cannot read {str(path)!r}: {error.strerror}", "give a YAML file") from error


@functools.lru_cache(maxsize=8)
def _load(path: str | None, changed_at: int) -> Prices:  # noqa: ARG001 - a changed file is another one
    shipped = resources.files("wellworn.models.llms").joinpath("prices.yaml").read_text(encoding="utf-8")
    prices, as_of = _parsed(shipped, "prices.yaml")
    if path is not None:
        try:
            own = Path(path).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise InvalidInput("prices", f"cannot read {path!r}: {error}", "give a YAML file") from error
        prices |= _parsed(own, path)[0]
    return Prices(prices, as_of=as_of)


def _parsed(text: str, where: str) -> tuple[dict[str, Price], str]:
    import yaml

    try:
        told = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InvalidInput("prices", f"{where!r} is not YAML: {error}", _REMEDY) from error
    table = told.get(_TABLE) if isinstance(told, dict) else None
    if not isinstance(table, dict):
        raise InvalidInput("prices", f"{where!r} has no {_TABLE}", _REMEDY)
    return {str(name): _price(price, f"{where}: {name}") for name, price in table.items()}, str(told.get("as_of", ""))


def _price(told: Any, where: str) -> Price:
    """A row of the table; anything that is no price is an error that names it."""
    if not isinstance(told, dict) or not set(told) <= {"input", "output", "over"}:
        raise InvalidInput("prices", f"{where} is {told!r}", _REMEDY)
    numbers = [_dollars(told.get(part), f"{where}, {part}") for part in ("input", "output")]
    over = told.get("over")
    if over is None:
        return Price(input=numbers[0], output=numbers[1])
    if not isinstance(over, dict) or not isinstance(over.get("tokens"), int):
        raise InvalidInput("prices", f"{where}, over is {over!r}", "as in over: {tokens: 100000, input: 1, output: 2}")
    beyond = _price({part: value for part, value in over.items() if part != "tokens"}, f"{where}, over")
    return Price(input=numbers[0], output=numbers[1], over_tokens=over["tokens"], over=beyond)


def _dollars(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise InvalidInput("prices", f"{where} is {value!r}", "give US dollars per million tokens, 0 or more")
    return float(value)
