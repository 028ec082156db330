"""How well questions are routed: on labelled questions of our own, and by what routing does to recall on a public set.

Labels say which questions need several entries. Regret says what routing costs against the better of two simple habits
on the same questions: always plain, always recursive; `best of both` chooses for each question with hindsight.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evals import locomo, multihop
from evals.files import json_files
from evals.report import Graded
from evals.run import Settings
from wellworn.core.values import Progress
from wellworn.search.steps.router import THRESHOLD, route

QUESTIONS = Path(__file__).with_name("router_questions.txt")


@dataclass(frozen=True, kw_only=True)
class Habit:
    """Mean scores of one way to route, in percent: of all questions, and of each category."""

    name: str
    overall: float
    by_category: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class RouterReport:
    """What was found. Without a data set `habits` is empty."""

    threshold: float
    right: int
    missed: int
    needless: int
    spared: int
    route_ms: float
    metric: str = ""
    habits: tuple[Habit, ...] = ()

    @property
    def precision(self) -> float:
        return self.right / max(self.right + self.needless, 1)

    @property
    def recall(self) -> float:
        return self.right / max(self.right + self.missed, 1)

    def as_json(self) -> dict[str, Any]:  # any JSON value
        return {
            "threshold": self.threshold,
            "labelled": self.right + self.missed + self.needless + self.spared,
            "precision": round(self.precision, 4),
            "recall": round(self.recall, 4),
            "route_ms": round(self.route_ms, 4),
            "metric": self.metric,
            "habits": {
                one.name: {
                    "overall": round(one.overall, 4),
                    "by_category": {name: round(value, 4) for name, value in one.by_category.items()},
                }
                for one in self.habits
            },
        }


def labelled() -> list[tuple[str, bool]]:
    """Our own questions, and whether each needs several entries."""
    lines = QUESTIONS.read_text(encoding="utf-8").splitlines()
    return [(line[2:], line[0] == "+") for line in lines if line[:2] in ("+ ", "- ")]


def run(
    folder: Path | None, settings: Settings, *, threshold: float = THRESHOLD, progress: Progress | None = None
) -> RouterReport:
    """Route the labelled questions; with a folder, also ask its questions in three ways."""
    questions = labelled()
    began = time.process_time()
    routed = [route(query, threshold=threshold).recursive for query, _ in questions]
    spent = time.process_time() - began
    pairs = [(taken, needs) for taken, (_, needs) in zip(routed, questions, strict=True)]
    report = RouterReport(
        threshold=threshold,
        right=pairs.count((True, True)),
        missed=pairs.count((False, True)),
        needless=pairs.count((True, False)),
        spared=pairs.count((False, False)),
        route_ms=1000 * spent / len(questions),
    )
    if folder is None:
        return report
    metric, habits = _habits(folder, settings, progress)
    return replace(report, metric=metric, habits=habits)


def _habits(folder: Path, settings: Settings, progress: Progress | None) -> tuple[str, tuple[Habit, ...]]:
    names = {path.stem for path in json_files("multihop", folder)}
    several = any(name.endswith("_corpus") for name in names)
    k = settings.ks[0]
    level, metric = ("passage", f"all@{k}") if several else ("turn", f"recall@{k}")
    scores: dict[str, list[float]] = {}
    categories: list[str] = []
    for name, mode in (("plain", "off"), ("routed", "on"), ("recursive", "always")):
        run_set = multihop.run if several else locomo.run
        graded: Sequence[Graded] = run_set(folder, replace(settings, recursion=mode), progress=progress).graded
        categories = [one.category for one in graded]
        scores[name] = [one.scores[level][metric] for one in graded]
    scores["best of both"] = [max(pair) for pair in zip(scores["plain"], scores["recursive"], strict=True)]
    return metric, tuple(_habit(name, values, categories) for name, values in scores.items())


def _habit(name: str, values: Sequence[float], categories: Sequence[str]) -> Habit:
    groups: dict[str, list[float]] = {}
    for category, value in zip(categories, values, strict=True):
        groups.setdefault(category, []).append(value)
    return Habit(name=name, overall=_percent(values), by_category={one: _percent(v) for one, v in groups.items()})


def _percent(values: Sequence[float]) -> float:
    return 100.0 * sum(values) / max(len(values), 1)
