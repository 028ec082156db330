"""A world in which one decomposition is best per family of questions, and in which people cite what helped them.

Each choice finds each of three supports with its own probability; what is shown is those and fillers, with base scores
that favour supports a little, as a plain ranking does. People cite the supports (`honest`), flip a coin (`random`), or
cite what is not a support (`inverted`).
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np

from wellworn.learning.guard import Guard, compare
from wellworn.search.steps.choices import CHOICES, Choice
from wellworn.search.steps.cues import Shape
from wellworn.search.steps.reward import Became, reward_of
from wellworn.search.steps.trainer import Policy

SHAPES: tuple[Shape, ...] = ("bridge", "compare", "gather", "plain")
SUPPORTS, SHOWN = 2, 5
TOKENS: dict[Choice, int] = {"plain": 0, "planner": 1_000, "bridge": 1_000, "turns": 2_000, "parts": 3_000, "gather": 0}
FINDS: dict[Shape, dict[Choice, float]] = {
    "bridge": {"planner": 0.60, "plain": 0.45, "bridge": 0.50, "turns": 0.90, "parts": 0.40, "gather": 0.30},
    "compare": {"planner": 0.50, "plain": 0.45, "bridge": 0.40, "turns": 0.30, "parts": 0.90, "gather": 0.35},
    "gather": {"planner": 0.90, "plain": 0.50, "bridge": 0.40, "turns": 0.45, "parts": 0.40, "gather": 0.50},
    "plain": {"planner": 0.45, "plain": 0.85, "bridge": 0.50, "turns": 0.40, "parts": 0.45, "gather": 0.30},
}
"""How likely each choice finds a support: the best is the planner's once, plain search once, and another twice."""


def value(shape: Shape, choice: Choice) -> float:
    """The true mean reward of a choice for honest people."""
    p = FINDS[shape][choice]
    chances = {0: (1 - p) ** 2, 1: 2 * p * (1 - p), 2: p * p}
    return sum(
        chance * reward_of(Became(kind="used", quality=n / 2) if n else Became(kind="ignored"), TOKENS[choice])
        for n, chance in chances.items()
    )


def best(shape: Shape) -> float:
    return max(value(shape, choice) for choice in CHOICES)


@dataclass
class Life:
    """One tenant with one person, outcome by outcome."""

    seed: int
    feedback: str = "honest"
    explore: float = 0.1
    policy: Policy = field(init=False)
    guard: Guard = field(default_factory=Guard)
    earned: list[float] = field(default_factory=list)
    """True values of what was served, tries included."""
    plain: list[float] = field(default_factory=list)
    waiting: list[tuple[Shape, Choice, float]] = field(default_factory=list)
    """What was told before the person was trusted."""

    def __post_init__(self) -> None:
        self.policy = Policy(seed=self.seed)
        self.dice = random.Random(self.seed)

    def live(self, outcomes: int) -> Life:
        for number in range(len(self.earned), len(self.earned) + outcomes):
            self.ask(SHAPES[number % len(SHAPES)], f"question {number}")
        return self

    def ask(self, shape: Shape, query: str) -> None:
        tries = self.explore if not self.guard.distrust() and not self.guard.lost else 0.0
        choice, _ = self.policy.choose(shape, CHOICES, query=query, explore=tries)
        found = sum(self.dice.random() < FINDS[shape][choice] for _ in range(SUPPORTS))
        helps = np.array([place < found for place in range(SHOWN)])
        base = np.array([self.dice.gauss(0.8 if flag else 0.0, 1.0) for flag in helps])
        cited = self.cited(helps)
        self.earned.append(value(shape, choice))
        self.plain.append(value(shape, "plain"))
        self.guard = self.guard.see(compare(base, base, cited))
        count = int(cited.sum())
        became = Became(kind="used", quality=min(count / 2, 1.0)) if count else Became(kind="ignored")
        self.waiting.append((shape, choice, reward_of(became, TOKENS[choice])))
        if self.guard.trusted:
            for told in self.waiting:
                self.policy = self.policy.learned(*told)
            self.waiting = []

    def cited(self, helps: np.ndarray) -> np.ndarray:
        if self.feedback == "honest":
            return helps
        if self.feedback == "inverted":
            return ~helps
        return np.array([self.dice.random() < 0.3 for _ in helps])

    def served(self) -> float:
        """The true mean reward of what serves now, without tries."""
        return sum(value(shape, self.policy.family(shape).serves) for shape in SHAPES) / len(SHAPES)


BEST = sum(best(shape) for shape in SHAPES) / len(SHAPES)
PLAIN = sum(value(shape, "plain") for shape in SHAPES) / len(SHAPES)
