"""A small world with hidden rules, and an agent in it that knows only what it reads.

Services work in one way and do not say which. The agent knows the tools and the values it could give; the rule it can
only learn from the items it is given. It has three tries at a task: first what strategies say, then guesses in an order
that depends on the task alone; what an item says has failed comes last.

| family     | the rule                                                                      | ways that could be right |
|------------|-------------------------------------------------------------------------------|--------------------------|
| convention | one argument has to be written in one way, another one for each condition     | 8                        |
| retry      | a service that is busy at first wants one thing done before it is asked again | 6                        |
| recipe     | two of five preparations have to come right before the call, in order         | 20                       |

A condition is a word of the task ("domestic", "foreign"). Every task is put in one of several ways. There are two
vocabularies: `tune` was looked at while the bank was made, `check` was not.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any, Literal

from wellworn.tasks.calls import FROM_TASK

Family = Literal["convention", "retry", "recipe"]
FAMILIES: tuple[Family, ...] = ("convention", "retry", "recipe")


@dataclass(frozen=True)
class Vocabulary:
    """The words of one world."""

    names: str
    phrases: dict[Family, tuple[str, ...]]
    conventions: dict[str, tuple[str, str, tuple[str, ...]]]
    """Noun → its conditions, the argument, the values it could have."""
    retried: tuple[str, ...]
    released: tuple[str, ...]


VOCABULARIES = {
    "tune": Vocabulary(
        names="Ada Bob Cem Dana Eli Fay Gus Hana Ivo Jun Kira Leo Mia Noor Omar Pia Quin Rosa Sven Tia",
        phrases={
            "convention": (
                "Make a new {condition} {noun} for {name}",
                "{name} needs a {condition} {noun}, please make it",
                "There is no {noun} for {name} yet: add a {condition} one",
                "We owe {name} one {noun} ({condition})",
            ),
            "retry": (
                "Fetch the {noun} of {name}",
                "Get me {name}'s {noun}",
                "{name} asks for the latest {noun}",
                "Which {noun} do we have for {name}? Download it",
            ),
            "recipe": (
                "Release the {noun} of {name}",
                "{name} waits for the {noun}, release it",
                "Hand the {noun} over to {name}",
                "The {noun} for {name} can go out now",
            ),
        },
        conventions={
            "invoice": ("domestic foreign internal", "currency", ("euro", "EUR", "eur", "€", "978", "Euro", "E", "ec")),
            "credit note": (
                "small medium large",
                "reason",
                ("returned", "RETURN", "R", "r1", "return", "RT", "ret", "01"),
            ),
            "booking": (
                "single group weekly",
                "date",
                ("01.05.2026", "2026-05-01", "5/1/26", "May 1", "20260501", "1 May", "01/05/26", "17775"),
            ),
            "support ticket": (
                "public internal partner",
                "priority",
                ("urgent", "P1", "1", "high", "critical", "U", "prio-1", "!!!"),
            ),
            "voucher": ("", "country", ("Germany", "DE", "DEU", "de", "276", "D", "ger", "de-DE")),
        },
        retried=("usage report", "bank statement", "audit log", "payroll export", "stock count"),
        released=("spare parts", "press kit", "test build", "guest pass"),
    ),
    "check": Vocabulary(
        names="Alma Bram Cleo Dov Esra Finn Greta Hugo Ines Joss Kaya Lars Mona Nico Otis Pola Remi Suri Theo Vera",
        phrases={
            "convention": (
                "Create one {condition} {noun} and put it under {name}",
                "Could you open a {noun} for {name}? It is a {condition} one",
                "{name} wants to have a {condition} {noun}",
                "Register {name} with a {noun}, {condition}",
            ),
            "retry": (
                "Look up the {noun} for {name}",
                "I need to see the {noun} that belongs to {name}",
                "Pull {name}'s current {noun}",
                "Send {name} a copy of the {noun}",
            ),
            "recipe": (
                "Ship the {noun} to {name}",
                "Please approve the {noun}; {name} is waiting",
                "Let {name} have the {noun}",
                "Close the {noun} that {name} opened",
            ),
        },
        conventions={
            "subscription": (
                "monthly yearly trial",
                "plan",
                ("basic", "B", "b1", "BASIC", "std", "standard", "tier-1", "1"),
            ),
            "server": (
                "stable nightly beta",
                "image",
                ("debian", "Debian 12", "deb12", "bookworm", "debian:12", "d12", "os-7", "linux"),
            ),
            "parcel label": (
                "light heavy fragile",
                "weight",
                ("2kg", "2000", "2 kg", "2.0", "2000g", "kg:2", "4.4lb", "2"),
            ),
            "mailbox": ("shared private archive", "quota", ("5GB", "5000", "5g", "5120M", "large", "L", "5 GB", "q5")),
            "door card": ("", "zone", ("north", "N", "n1", "NORTH", "zone-n", "1", "A", "north wing")),
        },
        retried=("weather data", "exchange rate", "access history", "delivery status", "meter reading"),
        released=("purchase order", "design draft", "holiday request", "safety report"),
    ),
}


@dataclass(frozen=True)
class WorldCall:
    """A tool and its arguments."""

    tool: str
    args: dict[str, Any] = field(default_factory=dict)  # any JSON value


@dataclass(frozen=True)
class Way:
    """How a call could be made: what comes before it, and what it is given besides the name."""

    before: tuple[WorldCall, ...] = ()
    given: tuple[tuple[str, str], ...] = ()


POLICIES = (
    *(WorldCall("wait", {"seconds": seconds}) for seconds in (1, 5, 20, 90)),
    WorldCall("renew_token"),
    WorldCall("use_mirror"),
)
PREPARATIONS = tuple(WorldCall(tool) for tool in ("check", "sign", "stamp", "weigh", "notify"))


@dataclass(frozen=True)
class Kind:
    """A sort of task, and all that an agent knows about it."""

    family: Family
    noun: str
    condition: str
    ways: tuple[Way, ...]
    bare_first: bool = False
    """Whether anybody would simply call the service before thinking of anything else."""

    @property
    def tool(self) -> str:
        verb = {"convention": "make", "retry": "fetch", "recipe": "release"}[self.family]
        return f"{verb}_{self.noun.replace(' ', '_')}"


@dataclass(frozen=True)
class WorldTask:
    """One task: a kind and whom it is for."""

    number: int
    kind: Kind
    name: str
    query: str

    @property
    def own(self) -> dict[str, str]:
        """The arguments that the task itself names."""
        return {"name": self.name, **({"type": self.kind.condition} if self.kind.condition else {})}


def kinds(words: Vocabulary) -> list[Kind]:
    """Every kind of task there is, family by family."""
    made = [
        Kind("convention", noun, condition, tuple(Way(given=((argument, value),)) for value in values))
        for noun, (conditions, argument, values) in words.conventions.items()
        for condition in conditions.split() or [""]
    ]
    policies = tuple(Way(before=(policy,)) for policy in POLICIES)
    fetched = [Kind("retry", noun, "", policies, bare_first=True) for noun in words.retried]
    recipes = tuple(Way(before=pair) for pair in permutations(PREPARATIONS, 2))
    return [*made, *fetched, *(Kind("recipe", noun, "", recipes) for noun in words.released)]


class World:
    """Knows the rules and answers calls."""

    def __init__(self, words: Vocabulary, seed: int) -> None:
        draw = random.Random(f"rules/{seed}")
        self._rules = {(kind.noun, kind.condition): draw.choice(kind.ways) for kind in kinds(words)}

    def answer(self, kind: Kind, done: Sequence[WorldCall], call: WorldCall) -> dict[str, Any]:  # a step
        """What comes of a call after those done before: other tools work, the service only by its rule."""
        step = {"tool": call.tool, "args": call.args}
        if call.tool != kind.tool:
            return {**step, "ok": True}
        rule = self._rules[kind.noun, kind.condition]
        ready = not rule.before or tuple(done[-len(rule.before) :]) == rule.before
        if ready and all(call.args.get(name) == value for name, value in rule.given):
            return {**step, "ok": True}
        refused = {"convention": "400 bad request", "retry": "503 busy", "recipe": "409 not ready"}
        return {**step, "ok": False, "error": refused[kind.family]}


def tasks(words: Vocabulary, seed: int, count: int, *, shuffled: bool) -> list[WorldTask]:
    """So many tasks, every kind equally often: kind after kind, or in random order. The tasks are the same."""
    draw = random.Random(f"tasks/{seed}")
    turn = kinds(words)
    order = sorted((turn[number % len(turn)] for number in range(count)), key=turn.index)
    found = []
    for number, kind in enumerate(order):
        name, phrase = draw.choice(words.names.split()), draw.choice(words.phrases[kind.family])
        query = " ".join(phrase.format(noun=kind.noun, name=name, condition=kind.condition).split())
        query = query.replace("()", "").replace(" ,", ",").rstrip(" ,")
        found.append(WorldTask(number=number, kind=kind, name=name, query=query))
    if shuffled:
        draw.shuffle(found)
    return found


# -- the agent ------------------------------------------------------------------------------------------------------

TRIES = 3
CHECK = "the service did it"
"""The caller's own look at the end: an agent that called something else without an error has done nothing."""


@dataclass(frozen=True)
class Read:
    """One item, understood: what to do, and what has failed."""

    calls: tuple[WorldCall, ...] = ()
    failed: tuple[WorldCall, ...] = ()

    def about(self, tool: str) -> bool:
        return any(call.tool == tool for call in (*self.calls, *self.failed))


def read(metadata: Mapping[str, Any]) -> Read:
    """What the data of an item says to do, and what it says has failed."""
    data = metadata.get("pattern_data", {})
    calls, failed = (
        tuple(WorldCall(call["tool"], call["args"]) for call in data.get(part, ())) for part in ("calls", "failed")
    )
    return Read(calls=calls, failed=failed)


def attempt(
    world: World, task: WorldTask, told: Sequence[Read], *, seed: int, gullible: bool = False, tries: int = TRIES
) -> dict[str, Any]:
    """The task done with at most so many calls of its service, as a trajectory that says which items were used."""
    used = [place for place, one in enumerate(told) if gullible or one.about(task.kind.tool)]
    steps: list[dict[str, Any]] = []
    done: list[WorldCall] = []
    finished = False
    for call in (call for calls in _tries(task, [told[place] for place in used], seed, tries) for call in calls):
        steps.append(world.answer(task.kind, done, call))
        done.append(call)
        finished = call.tool == task.kind.tool and steps[-1]["ok"]
        if finished:
            break
    return {"query": task.query, "steps": steps, "used": used, "checks": {CHECK: finished}}


def _tries(task: WorldTask, told: Sequence[Read], seed: int, most: int) -> Iterator[tuple[WorldCall, ...]]:
    """What to do, try by try: as told, else bare where anybody would, then by guessing."""
    advised = [_filled(one.calls, task) for one in told if one.calls]
    bare = [(WorldCall(task.kind.tool, task.own),)] if task.kind.bare_first and not advised else []
    guesses = [_filled_way(task, way) for way in _guessed(task, told, seed)]
    tried: list[tuple[WorldCall, ...]] = []
    for calls in [*advised, *bare, *guesses]:
        if len(tried) < most and calls not in tried:
            tried.append(calls)
            yield calls


def _guessed(task: WorldTask, told: Sequence[Read], seed: int) -> list[Way]:
    """The ways that nothing speaks against, in this task's own random order; those that something does come last."""
    draw = random.Random(f"guess/{seed}/{task.number}")
    ways = list(task.kind.ways)
    draw.shuffle(ways)
    failed = [one.failed for one in told]
    return sorted(ways, key=lambda way: any(_same_way(task.kind, way, calls) for calls in failed))


def _same_way(kind: Kind, way: Way, failed: Sequence[WorldCall]) -> bool:
    """Whether calls that failed are this way: the same values given, after the same preparations."""
    for place, call in enumerate(failed):
        if call.tool != kind.tool:
            continue
        before = tuple(failed[max(0, place - len(way.before)) : place])
        given = all(str(call.args.get(name)) == value for name, value in way.given)
        if given and before == way.before and (way.before or way.given):
            return True
    return False


def _filled(calls: Sequence[WorldCall], task: WorldTask) -> tuple[WorldCall, ...]:
    """Advice for this task: what it leaves open is what the task itself says."""
    own = task.own
    return tuple(
        WorldCall(
            call.tool, {key: own.get(key, "") if value == FROM_TASK else value for key, value in call.args.items()}
        )
        for call in calls
    )


def _filled_way(task: WorldTask, way: Way) -> tuple[WorldCall, ...]:
    return (*way.before, WorldCall(task.kind.tool, {**task.own, **dict(way.given)}))
