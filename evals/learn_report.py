"""What learning brought: Recall@5 of each way to live, its gain over untrained, and the curve over time.

Gathers answers into means with intervals, tables and JSON. Knows nothing about how they came about.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evals.citing import Citing
from evals.intervals import Interval, interval

if TYPE_CHECKING:
    from rich.table import Table

    from wellworn.core.values import LearningStatus

WAYS = ("untrained", "cold", "prior only", "prior + person")
SHOWN = 5
CURVE_STEPS = 10


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One question, asked once: how much of its evidence was among the shown, and would have been untrained."""

    conversation: str
    question: int
    seed: int
    place: float
    """When in the person's life it was asked: 0 first, towards 1 last."""
    recall: float
    untrained: float
    level: str = "base"
    """What served it: `base`, `prior` or `person`."""


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How a person's learning stood after the last question."""

    conversation: str
    seed: int
    status: LearningStatus


Chosen = Callable[[Answer], bool]


@dataclass(frozen=True, kw_only=True)
class LearnReport:
    """Every answer of every way; all ways answer the same questions in the same orders."""

    citing: Citing
    embedder: str
    profile: str
    seeds: int
    answers: dict[str, list[Answer]] = field(repr=False)
    endings: list[Ending] = field(default_factory=list, repr=False)
    """Of `prior + person`."""

    @property
    def conversations(self) -> list[str]:
        return list(dict.fromkeys(one.conversation for one in self.answers["untrained"]))

    @property
    def questions(self) -> int:
        return len({(one.conversation, one.question) for one in self.answers["untrained"]})

    def recall(self, way: str, chosen: Chosen = lambda _: True) -> Interval:
        """Recall@5 in percent over the chosen answers."""
        return interval(((a.conversation, a.question), 100 * a.recall) for a in self.answers[way] if chosen(a))

    def gain(self, way: str, chosen: Chosen = lambda _: True) -> Interval:
        """Points over untrained on the same questions."""
        return interval(
            ((a.conversation, a.question), 100 * (a.recall - a.untrained)) for a in self.answers[way] if chosen(a)
        )

    def served(self, way: str) -> dict[str, float]:
        """Share of answers by what served them."""
        levels = [one.level for one in self.answers[way]]
        return {level: levels.count(level) / max(len(levels), 1) for level in ("base", "prior", "person")}

    def curve(self, way: str) -> list[tuple[float, Interval]]:
        """(percent of the questions asked, gain) for each tenth of a life."""
        found = [(100 * (step + 0.5) / CURVE_STEPS, self.gain(way, _at(step))) for step in range(CURVE_STEPS)]
        return [(asked, gain) for asked, gain in found if gain.n]

    def as_json(self) -> dict[str, Any]:  # any JSON value
        """One document; its keys do not change between runs."""
        return {
            "dataset": "locomo",
            "embedder": self.embedder,
            "profile": self.profile,
            "k": SHOWN,
            "feedback": self.citing.feedback,
            "miss": self.citing.miss,
            "false": self.citing.false,
            "seeds": self.seeds,
            "conversations": self.conversations,
            "questions": self.questions,
            "ways": {way: self._way_json(way) for way in self.answers},
            "endings": [
                {
                    "conversation": one.conversation,
                    "seed": one.seed,
                    "level": one.status.level,
                    "trusted": one.status.trusted,
                    "distrust": one.status.distrust,
                    "agreement": one.status.agreement,
                    "gain": one.status.gain,
                    "bound": one.status.bound,
                }
                for one in self.endings
            ],
        }

    def tables(self) -> list[Table]:
        """Overall with intervals, then by conversation."""
        overall = _table(f"Recall@{SHOWN}, citations: {self.citing}", "overall", "gain", "first half", "second half")
        by_conversation = _table("by conversation", *self.conversations)
        for way in self.answers:
            halves = [f"{self.recall(way, half).mean:.1f}" for half in (_first, _second)]
            gain = str(self.gain(way)) if way != "untrained" else ""
            overall.add_row(way, str(self.recall(way)), gain, *halves)
            by_conversation.add_row(way, *[f"{self.recall(way, _of(name)).mean:.1f}" for name in self.conversations])
        return [overall, by_conversation]

    def _way_json(self, way: str) -> dict[str, Any]:  # any JSON value
        return {
            "overall": _interval_json(self.recall(way)),
            "gain": _interval_json(self.gain(way)),
            "first_half": _interval_json(self.recall(way, _first)),
            "second_half": _interval_json(self.recall(way, _second)),
            "by_conversation": {name: _interval_json(self.recall(way, _of(name))) for name in self.conversations},
            "by_seed": [round(self.recall(way, _in(seed)).mean, 4) for seed in range(self.seeds)],
            "served": {level: round(share, 4) for level, share in self.served(way).items()},
            "curve": [{"asked_percent": x, "gain": _interval_json(gain)} for x, gain in self.curve(way)],
        }


def summary(report: LearnReport) -> str:
    """The line under the tables."""
    served = ", ".join(f"{level} {100 * share:.0f} %" for level, share in report.served("prior + person").items())
    trusted = sum(one.status.trusted for one in report.endings)
    return (
        f"{report.questions} questions of {len(report.conversations)} conversations, seeds: {report.seeds}; "
        f"prior + person was served by {served}; feedback trusted at the end: {trusted} of {len(report.endings)}; "
        f"embedder {report.embedder}, profile {report.profile}; 95 % intervals by bootstrap over questions"
    )


def _step(one: Answer) -> int:
    return min(int(one.place * CURVE_STEPS), CURVE_STEPS - 1)


def _first(one: Answer) -> bool:
    return one.place < 0.5


def _second(one: Answer) -> bool:
    return not _first(one)


def _at(step: int) -> Chosen:
    return lambda one: _step(one) == step


def _of(conversation: str) -> Chosen:
    return lambda one: one.conversation == conversation


def _in(seed: int) -> Chosen:
    return lambda one: one.seed == seed


def _interval_json(found: Interval) -> dict[str, float]:
    return {"mean": round(found.mean, 4), "low": round(found.low, 4), "high": round(found.high, 4)}


def _table(title: str, *columns: str) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in ("", *columns):
        table.add_column(column, justify="right" if column else "left", no_wrap=True)
    return table
