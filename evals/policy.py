"""Does the memory learn how to search? Lives of recalls and outcomes in a world where one way is best per family.

Each life is a memory of its own, taught through the public facade alone. At every look its learned state is carried
into fresh memories of the same world, in which nothing is tried: there all questions are asked as it would serve them,
plainly, and in the end in every way. So what is compared is what people would have got, with the ranking as it was
learned by then.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from evals.intervals import Interval, interval
from evals.policy_world import FAMILIES, FEEDBACKS, QUESTIONS, SCOPE, K, Question, World, cited
from wellworn.core.errors import InvalidInput
from wellworn.core.values import Layer, Progress, Recall
from wellworn.memory import Memory
from wellworn.search.steps.actions import Plan
from wellworn.search.steps.choices import CHOICES, Choice, plan_of
from wellworn.search.steps.cues import Shape
from wellworn.search.steps.plans import RulePlanner
from wellworn.search.steps.recall import Recursion
from wellworn.search.steps.reward import Became, reward_of

CHECK_EVERY = 50
"""Outcomes between two looks at what serves."""
EXPLORE = 0.1
"""Share of tries: four times the usual one, so that 300 outcomes over four families tell six ways apart."""


@dataclass(frozen=True, kw_only=True)
class Look:
    """Mean rewards over all questions with one learned state."""

    served: float
    plain: float
    rules: float = 0.0
    """The planner's plans."""
    best: float = 0.0
    """The best way of each family."""


@dataclass(frozen=True, kw_only=True)
class Life:
    """One memory that was told so many outcomes."""

    seed: int
    untrained: Look
    looks: list[Look]
    """The last one has every way."""
    earned: float
    """Mean reward of the life itself, tries included."""
    serves: dict[str, str]

    @property
    def share(self) -> float:
        """What serves in the end, of the best way of each family with the same ranking, in percent."""
        return 100.0 * self.looks[-1].served / self.looks[-1].best

    @property
    def margin(self) -> float:
        """The least by which what served was better than plain search at any look, in points of the best reward."""
        best = self.looks[-1].best
        return min(100.0 * (look.served - look.plain) / best for look in (self.untrained, *self.looks))


@dataclass(frozen=True, kw_only=True)
class PolicyReport:
    """Lives with one kind of feedback."""

    feedback: str
    outcomes: int
    lives: list[Life] = field(default_factory=list)

    def mean(self, value: Callable[[Life], float]) -> Interval:
        return interval((life.seed, value(life)) for life in self.lives)

    @property
    def reached(self) -> int:
        """Lives in which what serves is worth nine tenths of the best."""
        return sum(life.share >= 90.0 for life in self.lives)

    @property
    def below_plain(self) -> int:
        """Lives in which what served was worth less than plain search at any look."""
        return sum(life.margin < -1e-9 for life in self.lives)

    def rows(self) -> list[tuple[str, str]]:
        """What was found: percent of the best way of each family with the ranking as it is learned in the end."""

        def of_best(value: Callable[[Life], float]) -> str:
            return str(self.mean(lambda life: 100.0 * value(life) / life.looks[-1].best))

        return [
            ("untrained: plain search", of_best(lambda life: life.untrained.plain)),
            ("untrained: the rules", of_best(lambda life: life.untrained.rules)),
            ("untrained: the best way of each family", of_best(lambda life: life.untrained.best)),
            ("trained: plain search", of_best(lambda life: life.looks[-1].plain)),
            ("trained: the rules", of_best(lambda life: life.looks[-1].rules)),
            ("trained: what serves", of_best(lambda life: life.looks[-1].served)),
            ("earned on the way, tries included", of_best(lambda life: life.earned)),
            ("least margin over plain search", str(self.mean(lambda life: life.margin))),
            ("lives at 90 % or more", f"{self.reached} of {len(self.lives)}"),
            ("lives ever below plain search", f"{self.below_plain} of {len(self.lives)}"),
        ]

    def as_json(self) -> dict[str, Any]:  # any JSON value
        return {
            "feedback": self.feedback,
            "outcomes": self.outcomes,
            "reached": self.reached,
            "below_plain": self.below_plain,
            "share": vars(self.mean(lambda life: life.share)),
            "lives": [
                {
                    **vars(life),
                    "untrained": vars(life.untrained),
                    "looks": [vars(look) for look in life.looks],
                    "share": life.share,
                    "margin": life.margin,
                }
                for life in self.lives
            ],
        }


def run(
    *, seeds: int = 5, outcomes: int = 300, feedback: str = "honest", progress: Progress | None = None
) -> PolicyReport:
    """Live so many lives, each in a world of its own."""
    if feedback not in FEEDBACKS:
        raise InvalidInput("--feedback", f"{feedback!r} is unknown", f"use one of {', '.join(FEEDBACKS)}")
    lives = []
    for seed in range(seeds):
        lives.append(lived(seed, outcomes=outcomes, feedback=feedback))
        if progress is not None:
            progress(seed + 1, seeds)
    return PolicyReport(feedback=feedback, outcomes=outcomes, lives=lives)


def lived(seed: int, *, outcomes: int, feedback: str, questions: int = QUESTIONS) -> Life:
    """One life with so many questions a family: the same seed gives the same one."""
    dice = random.Random(seed)
    earned, looks = list[float](), list[Look]()
    with _memory(recursion=Recursion(explore=EXPLORE)) as memory, Mirror(seed, questions) as mirror:
        untrained = mirror.look({}, every=True)
        asked = World(memory, seed=seed, questions=questions).questions
        for number in range(1, outcomes + 1):
            if (number - 1) % len(asked) == 0:
                dice.shuffle(asked)
            question = asked[(number - 1) % len(asked)]
            found = memory.recall(question.text, scope=SCOPE, k=K)
            earned.append(_reward(found, question))
            memory.outcome(found.id, cited=cited(found, question, feedback, dice))
            if number % CHECK_EVERY == 0 or number == outcomes:
                looks.append(mirror.look(memory.export_learning(scope=SCOPE), every=number == outcomes))
        serves = {one.shape: one.serves for one in memory.learning(scope=SCOPE).searches}
    return Life(seed=seed, untrained=untrained, looks=looks, earned=sum(earned) / len(earned), serves=serves)


class Mirror:
    """Memories of one world that a learned state is carried into, to see what it would serve."""

    def __init__(self, seed: int, questions: int) -> None:
        self._fixed = _Fixed()
        self._serving = _memory(recursion=Recursion(explore=0.0), explore=0.0)
        self._forced = _memory(recursion=Recursion(planner=self._fixed, learns=False), explore=0.0)
        self._questions = World(self._serving, seed=seed, questions=questions).questions
        World(self._forced, seed=seed, questions=questions)

    def look(self, state: dict[str, Any], *, every: bool) -> Look:
        """What this state is worth; with `every`, also every way under its ranking."""
        for memory in (self._serving, self._forced):
            memory.load_learning(state, scope=SCOPE)
        served, plain = self._worth(self._serving, None), self._worth(self._forced, "plain")
        if not every:
            return Look(served=sum(served.values()), plain=sum(plain.values()))
        ways = [plain, *(self._worth(self._forced, way) for way in CHOICES if way != "plain")]
        best = sum(max(way[family] for way in ways) for family in FAMILIES)
        return Look(served=sum(served.values()), plain=sum(plain.values()), rules=sum(ways[1].values()), best=best)

    def _worth(self, memory: Memory, way: Choice | None) -> dict[Shape, float]:
        """Mean rewards by family, each as its share of the whole; None: as the memory itself decides."""
        worth = dict.fromkeys(FAMILIES, 0.0)
        mode = "on" if way is None else "off" if way == "plain" else "always"
        self._fixed.choice = way or "planner"
        for question in self._questions:
            found = memory.recall(question.text, scope=SCOPE, k=K, recursion=mode)
            worth[question.family] += _reward(found, question) / len(self._questions)
        return worth

    def __enter__(self) -> Mirror:
        return self

    def __exit__(self, *_: object) -> None:
        self._serving.close()
        self._forced.close()


class _Fixed:
    """A planner that always plans in one way."""

    choice: Choice = "planner"

    def plan(self, query: str, shape: Shape, *, layers: Sequence[Layer], depth: int) -> Plan:
        if depth:
            return RulePlanner().plan(query, shape, layers=layers, depth=depth)
        return plan_of(self.choice, query, shape, planner=RulePlanner(), layers=layers)


def _memory(**options: Any) -> Memory:  # the keywords of Memory.open
    """A memory whose clock and ids depend on nothing but what is asked of it."""
    ticks, ids = itertools.count(), itertools.count()
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    return Memory.open(
        ":memory:",
        embedder="hash",
        background=False,
        clock=lambda: begin + timedelta(seconds=next(ticks)),
        new_id=lambda: f"{next(ids):032x}",
        **options,
    )


def _reward(found: Recall, question: Question) -> float:
    right = sum(hit.entry.id in question.right for hit in found.hits)
    return reward_of(Became(kind="used", quality=min(right / 2, 1.0)) if right else Became(kind="ignored"), 0)
