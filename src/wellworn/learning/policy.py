"""Who is served by what: the tenant's prior, a person's own ranker, or the base; and the one step that learns.

`advance` is that step. It is used for an outcome as it arrives and for replaying the log, so both give the same state.
Levels: `base`; `prior`, when trusted people of the tenant show a gain and nothing says that it is wrong for this person;
`person`, when their own ranker predicted their own later citations better than chance and better than the base. Only
outcomes of such people enter the prior, and it holds numbers only. Outcomes that cite the same places 30 times in a
row, or most of what is shown, teach nothing. This module knows no store.

States and a tenant's settings are kept as JSON text, every float exact:

    {"format": 1, "kind": "prior" | "person", "names": [feature, …], …the fields of the state}

A ranker's `theta` is a list of numbers, the first of them the weight on the base score. Its `precision` is the matrix,
row by row, as little-endian float64 in base64. Evidence is [n, total, squares]. A state of other features, of another
format, or unreadable counts as none: the log rebuilds it.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import msgspec
import numpy as np

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import InvalidInput
from wellworn.core.values import Partition, altered
from wellworn.learning.guard import LEAST, NO_EVIDENCE, Z_AGREE, Evidence, Guard, auc, proven
from wellworn.learning.ranker import Array, Example, Ranker
from wellworn.learning.records import LoggedOutcome

Level = Literal["base", "prior", "person"]
LEVELS: tuple[Level, ...] = get_args(Level)

Z_COLLAPSE = 2.0
"""Serving stops at one standard error below 0; weights are thrown away only at two, as relearning them costs more."""
LEAST_SHARED = 10
"""Outcomes that can show that the prior is wrong for a person. It hides what they mean, so there are few to cite."""
_WRONG = Evidence(n=LEAST, total=-LEAST / 4, squares=LEAST / 8)


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
    labelled: bool = False
    """It began with labelled pairs. Those are meant to be used, so it serves unless its gain is clearly below 0."""

    def person(self, width: int) -> Ranker:
        """Where a person starts."""
        return self.ranker.person() if self.ranker else Ranker.fresh(width)

    def pretrained(self, examples: Sequence[Example]) -> Prior:
        """After examples that somebody labelled. The evidence for it: how each half of them predicts the other."""
        first = self.ranker or Ranker.fresh(examples[0].features.shape[1])
        halves = [_taught(first, examples[1::2]), _taught(first, examples[::2])]
        gain = self.gain
        for number, example in enumerate(examples):
            gain = gain.add(_predicted(halves[number % 2], example) - _predicted(None, example))
        return replace(self, ranker=_taught(first, examples), gain=gain, labelled=True)


@dataclass(frozen=True, kw_only=True, eq=False)
class Person:
    """What one person's outcomes taught."""

    own: Ranker
    guard: Guard = field(default_factory=Guard)
    shared: Evidence = NO_EVIDENCE
    """How much better than the base the prior predicted this person's citations."""
    outcomes: int = 0
    absorbed: bool = False
    """Their past outcomes are in the prior."""
    barren: int = 0
    """Outcomes in a row without any citation while a learned ranking served."""
    places: tuple[int, ...] = ()
    """The places that their last outcome cited."""
    same: int = 0
    """Outcomes in a row that cited the same places, or most of the shown: neither says what is better."""
    level: Level = "base"
    changed_at: datetime | None = None
    """When the level last changed."""

    def distrust(self) -> str:
        """Why their feedback teaches nothing now, in one line; empty while it does, or may. The first places are right
        where the ranking is: that is no reason."""
        if self.guard.trusted or self.same < LEAST or self.places == (0,):
            return self.guard.distrust()
        return f"the last {self.same} outcomes cite the same places, or most of what is shown"


@dataclass(frozen=True, kw_only=True, eq=False)
class Advanced:
    """The state after an outcome; `switched` is (from, to) when the level changed or weights were discarded."""

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
    person = person or Person(own=prior.person(width))
    before, found, shared, guard = person.level, None, person.shared, person.guard
    places = tuple(example.cited.nonzero()[0].tolist())
    most = len(places) > example.shown / 2
    same = person.same + 1 if most or places == person.places else 1
    teaches = example.wanted is not None and same < LEAST
    if teaches:
        base, own = _predicted(None, example), _predicted(person.own, example)
        found = own, own - base
        if prior.ranker is not None:
            shared = shared.add(_predicted(prior.ranker, example) - base)
    elif most and not guard.trusted:
        found = 0.0, 0.0  # chance: inverted feedback is of this kind
    guard = guard.see(found) if found else guard
    person = altered(
        person,
        own=person.own.updated(example) if teaches else person.own,
        guard=guard,
        shared=shared,
        outcomes=person.outcomes + 1,
        barren=person.barren + 1 if before != "base" and not places else 0,
        places=places,
        same=same,
    )
    fault = _fault(person)
    if person.barren >= LEAST and before == "prior":  # it shows nothing useful, so no citation can speak against it
        person = replace(person, shared=_WRONG, barren=0)
    elif fault:
        # The evidence was about weights that are gone; without it, nothing of their own serves for LEAST outcomes.
        person = replace(person, own=prior.person(width), guard=Guard(), barren=0)
    elif guard.trusted and prior.shares and found is not None:
        if person.absorbed:
            ranker = (prior.ranker or Ranker.fresh(width)).updated(example)
            prior = altered(prior, ranker=ranker, gain=prior.gain.add(found[1]))
        elif guard.beats:
            prior, person = _absorb(prior, person, [*past(), example])
    level = _level(prior, person)
    if level == before and not fault:
        return Advanced(prior=prior, person=person)
    person = replace(person, level=level, changed_at=at)
    why = fault or person.distrust() or f"gain over the base: {prior.gain if level == 'prior' else person.guard.gain}"
    return Advanced(prior=prior, person=person, switched=(before, level), why=why)


def serving(prior: Prior, person: Person | None) -> tuple[Level, Ranker | None]:
    """The level to serve now, and the ranker that does it (None: the base alone).

    Asked again each time, so that what others taught since the person's last outcome counts at once.
    """
    person = person or Person(own=prior.person(0))
    level = _level(prior, person)
    return level, {"base": None, "prior": prior.ranker, "person": person.own}[level]


def _taught(ranker: Ranker, examples: Iterable[Example]) -> Ranker:
    for example in examples:
        ranker = ranker.updated(example)
    return ranker


def _predicted(ranker: Ranker | None, example: Example) -> float:
    """How well an order of the shown predicts what was cited: the base's, or a ranker's before it learns from it."""
    scores = example.base
    if ranker is not None:
        scores = scores + ranker.correction(example.base, example.features, example.best)
    return auc(scores[: example.shown].tolist(), example.cited.tolist())


def _level(prior: Prior, person: Person) -> Level:
    if person.guard.beats and person.own.finite:
        return "person"
    wrong = person.shared.n >= LEAST_SHARED and person.shared.bound(Z_AGREE) < 0.0
    helps = proven(prior.gain, prior.labelled or person.level == "prior")
    return "prior" if prior.ranker and prior.ranker.finite and helps and not wrong else "base"


def _absorb(prior: Prior, person: Person, lessons: list[Example]) -> tuple[Prior, Person]:
    """The outcomes of a person who has just become trusted enter the prior."""
    width = person.own.width
    ranker, own = _taught(prior.ranker or Ranker.fresh(width), lessons), _taught(prior.person(width), lessons)
    grown = replace(prior, ranker=ranker, gain=prior.gain.plus(person.guard.gain), users=prior.users + 1)
    return grown, replace(person, own=own, absorbed=True)


def _fault(person: Person) -> str:
    """Why the person's weights must go; empty when they may stay."""
    guard = person.guard
    if not person.own.finite:
        return "collapse: weights are not finite; reset to the prior"
    if guard.turned:
        return f"feedback turned: agreement was {guard.agree}, and recent outcomes fall far short of it; begun anew"
    if guard.trusted and guard.gain.n >= LEAST and guard.gain.bound(Z_COLLAPSE) < 0.0:
        return f"collapse: the learned ranking is worse than the base; reset to the prior: gain {guard.gain}"
    if person.barren >= LEAST and person.level == "person":
        # A ranking that shows nothing useful gets no citations to be judged by, so the gain would stay as it was.
        return f"collapse: {person.barren} outcomes in a row without a citation; reset to the prior"
    return ""


@dataclass(kw_only=True)
class Replay:
    """A tenant's log learned from the start, by the same step that learned it as it came; each profile by itself.

    Outcomes up to number `last` have been learned, or are not to be. `beginning` gives the first prior of a profile.
    """

    beginning: Callable[[str], Prior]
    last: int
    priors: dict[str, Prior] = field(default_factory=dict)
    people: dict[tuple[str, Partition], Person] = field(default_factory=dict)
    _past: dict[tuple[str, Partition], list[Example]] = field(default_factory=dict)

    def take(self, lessons: Iterable[tuple[LoggedOutcome, Example]]) -> None:
        """Learn the outcomes that come next, in order."""
        for outcome, example in lessons:
            profile, who = outcome.recall.profile, (outcome.recall.profile, outcome.recall.partition)
            past, prior = self._past.setdefault(who, []), self.priors.get(profile) or self.beginning(profile)
            after = advance(prior, self.people.get(who), example, past=past.copy, at=outcome.at)
            past.append(example)
            self.priors[profile], self.people[who], self.last = after.prior, after.person, outcome.no


# -- states and settings as text ---------------------------------------------------------------------------------------

FORMAT = 1
BUNDLED = {"dialogue": Path(__file__).with_name("dialogue.json")}
"""Priors that come with the package, by name; `python -m evals prior` makes them."""
SETTINGS = "(settings)"
"""In the place of a profile, where a tenant's settings are kept: they hold for every profile."""

S = TypeVar("S", Prior, Person)


def dumps_state(state: Prior | Person, names: Sequence[str]) -> str:
    """The state as text; `names` are the features that its weights belong to, in order."""
    head = {"format": FORMAT, "kind": type(state).__name__.lower(), "names": [*names]}
    return msgspec.json.encode(head | msgspec.to_builtins(state, enc_hook=_of_array)).decode()


def loads_state(of: type[S], text: str | None, names: Sequence[str]) -> S | None:
    """The state in this text; None when there is none of this kind for these features."""
    try:
        value = msgspec.json.decode(text or "")
        if (value["format"], value["kind"], value["names"]) != (FORMAT, of.__name__.lower(), [*names]):
            return None
        state = msgspec.convert(value, of, dec_hook=_to_array)
    except (msgspec.MsgspecError, KeyError, TypeError, ValueError):
        return None
    ranker = state.own if isinstance(state, Person) else state.ranker
    fits = ranker is None or ranker.width + 1 == len(ranker.precision) == len(names) + 1
    return state if fits else None


def _of_array(array: Any) -> Any:
    return array.tolist() if array.ndim == 1 else base64.b64encode(array.astype("<f8").tobytes()).decode()


def _to_array(_: type, value: Any) -> Array:
    if isinstance(value, list):
        return np.array(value, dtype=np.float64)
    numbers = np.frombuffer(base64.b64decode(value, validate=True), dtype="<f8").astype(np.float64)
    return numbers.reshape(math.isqrt(len(numbers)), -1)  # ValueError where they are no square


def read_prior(path: Path, names: Sequence[str]) -> Prior:
    """The prior in a file that an export was written to (the whole export, or its `prior` alone), or a bundled one."""
    path = BUNDLED.get(str(path), path)
    if path.exists() and not path.is_file():  # reading a named pipe or a device may never end
        raise InvalidInput("prior", f"{str(path)!r} is not a plain file", "give a file of exported learning")
    try:
        value = msgspec.json.decode(path.read_bytes())
    except (OSError, msgspec.MsgspecError) as error:
        raise InvalidInput(
            "prior", f"{str(path)!r} cannot be read: {error}", "give a file of exported learning, or dialogue"
        ) from None
    if isinstance(value, dict) and isinstance(value.get("prior"), dict):
        value = value["prior"]
    prior = loads_state(Prior, msgspec.json.encode(value).decode(), names)
    if prior is None or prior.ranker is None:
        raise InvalidInput("prior", f"{str(path)!r} holds no prior for these features", "export one with this release")
    return prior


@dataclass(frozen=True, kw_only=True)
class Tenant:
    """The settings of a tenant, for every profile. Written when they change, never by an outcome."""

    shares: bool = True
    """Whether its people learn from each other."""
    since: int = 0
    """Number of the last outcome before a reset: it and those before it teach no more."""
    starts: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By profile, the state of the prior that labelled pairs taught."""

    def start(self, profile: str, names: Sequence[str]) -> Prior | None:
        """The pretrained prior of a profile; None when there is none for these features."""
        return loads_state(Prior, msgspec.json.encode(self.starts.get(profile)).decode(), names)

    def with_start(self, profile: str, prior: Prior | None, names: Sequence[str]) -> Tenant:
        """With another pretrained prior of a profile, or without one."""
        others = {name: state for name, state in self.starts.items() if name != profile}
        start = {} if prior is None else {profile: msgspec.json.decode(dumps_state(prior, names))}
        return replace(self, starts=others | start)


def dumps_tenant(tenant: Tenant) -> str:
    return msgspec.json.encode(tenant).decode()


def loads_tenant(text: str | None) -> Tenant:
    """The settings in this text, the defaults when there is none. What cannot be read shares nothing."""
    if text is None:
        return Tenant()
    try:
        return msgspec.json.decode(text, type=Tenant)
    except msgspec.MsgspecError:
        return Tenant(shares=False)
