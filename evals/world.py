"""A small world with hidden rules, and an agent in it that knows only what it reads.

Services work in one way and do not say which. The agent knows the tools and the values it could give; the rule it can
only learn from the items it is given. It has three tries at a task: first what strategies say, then guesses in an order
that depends on the task alone; what an item says has failed comes last.

| family     | the rule                                                                 | ways that could be right |
|------------|--------------------------------------------------------------------------|--------------------------|
| convention | one argument has to be written in one way                                | 8                        |
| retry      | a service that is busy at first wants one thing done before it is asked again | 6                   |
| recipe     | two of five preparations have to come right before the call, in order    | 20                       |
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any, Literal

from wellworn.tasks.calls import FROM_TASK

Family = Literal["convention", "retry", "recipe"]
FAMILIES: tuple[Family, ...] = ("convention", "retry", "recipe")

NAMES = "Ada Bob Cem Dana Eli Fay Gus Hana Ivo Jun Kira Leo Mia Noor Omar Pia Quin Rosa Sven Tia".split()  # noqa: SIM905
PHRASES = {
    "convention": ("Make a new {noun} for {name}", "{name} needs a {noun}, please make it"),
    "retry": ("Fetch the {noun} of {name}", "Get me {name}'s {noun}"),
    "recipe": ("Release the {noun} of {name}", "{name} waits for the {noun}, release it"),
}
CONVENTIONS = {
    "invoice": ("currency", ("euro", "EUR", "eur", "€", "978", "Euro", "E", "ec")),
    "credit note": ("reason", ("returned", "RETURN", "R", "r1", "return", "RT", "ret", "01")),
    "booking": ("date", ("01.05.2026", "2026-05-01", "5/1/26", "May 1", "20260501", "1 May", "01/05/26", "1777593600")),
    "support ticket": ("priority", ("urgent", "P1", "1", "high", "critical", "U", "prio-1", "!!!")),
    "shipping label": ("weight", ("2kg", "2000", "2 kg", "2.0", "2000g", "kg:2", "4.4lb", "2")),
    "voucher": ("country", ("Germany", "DE", "DEU", "de", "276", "D", "ger", "de-DE")),
}
RETRIED = ("usage report", "bank statement", "audit log", "payroll export", "stock count", "sensor reading")
RELEASED = ("spare parts", "press kit", "test build", "grant payment", "exam result", "guest pass")


@dataclass(frozen=True)
class Call:
    """A tool and its arguments."""

    tool: str
    arguments: dict[str, Any] = field(default_factory=dict)  # any JSON value


@dataclass(frozen=True)
class Way:
    """How a call could be made: what comes before it, and what it is given besides the name."""

    before: tuple[Call, ...] = ()
    given: tuple[tuple[str, str], ...] = ()


POLICIES = (
    Call("wait", {"seconds": 1}),
    Call("wait", {"seconds": 5}),
    Call("wait", {"seconds": 20}),
    Call("wait", {"seconds": 90}),
    Call("renew_token"),
    Call("use_mirror"),
)
PREPARATIONS = (Call("check"), Call("sign"), Call("stamp"), Call("weigh"), Call("notify"))


@dataclass(frozen=True)
class Kind:
    """A sort of task, and all that an agent knows about it."""

    family: Family
    noun: str
    tool: str
    ways: tuple[Way, ...]
    bare_first: bool = False
    """Whether anybody would simply call the service before thinking of anything else."""


@dataclass(frozen=True)
class WorldTask:
    """One task: a kind and whom it is for."""

    number: int
    kind: Kind
    name: str
    query: str


def kinds() -> list[Kind]:
    """Every kind of task there is, family by family."""
    made = [
        Kind("convention", noun, _tool("make", noun), tuple(Way(given=((name, value),)) for value in values))
        for noun, (name, values) in CONVENTIONS.items()
    ]
    policies = tuple(Way(before=(policy,)) for policy in POLICIES)
    fetched = [Kind("retry", noun, _tool("fetch", noun), policies, bare_first=True) for noun in RETRIED]
    recipes = tuple(Way(before=pair) for pair in permutations(PREPARATIONS, 2))
    return [*made, *fetched, *(Kind("recipe", noun, _tool("release", noun), recipes) for noun in RELEASED)]


class World:
    """Knows the rules and answers calls."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(f"rules/{seed}")
        self._rules = {kind.tool: draw.choice(kind.ways) for kind in kinds()}

    def answer(self, kind: Kind, done: Sequence[Call], call: Call) -> dict[str, Any]:  # a step
        """What comes of a call after those done before: other tools work, the service only by its rule."""
        step = {"tool": call.tool, "args": call.arguments}
        if call.tool != kind.tool:
            return {**step, "ok": True}
        rule = self._rules[kind.tool]
        ready = not rule.before or tuple(done[-len(rule.before) :]) == rule.before
        if ready and all(call.arguments.get(name) == value for name, value in rule.given):
            return {**step, "ok": True}
        refused = {"convention": "400 bad request", "retry": "503 busy", "recipe": "409 not ready"}
        return {**step, "ok": False, "error": refused[kind.family]}


def tasks(seed: int, count: int, *, shuffled: bool) -> list[WorldTask]:
    """So many tasks, every kind equally often: kind after kind, or in random order. The tasks are the same."""
    draw = random.Random(f"tasks/{seed}")
    turn = kinds()
    order = sorted((turn[number % len(turn)] for number in range(count)), key=turn.index)
    found = []
    for number, kind in enumerate(order):
        name, phrase = draw.choice(NAMES), draw.choice(PHRASES[kind.family])
        query = phrase.format(noun=kind.noun, name=name)
        found.append(WorldTask(number=number, kind=kind, name=name, query=query))
    if shuffled:
        draw.shuffle(found)
    return found


def _tool(verb: str, noun: str) -> str:
    return f"{verb}_{noun.replace(' ', '_')}"


# -- the agent ------------------------------------------------------------------------------------------------------

TRIES = 3
CHECK = "the service did it"
"""The caller's own look at the end: an agent that called something else without an error has done nothing."""
_CALL = re.compile(r'(?P<tool>\w+)\((?P<given>(?:[^()"]|"(?:[^"\\]|\\.)*")*)\)')
_PAIR = re.compile(r'(?P<name>\w+)=(?P<value>\[from the task\]|"(?:[^"\\]|\\.)*"|[^\s,()]+)')
_LIKE = re.compile(r"^For tasks like “.*?”: ")
_ADVICE = re.compile(
    r"^(?:First|Call|This worked:|Try) (?P<calls>.*?)(?=\. \w+ failed with |: before that|: it worked|$)"
)
_FAILED_WITH = re.compile(r"\. (?P<tool>\w+) failed with (?P<given>.*?): “")


@dataclass(frozen=True)
class Read:
    """One item, understood: what to do, and what has failed."""

    calls: tuple[Call, ...] = ()
    failed: tuple[Call, ...] = ()

    def about(self, tool: str) -> bool:
        return any(call.tool == tool for call in (*self.calls, *self.failed))


def read(text: str) -> Read:
    """What the words of an item say to do, and what they say has failed."""
    said = _LIKE.sub("", text)
    if said.startswith(("Do not", "Do without", "This way did not succeed")):
        return Read(failed=tuple(_calls(said)))
    advice = _ADVICE.search(said)
    against = [Call(found["tool"], _given(found["given"])) for found in _FAILED_WITH.finditer(said)]
    return Read(calls=tuple(_calls(advice["calls"])) if advice else (), failed=tuple(against))


def attempt(
    world: World, task: WorldTask, items: Sequence[str], *, seed: int, gullible: bool = False, tries: int = TRIES
) -> dict[str, Any]:
    """The task done with at most so many calls of its service, as a trajectory that says which items were used."""
    told = [read(text) for text in items]
    used = [place for place, one in enumerate(told) if gullible or one.about(task.kind.tool)]
    steps: list[dict[str, Any]] = []
    done: list[Call] = []
    finished = False
    for call in (call for calls in _tries(task, [told[place] for place in used], seed, tries) for call in calls):
        steps.append(world.answer(task.kind, done, call))
        done.append(call)
        finished = call.tool == task.kind.tool and steps[-1]["ok"]
        if finished:
            break
    return {"query": task.query, "steps": steps, "used": used, "checks": {CHECK: finished}}


def _tries(task: WorldTask, told: Sequence[Read], seed: int, most: int) -> Iterator[tuple[Call, ...]]:
    """What to do, try by try: as told, else bare where anybody would, then by guessing."""
    advised = [_filled(one.calls, task.name) for one in told if one.calls]
    bare = [(Call(task.kind.tool, {"name": task.name}),)] if task.kind.bare_first and not advised else []
    guesses = [_filled_way(task.kind, way, task.name) for way in _guessed(task, told, seed)]
    tried: list[tuple[Call, ...]] = []
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


def _same_way(kind: Kind, way: Way, failed: Sequence[Call]) -> bool:
    """Whether calls that failed are this way: the same values given, after the same preparations."""
    for place, call in enumerate(failed):
        if call.tool != kind.tool:
            continue
        before = tuple(failed[max(0, place - len(way.before)) : place])
        given = all(str(call.arguments.get(name)) == value for name, value in way.given)
        if given and before == way.before and (way.before or way.given):
            return True
    return False


def _filled(calls: Sequence[Call], name: str) -> tuple[Call, ...]:
    """Advice for this task: what it leaves open is the name."""
    return tuple(
        Call(call.tool, {key: name if value == FROM_TASK else value for key, value in call.arguments.items()})
        for call in calls
    )


def _filled_way(kind: Kind, way: Way, name: str) -> tuple[Call, ...]:
    return (*way.before, Call(kind.tool, {"name": name, **dict(way.given)}))


def _calls(text: str) -> list[Call]:
    return [Call(found["tool"], _given(found["given"])) for found in _CALL.finditer(text)]


def _given(text: str) -> dict[str, Any]:  # any JSON value
    return {found["name"]: _value(found["value"]) for found in _PAIR.finditer(text)}


def _value(text: str) -> Any:  # any JSON value
    if text == FROM_TASK:
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
