"""Who is served by what: the tenant's prior, a person's own ranker, or the base; and the one step that learns.

`advance` is that step. It is used for an outcome as it arrives and for replaying the log, so both give the same state.
Levels: `base`; `prior`, when trusted people of the tenant show a gain; `person`, when the person's own feedback is
trusted too. Only outcomes of trusted people enter the prior, and it holds numbers only. A person who was trusted and no
longer is teaches nothing, not even themselves, until they are trusted again; nor do outcomes that cite the same places
30 times in a row. This module knows no store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal, get_args

from wellworn.core.values import Partition, altered
from wellworn.learning.guard import LEAST, NO_EVIDENCE, Evidence, Guard, compare
from wellworn.learning.ranker import Example, Ranker
from wellworn.learning.records import LoggedOutcome

Level = Literal["base", "prior", "person"]
LEVELS: tuple[Level, ...] = get_args(Level)

Z_COLLAPSE = 2.0
"""Serving stops at one standard error below 0; weights are thrown away only at two, as relearning them costs more."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Prior:
    """What a tenant's trusted people taught together."""

    ranker: Ranker | None = None
    gain: Evidence = NO_EVIDENCE
    """Pooled gain of their rankers over the base."""
    users: int = 0
    """People whose outcomes are in it."""
    shares: bool = True
    """False: nobody's outcomes enter. A ranker that is there already (from a file, say) still serves."""

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
    lent: Evidence = NO_EVIDENCE
    """The tenant's gain just before they were absorbed: others' evidence, so that their own is not counted twice."""
    barren: int = 0
    """Outcomes in a row without any citation while their own ranker served."""
    places: tuple[int, ...] = ()
    """The places that their last outcome cited."""
    same: int = 0
    """Outcomes in a row that cited the same places."""
    level: Level = "base"
    changed_at: datetime | None = None
    """When the level last changed."""

    @property
    def positional(self) -> bool:
        """The same places were cited so often in a row that it says nothing about the entries there."""
        return self.same >= LEAST

    def distrust(self) -> str:
        """Why their feedback teaches nothing now, in one line; empty while it does, or may."""
        if self.positional:
            return f"the last {self.same} outcomes cite the same places, whatever stands there"
        return self.guard.distrust()


@dataclass(frozen=True, kw_only=True, eq=False)
class Advanced:
    """The state after an outcome.

    `switched` is (from, to) when the level changed, a collapse was rolled back, or trust was lost; `why` says why.
    """

    prior: Prior
    person: Person
    switched: tuple[Level, Level] | None = None
    why: str = ""


def advance(
    prior: Prior, person: Person | None, example: Example, *, past: Callable[[], Iterable[Example]], at: datetime
) -> Advanced:
    """Learn from one outcome.

    `past` gives the person's earlier examples in order, without this one. It is called once, when they become trusted:
    their past then enters the prior, and their own ranker is learned again on top of the prior of that moment, so that
    those who began before there was a prior do not stay behind those who came later.
    """
    width = example.features.shape[1]
    if person is None:
        person = Person(own=prior.person(width))
    before, believed = person.level, person.guard
    places = tuple(place for place, cited in enumerate(example.cited.tolist()) if cited)
    person = altered(person, places=places, same=person.same + 1 if places == person.places else 1)
    found = None if person.positional else _compared(person.own, example)
    guard = believed.see(found)
    taught = not (guard.lost or person.positional)
    person = altered(
        person,
        own=person.own.updated(example) if taught else person.own,
        guard=guard,
        outcomes=person.outcomes + 1,
        barren=person.barren + 1 if before == "person" and not places else 0,
    )
    fault = _collapse(person)
    if fault:
        # The evidence was about weights that are gone; without it, nothing of their own serves for LEAST outcomes.
        person = replace(person, own=prior.person(width), guard=replace(guard, gain=NO_EVIDENCE, beats=False), barren=0)
    elif guard.trusted and prior.shares and taught:
        if person.absorbed:
            ranker = (prior.ranker or Ranker.fresh(width)).updated(example)
            prior = altered(prior, ranker=ranker, gain=prior.gain if found is None else prior.gain.add(found[1]))
        else:
            prior, person = _absorb(prior, person, [*past(), example])
    person = _judged(prior, person)
    fault = fault or _loss(believed, guard)
    level = _level(prior, person)
    if level == before and not fault:
        return Advanced(prior=prior, person=person)
    person = replace(person, level=level, changed_at=at)
    return Advanced(prior=prior, person=person, switched=(before, level), why=fault or _reason(prior, person))


def serving(prior: Prior, person: Person | None) -> tuple[Level, Ranker | None]:
    """The level to serve now, and the ranker that does it (None: the base alone).

    Asked again each time, so that what others taught since the person's last outcome counts at once.
    """
    person = _judged(prior, person or Person(own=prior.person(0)))
    level = _level(prior, person)
    return level, {"base": None, "prior": prior.ranker, "person": person.own}[level]


def _compared(own: Ranker, example: Example) -> tuple[float, float] | None:
    """How the base order and the learned order, before it learns, predict what was cited."""
    correction = own.correction(example.base, example.features, example.best)
    base, shown = example.base.tolist(), example.shown
    return compare(base[:shown], (example.base + correction)[:shown].tolist(), example.cited.tolist())


def _others(prior: Prior, person: Person) -> Evidence:
    return person.lent if person.absorbed else prior.gain


def _level(prior: Prior, person: Person) -> Level:
    guard = person.guard
    if not guard.beats:
        return "base"
    if guard.trusted and guard.gain.n >= LEAST and person.own.finite:
        return "person"
    return "prior" if prior.ranker and prior.ranker.finite else "base"


def _absorb(prior: Prior, person: Person, lessons: list[Example]) -> tuple[Prior, Person]:
    """The outcomes of a person who has just become trusted enter the prior."""
    shared, own = prior.ranker or Ranker.fresh(person.own.width), prior.person(person.own.width)
    for lesson in lessons:
        shared, own = shared.updated(lesson), own.updated(lesson)
    gain = prior.gain.plus(person.guard.gain)
    grown = replace(prior, ranker=shared, gain=gain, users=prior.users + 1)
    return grown, replace(person, own=own, absorbed=True, lent=prior.gain)


def _judged(prior: Prior, person: Person) -> Person:
    """With the verdict whether a learned ranking beats the base."""
    beats = person.guard.serve(_others(prior, person))
    return person if beats == person.guard.beats else replace(person, guard=replace(person.guard, beats=beats))


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


@dataclass(kw_only=True)
class Replay:
    """A tenant's log learned from the start, by the same step that learned it as it came.

    Outcomes up to number `last` have been learned, or are not to be. `read` gives the outcomes after a number, in
    order; `steps` may be called again for newer ones.
    """

    prior: Prior
    read: Callable[[int], Iterable[tuple[LoggedOutcome, Example]]]
    people: dict[Partition, Person] = field(default_factory=dict)
    last: int = 0
    _past: dict[Partition, list[Example]] = field(default_factory=dict)

    def steps(self) -> Iterator[tuple[LoggedOutcome, Example, Person]]:
        """Learn what has not been learned yet; gives each outcome, its example, and the person after it."""
        for outcome, example in self.read(self.last):
            partition = outcome.recall.partition
            past = self._past.setdefault(partition, [])
            after = advance(self.prior, self.people.get(partition), example, past=past.copy, at=outcome.at)
            past.append(example)
            self.prior, self.people[partition], self.last = after.prior, after.person, outcome.no
            yield outcome, example, after.person
