"""Calls of tools, compared: which failed and then worked, what was changed in between, which arguments are the task's.

Reads trajectories only. What is made of the findings is for `patterns`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wellworn.tasks.trajectory import Step, Trajectory

FROM_TASK = "[from the task]"
"""Stands for a value that the task itself names: the next task names another."""
FOUND = "[as found]"
"""Stands for a value that an earlier step of the attempt brought up: an id that was looked up, what a user said."""
OPEN = "…"
"""The same in the words of the task."""
MAX_VALUE_CHARS = 120
MOST_WORDS = 8
"""A value of more words is prose: it is cut, unless it made the difference."""
MOST_BETWEEN = 3
_WORDS = re.compile(r"[^\W_]+(?:[@.+_/-][^\W_]+)*")


@dataclass(frozen=True, kw_only=True)
class Turnaround:
    """A call that failed, at least once, until it worked: what was tried, what worked, what was done in between."""

    failed: tuple[int, ...]
    worked: int
    between: tuple[int, ...]
    """Other calls that worked after the last failure and before the success."""


@dataclass(frozen=True, kw_only=True)
class Use:
    """One argument of one tool, as an attempt gave it."""

    action: str
    name: str
    value: str
    """As JSON."""
    step: int


def called(trajectory: Trajectory) -> list[int]:
    """Places of the steps that call a tool."""
    return [place for place, step in enumerate(trajectory.steps) if step.action]


def turnarounds(trajectory: Trajectory) -> list[Turnaround]:
    """Every tool that failed and then worked, in order."""
    open_: dict[str, list[int]] = {}
    found = []
    for place in called(trajectory):
        step = trajectory.steps[place]
        if step.failed:
            open_.setdefault(step.action, []).append(place)
        elif step.action in open_:
            failed = open_.pop(step.action)
            between = [
                p
                for p in called(trajectory)
                if failed[-1] < p < place and not trajectory.steps[p].failed and trajectory.steps[p].action
            ]
            found.append(Turnaround(failed=tuple(failed), worked=place, between=tuple(between[-MOST_BETWEEN:])))
    return found


def repeated(trajectory: Trajectory) -> list[tuple[int, ...]]:
    """Places of calls that failed more than once with the very same arguments, the most often repeated first."""
    same: dict[str, list[int]] = {}
    for place in called(trajectory):
        step = trajectory.steps[place]
        if step.failed:
            same.setdefault(f"{step.action} {_key(step.arguments)}", []).append(place)
    return sorted((tuple(places) for places in same.values() if len(places) > 1), key=len, reverse=True)


def prepared(trajectory: Trajectory, place: int) -> tuple[int, ...]:
    """Places of the calls that worked right before one, back to the last time its tool failed."""
    found: list[int] = []
    for earlier in reversed([p for p in called(trajectory) if p < place]):
        step = trajectory.steps[earlier]
        if step.failed and step.action == trajectory.steps[place].action:
            break
        if not step.failed:
            found.append(earlier)
    return tuple(reversed(found[:MOST_BETWEEN]))


def changed(before: Step, after: Step) -> dict[str, tuple[str | None, str | None]]:
    """Arguments that differ: name → as JSON before and after, None where it was not given."""
    names = dict.fromkeys([*before.arguments, *after.arguments])
    pairs = {name: (_given(before, name), _given(after, name)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def uses(trajectory: Trajectory, *, working: bool) -> Iterator[Use]:
    """Every argument given; only of calls that did not fail, if `working`."""
    for place in called(trajectory):
        step = trajectory.steps[place]
        if not (working and step.failed):
            for name, value in step.arguments.items():
                yield Use(action=step.action, name=name, value=_key(value), step=place)


def put(step: Step, query: str, *, literal: Collection[str] = (), seen: str = "") -> str:
    """The call as advice: values that the task names, or that `seen` brought up, are left open, and prose is cut, but
    for the arguments that made the difference."""

    def said(name: str, value: Any) -> str:  # any JSON value
        return put_value(value, "") if name in literal else put_value(value, query, seen=seen, most_words=MOST_WORDS)

    named = ", ".join(f"{name}={said(name, value)}" for name, value in step.arguments.items())
    return f"{step.action}({named})"


def put_at(trajectory: Trajectory, place: int, *, literal: Collection[str] = ()) -> str:
    """The call at a place as advice."""
    earlier = trajectory.steps[:place]
    seen = "\n".join(part for step in earlier for part in (step.text, step.result, step.error) if part)
    return put(trajectory.steps[place], trajectory.query, literal=literal, seen=seen)


def settled(trajectory: Trajectory) -> dict[str, set[str]]:
    """Arguments by tool that were changed until the call worked: the lesson, also where the task names the value."""
    found: dict[str, set[str]] = {}
    for turn in turnarounds(trajectory):
        worked = trajectory.steps[turn.worked]
        names = changed(trajectory.steps[turn.failed[-1]], worked)
        found.setdefault(worked.action, set()).update(names)
    return found


def gist(trajectory: Trajectory) -> str:
    """The task with the values of its arguments left open, so that its siblings read the same."""
    lessons = settled(trajectory)
    values = {
        str(value).strip().casefold()
        for place in called(trajectory)
        for name, value in trajectory.steps[place].arguments.items()
        if name not in lessons.get(trajectory.steps[place].action, ()) and _of_task(value, trajectory.query)
    }
    text = " ".join(trajectory.query.split())
    for value in sorted(values, key=len, reverse=True):
        pattern = rf"(?<![^\W_]){re.escape(value)}(?![^\W_])"
        text = re.sub(pattern, OPEN, text, flags=re.IGNORECASE)
    return text


def put_value(value: Any, query: str, *, seen: str = "", most_words: int | None = None) -> str:  # any JSON value
    """A value as advice: as JSON writes it, `FROM_TASK`, or `FOUND` where it looks like an id and was seen."""
    if _of_task(value, query):
        return FROM_TASK
    if _found(value, seen):
        return FOUND
    if isinstance(value, Mapping):
        inside = [f"{json.dumps(str(name))}: {put_value(one, query, seen=seen)}" for name, one in value.items()]
        return _cut("{" + ", ".join(inside) + "}")
    if isinstance(value, list):
        return _cut("[" + ", ".join(dict.fromkeys(put_value(one, query, seen=seen) for one in value)) + "]")
    if most_words is not None and isinstance(value, str) and len(words := value.split()) > most_words:
        value = " ".join(words[:most_words]) + "…"
    return _cut(json.dumps(value, ensure_ascii=False))


def put_key(value: str) -> str:
    """A value given as JSON, as it stands."""
    return put_value(json.loads(value), "")


def recipe(trajectory: Trajectory) -> list[int]:
    """Places of the calls that worked, in order, each run of one and the same call once."""
    found: list[int] = []
    for place in called(trajectory):
        step = trajectory.steps[place]
        if step.failed:
            continue
        last = trajectory.steps[found[-1]] if found else None
        if last is None or (last.action, last.arguments) != (step.action, step.arguments):
            found.append(place)
    return found


def actions(trajectory: Trajectory, *, working: bool) -> list[str]:
    """Names of the tools called, in the order of their first call."""
    places: Sequence[int] = called(trajectory)
    steps = [trajectory.steps[place] for place in places]
    return list(dict.fromkeys(step.action for step in steps if not (working and step.failed)))


def _of_task(value: Any, query: str) -> bool:  # any JSON value
    """Whether the task names this value: as a whole word, so that "1" is not found in "2021"."""
    if isinstance(value, bool) or value is None or isinstance(value, dict | list):
        return False
    text = str(value).strip().casefold()
    if not text:
        return False
    query = query.casefold()
    return text in _WORDS.findall(query) or (" " in text and text in query)


def _found(value: Any, seen: str) -> bool:  # any JSON value
    """Whether a value with a digit in it stands in what was seen: an id, a date, a price, rather than a choice."""
    if isinstance(value, bool) or not isinstance(value, str | int | float) or not seen:
        return False
    text = str(value).strip()
    return len(text) > 1 and any(map(str.isdigit, text)) and text.casefold() in seen.casefold()


def _given(step: Step, name: str) -> str | None:
    return _key(step.arguments[name]) if name in step.arguments else None


def _key(value: Any) -> str:  # any JSON value
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_VALUE_CHARS else text[: MAX_VALUE_CHARS - 1] + "…"
