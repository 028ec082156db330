"""A small world with hidden rules: services that work one way only, and do not say which.

Three families of tasks. An agent knows what a caller of a real service knows: the tool, the values it could give, and
what else could be called. Which of these is right is the rule, drawn from the seed and told by nobody.

| family     | the rule                                                                 | ways that could be right |
|------------|--------------------------------------------------------------------------|--------------------------|
| convention | one argument has to be written in one way                                | 8                        |
| retry      | a service that is busy at first wants one thing done before it is asked again | 6                   |
| recipe     | two of five preparations have to come right before the call, in order    | 20                       |
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any, Literal

Family = Literal["convention", "retry", "recipe"]
FAMILIES: tuple[Family, ...] = ("convention", "retry", "recipe")

NAMES = (
    "Ada",
    "Bob",
    "Cem",
    "Dana",
    "Eli",
    "Fay",
    "Gus",
    "Hana",
    "Ivo",
    "Jun",
    "Kira",
    "Leo",
    "Mia",
    "Noor",
    "Omar",
    "Pia",
    "Quin",
    "Rosa",
    "Sven",
    "Tia",
)
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
