"""What extraction found, gathered by persona: coverage, precision and junk, each with its uncertainty.

Shares in percent, junk in memories a filler session. Bounds are bootstrapped over sessions. Knows nothing about how
memories were extracted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evals.intervals import Interval, interval

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True, kw_only=True)
class Missed:
    """A gold memory whose source turn no extracted memory rests on."""

    text: str
    turn: int


@dataclass(frozen=True, kw_only=True)
class Read:
    """One session's outcome: a truth value for each thing that is counted."""

    persona: str
    session: str
    filler: bool
    turns_covered: list[bool]
    """For each gold source turn."""
    gold_covered: list[bool]
    """For each gold memory with a source turn."""
    memories_right: list[bool]
    """For each extracted memory: its evidence holds a gold source turn."""
    evidence_right: list[bool]
    """For each turn that is evidence of anything."""
    evidence_turns: int
    missed: list[Missed] = field(default_factory=list)
    found: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class ExtractionRow:
    """Figures of one persona, or of all."""

    label: str
    sessions: int
    fillers: int
    memories: int
    coverage: Interval
    gold: Interval
    precision: Interval
    evidence: Interval
    junk: Interval
    turns_per_memory: float


METRICS: dict[str, Callable[[Read], Sequence[bool]]] = {
    "coverage": lambda one: one.turns_covered,
    "gold": lambda one: one.gold_covered,
    "precision": lambda one: one.memories_right,
    "evidence": lambda one: one.evidence_right,
}


@dataclass(frozen=True, kw_only=True)
class ExtractionReport:
    """What an extractor did with every session."""

    extractor: str
    read: list[Read] = field(repr=False)
    took: Mapping[str, int] = field(default_factory=dict)
    """What a model was asked, and what came of it; empty for rules."""

    def overall(self) -> ExtractionRow:
        return _row("overall", self.read)

    def by_persona(self) -> list[ExtractionRow]:
        personas = dict.fromkeys(one.persona for one in self.read)
        return [_row(name, [one for one in self.read if one.persona == name]) for name in personas]

    def examples(self, count: int) -> list[str]:
        """Up to so many lines each of what was missed and of what is junk, spread over the sessions."""
        missed = [
            f"missed: {one.persona}, {one.session}, turn {gold.turn}: {_short(gold.text)}"
            for one in self.read
            for gold in one.missed
        ]
        junk = [
            f"junk: {one.persona}, {one.session}: {_short(text)}"
            for one in self.read
            if one.filler
            for text in one.found
        ]
        return [*_spread(missed, count), *_spread(junk, count)]

    def as_json(self) -> dict[str, Any]:  # any JSON value
        """One document; its keys do not change between runs."""
        return {
            "dataset": "realmem",
            "extractor": self.extractor,
            "took": dict(self.took),
            "overall": _row_json(self.overall()),
            "by_persona": {row.label: _row_json(row) for row in self.by_persona()},
        }

    def table(self) -> Table:
        """One line a persona, for a rich console."""
        from rich.box import SIMPLE_HEAD
        from rich.table import Table

        table = Table(title="extraction", title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
        table.add_column("", no_wrap=True)
        for head in ("sessions", "memories", "coverage", "precision", "junk"):
            table.add_column(head, justify="right", no_wrap=True)
        overall = self.overall()
        for row in (overall, *self.by_persona()):
            table.add_row(
                row.label,
                str(row.sessions),
                str(row.memories),
                _bounds(row.coverage),
                _bounds(row.precision),
                _bounds(row.junk, "{:.2f}"),
                style="bold" if row is overall else None,
            )
        return table


def summary(report: ExtractionReport) -> str:
    """The line under the table."""
    row = report.overall()
    took = ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in report.took.items())
    return (
        f"{row.sessions} sessions, {row.fillers} of them filler, {row.memories} memories of {row.turns_per_memory:.1f} "
        f"turns, gold memories covered {row.gold.mean:.1f}, evidence turns right {row.evidence.mean:.1f}, "
        f"extractor {report.extractor}" + (f" ({took})" if took else "")
    )


def _row(label: str, read: Sequence[Read]) -> ExtractionRow:
    real = [one for one in read if not one.filler]
    fillers = [one for one in read if one.filler]
    memories = sum(len(one.found) for one in read)
    shares = {name: _share(real, metric) for name, metric in METRICS.items()}
    return ExtractionRow(
        label=label,
        sessions=len(read),
        fillers=len(fillers),
        memories=memories,
        **shares,
        junk=interval(((one.persona, one.session), float(len(one.found))) for one in fillers),
        turns_per_memory=sum(one.evidence_turns for one in read) / memories if memories else 0.0,
    )


def _share(read: Iterable[Read], metric: Callable[[Read], Sequence[bool]]) -> Interval:
    return interval(((one.persona, one.session), 100.0 * value) for one in read for value in metric(one))


def _row_json(row: ExtractionRow) -> dict[str, Any]:
    figures = {name: getattr(row, name) for name in (*METRICS, "junk")}
    return {
        "sessions": row.sessions,
        "fillers": row.fillers,
        "memories": row.memories,
        "turns_per_memory": round(row.turns_per_memory, 4),
        **{
            name: {"mean": round(one.mean, 4), "low": round(one.low, 4), "high": round(one.high, 4)}
            for name, one in figures.items()
        },
    }


def _bounds(one: Interval, form: str = "{:.1f}") -> str:
    return f"{form.format(one.mean)} ({form.format(one.low)}…{form.format(one.high)})"


def _spread(lines: Sequence[str], count: int) -> list[str]:
    """So many of the lines at even distances."""
    if count >= len(lines):
        return list(lines)
    return [lines[place * len(lines) // count] for place in range(count)]


def _short(text: str, chars: int = 200) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= chars else flat[:chars].rsplit(" ", 1)[0] + " …"
