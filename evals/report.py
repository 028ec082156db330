"""Scores of many questions gathered into means: overall, by category and by conversation, as JSON and as tables.

Percentages, one decimal in tables, four in JSON. A mean is over questions, so a long conversation counts for more.
Knows nothing about how a question was answered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True, kw_only=True)
class Graded:
    """One question's scores: level (`turn`, `session`, `passage`) → metric (`recall@5`) → value in [0, 1]."""

    conversation: str
    category: str
    scores: dict[str, dict[str, float]]
    seconds: float
    """Wall time of the recall a user would make, without the wider one that ranks sessions."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """Means of a group of questions, in percent."""

    label: str
    questions: int
    means: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class Report:
    """What an evaluation found. `skipped` counts questions without evidence that could be found at all."""

    dataset: str
    embedder: str
    profile: str
    ks: tuple[int, ...]
    entries: int
    skipped: int
    graded: list[Graded] = field(repr=False)
    categories: tuple[str, ...] = ()
    """The order of categories in tables; others follow in the order they were met."""

    @property
    def levels(self) -> list[str]:
        """What was ranked, finest first."""
        return list(dict.fromkeys(level for one in self.graded for level in one.scores))

    @property
    def latency_ms(self) -> float:
        """Mean wall time of one recall."""
        return 1000.0 * _mean([one.seconds for one in self.graded])

    def overall(self, level: str) -> Row:
        return _row("overall", self.graded, level)

    def by_category(self, level: str) -> list[Row]:
        return self._grouped(level, lambda one: one.category, self.categories)

    def by_conversation(self, level: str) -> list[Row]:
        return self._grouped(level, lambda one: one.conversation, ())

    def as_json(self) -> dict[str, Any]:  # any JSON value
        """One document; its keys do not change between runs."""
        return {
            "dataset": self.dataset,
            "embedder": self.embedder,
            "profile": self.profile,
            "k": list(self.ks),
            "questions": len(self.graded),
            "skipped": self.skipped,
            "entries": self.entries,
            "latency_ms": round(self.latency_ms, 3),
            "levels": {
                level: {
                    "overall": _row_json(self.overall(level)),
                    "by_category": {row.label: _row_json(row) for row in self.by_category(level)},
                    "by_conversation": {row.label: _row_json(row) for row in self.by_conversation(level)},
                }
                for level in self.levels
            },
        }

    def tables(self) -> list[Table]:
        """One table a level, for a rich console: overall, then categories, then conversations."""
        return [self._table(level) for level in self.levels]

    def _grouped(self, level: str, key: Callable[[Graded], str], order: Sequence[str]) -> list[Row]:
        groups: dict[str, list[Graded]] = {label: [] for label in order}
        for one in self.graded:
            groups.setdefault(key(one), []).append(one)
        return [_row(label, members, level) for label, members in groups.items() if members]

    def _table(self, level: str) -> Table:
        from rich.box import SIMPLE_HEAD
        from rich.table import Table

        overall = self.overall(level)
        table = Table(
            title=f"{self.dataset}, {level} level", title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0)
        )
        table.add_column("", no_wrap=True)
        table.add_column("n", justify="right")
        for metric in overall.means:
            # Short heads, so that a row of many cut-offs fits a terminal; JSON has the full names.
            table.add_column(metric.replace("recall@", "R@"), justify="right", no_wrap=True)
        for rows in ([overall], self.by_category(level), self.by_conversation(level)):
            for row in rows:
                style = "bold" if row is overall else None
                table.add_row(row.label, str(row.questions), *[f"{v:.1f}" for v in row.means.values()], style=style)
            table.add_section()
        return table


def summary(report: Report) -> str:
    """The line under the tables."""
    return (
        f"{len(report.graded)} questions ({report.skipped} skipped), {report.entries} entries, "
        f"{report.latency_ms:.1f} ms a recall, embedder {report.embedder}, profile {report.profile}"
    )


def _row(label: str, members: Sequence[Graded], level: str) -> Row:
    scores = [one.scores[level] for one in members if level in one.scores]
    metrics = list(dict.fromkeys(metric for one in scores for metric in one))
    means = {metric: 100.0 * _mean([one[metric] for one in scores]) for metric in metrics}
    return Row(label=label, questions=len(members), means=means)


def _row_json(row: Row) -> dict[str, float]:
    return {"questions": row.questions, **{metric: round(value, 4) for metric, value in row.means.items()}}


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found) if found else 0.0
