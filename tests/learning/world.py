"""A small world with known answers: recalls whose citations are simulated, and a fold over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import numpy as np

from wellworn.learning.policy import Advanced, Person, Prior, advance, serving
from wellworn.learning.ranker import Array, Example, Flags, Ranker

NAMES = ["decides", "hint", "noise_a", "noise_b"]
WIDTH, ROWS, SHOWN = len(NAMES), 40, 5
START = datetime(2026, 1, 1, tzinfo=UTC)

Feedback = Callable[[np.random.Generator, Flags], Flags]
"""What a user cites of the shown, given which of them are useful."""


def honest(missed: float = 0.0, false: float = 0.0) -> Feedback:
    def cite(dice: np.random.Generator, useful: Flags) -> Flags:
        luck = dice.uniform(size=len(useful))
        cited: Flags = np.where(useful, luck >= missed, luck < false)
        return cited

    return cite


def at_random(dice: np.random.Generator, useful: Flags) -> Flags:
    cited: Flags = dice.uniform(size=len(useful)) < 0.3
    return cited


def inverted(dice: np.random.Generator, useful: Flags) -> Flags:
    return ~useful


def always_last(dice: np.random.Generator, useful: Flags) -> Flags:
    cited: Flags = np.arange(len(useful)) == len(useful) - 1
    return cited


@dataclass(frozen=True)
class Ask:
    """A question: candidates by falling base score, and which of them answer it."""

    base: Array
    features: Array
    useful: Flags


def question(dice: np.random.Generator, *, base_knows: float = 2.5) -> Ask:
    """The answers have the feature `decides`, which the base does not know; the base knows a little of its own."""
    useful = np.zeros(ROWS, dtype=np.bool_)
    useful[: dice.integers(1, 4)] = True
    base = 0.3 * (dice.normal(size=ROWS) + base_knows * useful)
    features = dice.normal(size=(ROWS, WIDTH)) * [0.15, 0.3, 1.0, 1.0]
    features[:, 0] += useful
    features[:, 1] += 0.3 * useful
    order = np.argsort(-base, kind="stable")
    return Ask(base=base[order], features=features[order], useful=useful[order])


def shown_by(ask: Ask, ranker: Ranker | None) -> list[int]:
    score = ask.base if ranker is None else ask.base + ranker.correction(ask.base, ask.features)
    return [int(place) for place in np.argsort(-score, kind="stable")[:SHOWN]]


def example(ask: Ask, shown: Sequence[int], cited: Flags) -> Example:
    rows = [*shown, *(place for place in range(ROWS) if place not in shown)]
    return Example(base=ask.base[rows], features=ask.features[rows], shown=len(shown), cited=cited)


def recall_of(ranker: Ranker | None, *, seed: int = 999, count: int = 200, base_knows: float = 2.5) -> float:
    """Share of the answers among the shown, over fresh questions."""
    dice = np.random.default_rng(seed)
    asks = [question(dice, base_knows=base_knows) for _ in range(count)]
    return float(np.mean([ask.useful[shown_by(ask, ranker)].sum() / ask.useful.sum() for ask in asks]))


@dataclass
class User:
    """Someone who asks and cites; keeps the log that a store would."""

    seed: int
    asks: Callable[[np.random.Generator], Ask] = question
    person: Person | None = None
    log: list[Example] = field(default_factory=list)
    levels: list[str] = field(default_factory=list)
    trusted: list[bool] = field(default_factory=list)
    switches: list[tuple[str, str]] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.dice = np.random.default_rng(self.seed)

    def ask(self, prior: Prior, feedback: Feedback, times: int = 1) -> Prior:
        for _ in range(times):
            level, ranker = serving(prior, self.person)
            self.levels.append(level)
            asked = self.asks(self.dice)
            shown = shown_by(asked, ranker)
            prior = self.tell(prior, example(asked, shown, feedback(self.dice, asked.useful[shown]))).prior
        return prior

    def tell(self, prior: Prior, lesson: Example) -> Advanced:
        at = START + timedelta(minutes=len(self.log))
        after = advance(prior, self.person, lesson, past=lambda: list(self.log), at=at)
        self.log.append(lesson)
        self.person = after.person
        self.trusted.append(after.person.guard.trusted)
        if after.switched:
            self.switches.append(after.switched)
            self.reasons.append(after.why)
        return after
