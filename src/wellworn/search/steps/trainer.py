"""Which decomposition a tenant's questions are searched by: learned from rewards, served only when it is proven.

A family is the shape of a question. For each family and choice there is a weight and evidence:

    weight ← clamp(weight + η (reward - baseline), ±2)        baseline ← 0.9 baseline + 0.1 reward, per family
    evidence: mean reward with its uncertainty, from people whose feedback is trusted

What serves is the planner's plan, until another choice's mean reward is above its by a bound; of several that are, the
one with the greatest weight; and none that does worse than plain search does. What was put in place by a bound is taken
back by the mean, as in `learning.guard`. Choices are tried now and then, by dice whose seed is kept with the state, so
that a run can be repeated. From which score on a question comes here at all is learned beside it (`routing`). Knows
neither stores nor plans.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from wellworn.ingest.hashing import hash64
from wellworn.learning.guard import Evidence
from wellworn.search.steps.choices import CHOICES, Choice
from wellworn.search.steps.cues import Shape
from wellworn.search.steps.routing import SHAPES, Routing, plain_routing, routing_of

PROFILE = "searches"
"""The profile under which states are kept."""
FORMAT = 1
STEP = 0.1
BASELINE_KEEPS = 0.9
MOST_WEIGHT = 2.0
TRIES = 4
"""Outcomes of a choice before any verdict on it."""
Z = 1.25
"""Standard errors by which a choice must be better than what serves."""
YOUNG, TIMES_YOUNG = 60, 4.0
"""The first outcomes of a family, in which four times as much is tried: nothing is known yet. With three times, 8
lives of 60 in the tests' world stay below nine tenths of the best after 300 outcomes, with four times 2."""
HOPE = 1.0
"""How much more a choice may be worth than its mean says, after one outcome; after n, 1/√n of it."""
SYNTHETIC = 3.0
"""Outcomes that synthetic tasks count as at most, for each choice: a place to begin, soon outweighed."""


@dataclass(frozen=True, kw_only=True)
class Tried:
    """What is known of one choice in one family."""

    weight: float = 0.0
    seen: Evidence = field(default_factory=Evidence)

    def step(self, advantage: float) -> Tried:
        return replace(self, weight=max(-MOST_WEIGHT, min(MOST_WEIGHT, self.weight + STEP * advantage)))


@dataclass(frozen=True, kw_only=True)
class Family:
    """What is known of one family."""

    outcomes: int = 0
    baseline: float = 0.0
    tried: Mapping[Choice, Tried] = field(default_factory=dict)
    serves: Choice = "planner"

    def of(self, choice: Choice) -> Tried:
        return self.tried.get(choice, Tried())

    def learned(self, choice: Choice, reward: float, *, counts: bool) -> Family:
        """After one reward; only one that `counts` is evidence for what serves."""
        baseline = reward if not self.tried else self.baseline
        known = self.of(choice).step(reward - baseline)
        if counts:
            known = replace(known, seen=known.seen.add(reward))
        after = replace(
            self,
            outcomes=self.outcomes + 1,
            tried={**self.tried, choice: known},
            baseline=BASELINE_KEEPS * baseline + (1 - BASELINE_KEEPS) * reward,
        )
        return replace(after, serves=after.verdict())

    def verdict(self) -> Choice:
        """What is to serve on this evidence."""
        now = self.serves
        for floor in ("planner", "plain"):
            if now != floor and self._known(floor) and self.of(now).seen.mean < self.of(floor).seen.mean:
                now = "planner"  # put in place by a bound, taken back by the mean
        better = [choice for choice in CHOICES if choice != now and self._beats(choice, now)]
        better = [choice for choice in better if choice == "plain" or not self._below(choice, "plain")]
        return max(better, key=lambda choice: (self.of(choice).weight, choice), default=now)

    def _known(self, choice: Choice) -> bool:
        return self.of(choice).seen.n >= TRIES

    def _below(self, choice: Choice, other: Choice) -> bool:
        return self._known(other) and self.of(choice).seen.mean < self.of(other).seen.mean

    def _beats(self, choice: Choice, other: Choice) -> bool:
        if not self._known(choice) or not self._known(other):
            return False
        one, two = self.of(choice).seen, self.of(other).seen
        return one.mean - two.mean > Z * math.hypot(one.error, two.error)

    def to_try(self, among: Sequence[Choice], dice: int) -> Choice:
        """The choice that may be the best for all that is known; of those never tried, one by the dice. Plain search
        comes first, since nothing may be worse."""
        others = [choice for choice in among if choice != self.serves]
        if "plain" in others and not self._known("plain"):
            return "plain"
        return max(others, key=lambda choice: (self._hope(choice), hash64(f"{dice}:{choice}")))

    def _hope(self, choice: Choice) -> float:
        seen = self.of(choice).seen
        return seen.mean + HOPE / math.sqrt(seen.n) if seen.n else math.inf


Practice = Mapping[Shape, Mapping[Choice, Evidence]]
"""Rewards of choices on synthetic tasks."""


@dataclass(frozen=True, kw_only=True)
class Policy:
    """A tenant's state: numbers and names of choices, no text."""

    seed: int = 0
    families: Mapping[Shape, Family] = field(default_factory=dict)
    routing: Routing = field(default_factory=Routing)
    bootstrapped: int = 0
    """Synthetic tasks that it began with."""
    practice: Practice = field(default_factory=dict)
    """What they said, which is not in the log; and after which outcome they came."""
    practised_after: int = 0

    @property
    def outcomes(self) -> int:
        return sum(family.outcomes for family in self.families.values())

    def family(self, shape: Shape) -> Family:
        return self.families.get(shape, Family())

    def choose(self, shape: Shape, among: Sequence[Choice], *, query: str, explore: float) -> tuple[Choice, bool]:
        """The choice for a question, and whether it is a try: in a share `explore` of questions."""
        family = self.family(shape)
        serves = family.serves if family.serves in among else "planner"
        if not explore or len(among) < 2:
            return serves, False
        share = min(0.5, explore * (TIMES_YOUNG if family.outcomes < YOUNG else 1.0))
        dice = self._dice(family.outcomes, query)
        if dice % 10_000 >= 10_000 * share:
            return serves, False
        return family.to_try(among, dice), True

    def tries(self, shape: Shape, score: float, *, query: str, explore: float) -> bool:
        """Whether a plain question beside the recursive ones is tried as one of them."""
        band = self.routing.band(shape, score)
        dice = self._dice(round(band.plain.n + band.recursive.n, 6), query)
        return dice % 10_000 < 10_000 * band.rate(explore)

    def _dice(self, moment: float, query: str) -> int:
        return hash64(f"{self.seed}:{moment}:{query}")

    def learned(
        self,
        shape: Shape,
        choice: Choice,
        reward: float,
        *,
        counts: bool = True,
        score: float | None = None,
        near: bool = False,
        seconds: float = 0.0,
    ) -> Policy:
        """After one reward; of a question that was `near` the recursive ones only routing learns."""
        families, routing = self.families, self.routing
        if not near:
            families = {**families, shape: self.family(shape).learned(choice, reward, counts=counts)}
        if counts and score is not None:
            routing = routing.learned(shape, score, reward, recursive=choice != "plain", seconds=seconds)
        return replace(self, families=families, routing=routing)

    def begun(self, practice: Practice, tasks: int, *, after: int = 0) -> Policy:
        """Begun with synthetic tasks, of which the reward of every choice is known; what outcomes taught stays.

        Only once: practice that is repeated must not grow into evidence.
        """
        if self.bootstrapped or not tasks:
            return self
        families = dict(self.families)
        for shape, found in practice.items():
            family = self.family(shape)
            mean = sum(one.total for one in found.values()) / max(sum(one.n for one in found.values()), 1)
            tried = dict(family.tried)
            for choice, seen in found.items():
                known = tried.get(choice, Tried()).step(seen.mean - mean)
                tried[choice] = replace(known, seen=known.seen.plus(seen, SYNTHETIC))
            families[shape] = replace(family, tried=tried, baseline=family.baseline if family.outcomes else mean)
        return replace(self, families=families, bootstrapped=tasks, practice=practice, practised_after=after)


def dumps(policy: Policy) -> str:
    """The state as text: equal states give equal texts."""
    return json.dumps(
        {
            "format": FORMAT,
            "kind": "searches",
            "seed": policy.seed,
            "bootstrapped": policy.bootstrapped,
            "families": {
                shape: {
                    "outcomes": family.outcomes,
                    "baseline": family.baseline,
                    "serves": family.serves,
                    "tried": {
                        choice: [known.weight, known.seen.n, known.seen.total, known.seen.squares]
                        for choice, known in family.tried.items()
                    },
                }
                for shape, family in policy.families.items()
            },
            "routing": plain_routing(policy.routing),
            "practice": {
                shape: {choice: [seen.n, seen.total, seen.squares] for choice, seen in found.items()}
                for shape, found in policy.practice.items()
            },
            "practised_after": policy.practised_after,
        },
        separators=(",", ":"),
        sort_keys=True,
    )


def loads(text: str | None, *, seed: int) -> Policy:
    """The state in this text; a fresh one when there is none or it cannot be read."""
    try:
        value = json.loads(text) if text is not None else None
        if value is None or value["format"] != FORMAT:
            return Policy(seed=seed)
        return Policy(
            seed=int(value["seed"]),
            bootstrapped=int(value["bootstrapped"]),
            families={shape: _family(one) for shape, one in value["families"].items()},
            routing=routing_of(value.get("routing", {})),
            practice=_practice(value.get("practice", {})),
            practised_after=int(value.get("practised_after", 0)),
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return Policy(seed=seed)


def _family(value: dict[str, Any]) -> Family:  # as JSON gives it
    tried: dict[Choice, Tried] = {}
    for choice, (weight, n, total, squares) in value["tried"].items():
        if choice in CHOICES and all(math.isfinite(number) for number in (weight, n, total, squares)):
            tried[choice] = Tried(weight=weight, seen=Evidence(n=n, total=total, squares=squares))
    serves: Choice = value["serves"] if value["serves"] in CHOICES else "planner"
    return Family(outcomes=int(value["outcomes"]), baseline=float(value["baseline"]), tried=tried, serves=serves)


def _practice(value: dict[str, Any]) -> Practice:  # as JSON gives it
    found: dict[Shape, dict[Choice, Evidence]] = {}
    for shape in SHAPES:
        for choice, (n, total, squares) in value.get(shape, {}).items():
            if choice in CHOICES and all(math.isfinite(number) for number in (n, total, squares)):
                found.setdefault(shape, {})[choice] = Evidence(n=n, total=total, squares=squares)
    return found
