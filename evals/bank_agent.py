"""An agent that reads what the bank gives it, and nothing else: it knows tools and possible values, never the rule.

It has three tries at a task. First it does what strategies say, in the order they were given; then it guesses among the
ways that are left, in an order that depends on the task alone. What an item says has failed comes last.
Items that are about other tools it puts aside, unless it is gullible.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from evals.bank_world import Call, Kind, Way, World, WorldTask
from wellworn.tasks.calls import FROM_TASK

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
