"""What every evaluation returns: tables of numbers with their uncertainty, printed or as JSON.

Knows nothing about what is measured.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as RichTable

from wellworn.core.values import Progress

DRAWS = 2000
SEED = 20260101


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A mean and the bounds of 95 % of its resampled means; `n` counts units, not values."""

    mean: float = 0.0
    low: float = 0.0
    high: float = 0.0
    n: int = 0

    def __str__(self) -> str:
        return f"{self.mean:.1f} ({self.low:.1f} … {self.high:.1f})" if self.n else ""


def interval(values: Iterable[tuple[Hashable, float]]) -> Interval:
    """The mean of (unit, value) pairs, with a bootstrap over units; the same values give the same bounds.

    Values of one unit go together: a question asked once per seed is one unit.
    """
    groups: dict[Hashable, list[float]] = {}
    for unit, value in values:
        groups.setdefault(unit, []).append(value)
    if not groups:
        return Interval()
    totals = np.array([sum(group) for group in groups.values()])
    counts = np.array([len(group) for group in groups.values()])
    picked = np.random.default_rng(SEED).integers(0, len(groups), size=(DRAWS, len(groups)))
    means = totals[picked].sum(axis=1) / counts[picked].sum(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return Interval(mean=float(totals.sum() / counts.sum()), low=float(low), high=float(high), n=len(groups))


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of a label and values; a value is a number, a text, an interval or None."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]  # any of those
    form: str = ".1f"
    """How floats are shown."""

    def as_json(self) -> list[dict[str, Any]]:
        return [{name: _plain(value) for name, value in zip(self.columns, row, strict=True)} for row in self.rows]

    def cell(self, row: str, column: str) -> Any:  # a value of any of those types
        """One value, by its row's label and its column."""
        place = list(self.columns).index(column)
        return next(one[place] for one in self.rows if one[0] == row)

    def drawn(self) -> RichTable:
        table = RichTable(title=self.title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for place, column in enumerate(self.columns):
            words = all(isinstance(row[place], str) for row in self.rows)
            table.add_column(column, justify="left" if words or place == 0 else "right", no_wrap=place > 0)
        for row in self.rows:
            table.add_row(*[self._shown(value) for value in row])
        return table

    def _shown(self, value: Any) -> str:
        if value is None:
            return ""
        return format(value, self.form) if isinstance(value, float) else str(value)


@dataclass(frozen=True, kw_only=True)
class Report:
    """What an evaluation found; `about` says how it was run."""

    name: str
    about: dict[str, Any]
    tables: list[Table]
    lines: list[str] = field(default_factory=list)
    """Examples, where they were asked for."""

    def table(self, title: str) -> Table:
        return next(one for one in self.tables if one.title == title)

    def as_json(self) -> dict[str, Any]:
        """One document; its keys do not change between runs."""
        tables = {one.title: one.as_json() for one in self.tables}
        return {"eval": self.name, **self.about, "tables": tables, **({"lines": self.lines} if self.lines else {})}

    def print(self, console: Console) -> None:
        for table in self.tables:
            console.print(table.drawn())
        for line in self.lines:
            console.print(line, markup=False, highlight=False)
        console.print(", ".join(f"{name}: {value}" for name, value in self.about.items()), style="dim", highlight=False)


@dataclass(kw_only=True)
class Steps:
    """Counts work done against work planned and tells the progress callback."""

    total: int
    progress: Progress | None = None
    done: int = 0

    def advance(self, steps: int = 1) -> None:
        self.done += steps
        if self.progress is not None:
            self.progress(self.done, self.total)


def _plain(value: Any) -> Any:
    if isinstance(value, Interval):
        return {name: round(number, 4) for name, number in vars(value).items()}
    return round(value, 4) if isinstance(value, float) else value
