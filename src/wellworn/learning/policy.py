"""Who is served by what: the tenant's prior, a person's own ranker, or the base; and the one step that learns.

`advance` is the fold step, used for an outcome as it arrives and for replaying the log. Levels: `base`; `prior` when
trusted people of the tenant show a gain; `person` when the person's own feedback is trusted too. Only trusted people's
outcomes enter the prior, and it holds numbers only. Who was trusted and is no longer teaches nothing, not even
themselves, until they are trusted again. Knows neither the log nor where states are kept (as text: `state`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

from wellworn.core.values import altered
from wellworn.learning.example import Example
from wellworn.learning.guard import LEAST, Evidence, Guard, compare
from wellworn.learning.ranker import Ranker, updated

Level = Literal["base", "prior", "person"]

Z_COLLAPSE = 2.0
"""Serving stops at one standard error below 0; weights are thrown away only at two, as relearning them costs more."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Prior:
    """What a tenant's trusted people taught together."""

    ranker: Ranker | None = None
    gain: Evidence = field(default_factory=Evidence)
    """Pooled gain of their rankers over the base."""
    users: int = 0
    """People whose outcomes are in it."""
    shares: bool = True
    """False: nobody's outcomes enter. A ranker that is there already (one shipped, say) still serves."""

    def person(self, width: int) -> Ranker:
        """Where a person starts."""
        return self.ranker.person() if self.ranker else Ranker.fresh(width)


@dataclass(frozen=True, kw_only=True, eq=False)
class Person:
    """What one person's outcomes taught."""

    own: Ranker
    guard: Guard = field(default_factory=Guard)
    outcomes: int = 0
    absorbed: bool = False
    """Their past outcomes are in the prior."""
    lent: Evidence = field(default_factory=Evidence)
    """The tenant's gain just before they were absorbed: others' evidence, so that their own is not counted twice."""
    barren: int = 0
    """Outcomes in a row without any citation while their own ranker served."""
    residual: int = 0
    """Names the matrices that serve on top of their own ranker, 0 for none; see `tune`."""
    level: Level = "base"
    changed_at: datetime | None = None
    """When the level last changed."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Advanced:
    """The state after an outcome.

    `switched` is (from, to) when the level changed, a collapse was rolled back, or trust was lost.
    """

    prior: Prior
    person: Person
    switched: tuple[Level, Level] | None = None
    why: str = ""
    """What to write on the receipt of a switch."""


def advance(
    prior: Prior, person: Person | None, example: Example, *, past: Callable[[], Iterable[Example]], at: datetime
) -> Advanced:
    """Learn from one outcome.

    `past` gives the person's earlier examples in order, without this one; it is asked for once, when they become
    trusted. They then enter the prior, and the person's ranker is learned anew on top of the prior as it is by then:
    whoever began before there was a prior must not stay behind those who came later.
    """
    width = example.features.shape[1]
    if person is None:
        person = Person(own=prior.person(width))
    before = person.level
    base, shown = example.base[: example.shown], example.shown
    learned = base + person.own.correction(example.base, example.features, example.best)[:shown]
    found = compare(base, learned, example.cited)
    believed = person.guard
    guard = believed.see(found, example.by_place)
    own, shared = _taught(prior, person, guard, example)
    person = altered(
        person,
        own=own,
        guard=guard,
        outcomes=person.outcomes + 1,
        barren=person.barren + 1 if person.level == "person" and not example.cited.any() else 0,
    )
    fault = _collapse(person)
    if fault:
        # The evidence was about weights that are gone; without it, nothing of their own serves for LEAST outcomes.
        person = replace(person, own=prior.person(width), guard=replace(guard, gain=Evidence(), beats=False), barren=0)
    elif person.guard.trusted and prior.shares:
        if shared is None:
            prior, person = _absorb(prior, person, example, past)
        else:
            prior = altered(prior, ranker=shared, gain=prior.gain if found is None else prior.gain.add(found[1]))
    person = _judged(prior, person)
    fault = fault or _loss(believed, guard)
    level = _level(prior, person)
    if level == before and not fault:
        return Advanced(prior=prior, person=person)
    person = replace(person, level=level, changed_at=at)
    return Advanced(prior=prior, person=person, switched=(before, level), why=fault or _reason(prior, person))


def serving(prior: Prior, person: Person | None) -> tuple[Level, Ranker | None]:
    """The level to serve now, and the ranker that does it (None: the base alone).

    Asked afresh each time: what others taught since the person's last outcome counts at once.
    """
    if person is None:
        person = Person(own=prior.person(0))
    person = _judged(prior, person)
    level = _level(prior, person)
    return level, {"base": None, "prior": prior.ranker, "person": person.own}[level]


def _others(prior: Prior, person: Person) -> Evidence:
    return person.lent if person.absorbed else prior.gain


def _level(prior: Prior, person: Person) -> Level:
    guard = person.guard
    if not guard.beats:
        return "base"
    if guard.trusted and guard.gain.n >= LEAST and person.own.finite:
        return "person"
    return "prior" if prior.ranker and prior.ranker.finite else "base"


def _taught(prior: Prior, person: Person, guard: Guard, example: Example) -> tuple[Ranker, Ranker | None]:
    """The person's ranker and the prior's after this outcome; None when it is not, or not yet, for the prior."""
    if guard.lost:
        return person.own, None
    if not (guard.trusted and prior.shares and person.absorbed):
        return person.own.updated(example), None
    own, shared = updated([person.own, prior.ranker or Ranker.fresh(person.own.width)], example)
    return own, shared


def _absorb(
    prior: Prior, person: Person, example: Example, past: Callable[[], Iterable[Example]]
) -> tuple[Prior, Person]:
    """The outcomes of a person who has just become trusted enter the prior."""
    width = person.own.width
    lessons = [*past(), example]
    grown = replace(
        prior,
        ranker=_learned(prior.ranker or Ranker.fresh(width), lessons),
        gain=prior.gain.plus(person.guard.gain),
        users=prior.users + 1,
    )
    return grown, replace(person, own=_learned(prior.person(width), lessons), absorbed=True, lent=prior.gain)


def _judged(prior: Prior, person: Person) -> Person:
    """With the verdict whether a learned ranking beats the base."""
    beats = person.guard.serve(_others(prior, person))
    return person if beats == person.guard.beats else replace(person, guard=replace(person.guard, beats=beats))


def _learned(ranker: Ranker, lessons: Iterable[Example]) -> Ranker:
    for lesson in lessons:
        ranker = ranker.updated(lesson)
    return ranker


def _collapse(person: Person) -> str:
    """Why the person's weights must go; empty when they may stay."""
    if not person.own.finite:
        return "collapse: weights are not finite; reset to the prior"
    guard = person.guard
    if guard.trusted and guard.gain.n >= LEAST and guard.gain.bound(Z_COLLAPSE) < 0.0:
        return f"collapse: the learned ranking is worse than the base; reset to the prior: gain {guard.gain}"
    if person.barren >= LEAST:
        # A ranking that shows nothing useful gets no citations to be judged by, so the gain would stay as it was.
        return f"collapse: {person.barren} outcomes in a row without a citation; reset to the prior"
    return ""


def _loss(before: Guard, after: Guard) -> str:
    """Why trust was lost with this outcome; empty when it was not."""
    if not before.trusted or after.trusted:
        return ""
    if after.agree.n:
        return f"{after.distrust()}; nothing is learned from it until it is trusted again"
    return (
        f"feedback turned: agreement was {before.agree}, and recent outcomes fall far short of it; "
        "nothing is learned from it until it is trusted again"
    )


def _reason(prior: Prior, person: Person) -> str:
    if person.level == "person":
        return f"own feedback is trusted, and the learned ranking beats the base: gain {person.guard.gain}"
    distrust = person.guard.distrust()
    if person.level == "prior":
        return distrust or f"the tenant's prior beats the base: gain {_others(prior, person)}"
    return distrust or f"no evidence that the learned ranking beats the base: gain {person.guard.gain}"
