"""Tool calls, compared: what was attempted, which calls failed and then worked, what changed, and calls as advice.

Reads trajectories only. `patterns` turns the findings into items.
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
"""Stands for a value that an earlier step brought up: an id that was looked up, what a user said."""
OPEN = "…"
"""The same in the words of the task."""
MAX_VALUE_CHARS = 120
MOST_WORDS = 8
"""A longer value is prose: it is cut, unless it made the difference."""
MOST_BETWEEN = 3
_WORDS = re.compile(r"[^\W_]+(?:[@.+_/-][^\W_]+)*")
_CHAIN = re.compile(r"&&|\|\||[;\n]")
_SUBCOMMAND = re.compile(r"[a-z][a-z-]*$")
_SETTING = re.compile(r"^(?:(?:\w+=\S*|sudo|time|env)\s+)+")
_ASIDE = frozenset({"cd", "echo", "export", "set", "source", "sleep", "true"})
_LOOKING = re.compile(r"(?:search|look_?up|find|query|browse|grep|read|list|view)", re.IGNORECASE)
_LOOKS = frozenset(
    [
        "ls",
        "cat",
        "head",
        "tail",
        "less",
        "more",
        "pwd",
        "find",
        "grep",
        "rg",
        "which",
        "wc",
        "stat",
        "file",
        "tree",
        "du",
        "df",
        "ps",
        "env",
        "date",
        "whoami",
        "type",
        "diff",
    ]
) | {f"git {word}" for word in ("status", "log", "diff", "show", "branch", "blame")}


# -- what was attempted ----------------------------------------------------------------------------------------------


def attempted(step: Step) -> tuple[str, ...]:
    """What a call tries to do: its tool and, where that runs commands, the program and its subcommand.

    A shell is one tool for everything: `ls` that works says nothing about `make` that failed.
    """
    program = _program(step)
    return program if program and " " in step.action else (step.action, *program)


def _program(step: Step) -> tuple[str, ...]:
    """The program that a call runs and its subcommand; empty for a call that runs none.

    The command line is the argument that is named so, or the only one of a call that has an exit code. Of several
    commands in a row the last one is meant, without what only prepares or reports.
    """
    texts = {name.lower(): value for name, value in step.arguments.items() if isinstance(value, str)}
    alone = next(iter(texts.values()), "") if step.exit_code is not None and len(step.arguments) == 1 else ""
    command = step.action if " " in step.action.strip() else texts.get("command") or texts.get("cmd") or alone
    parts = [_SETTING.sub("", part.partition("|")[0].strip()).split() for part in _CHAIN.split(command)]
    parts = [words for words in parts if words]
    meant = [words for words in parts if words[0] not in _ASIDE] or parts
    return (*meant[-1][:1], *(word for word in meant[-1][1:2] if _SUBCOMMAND.match(word))) if meant else ()


def same_attempt(one: Step, other: Step) -> bool:
    """Whether two calls try the same: `pytest` and `pytest tests/a.py` do, `npm install` and `npm test` do not."""
    a, b = attempted(one), attempted(other)
    short = min(len(a), len(b))
    return a[:short] == b[:short]


def only_looks(step: Step) -> bool:
    """Whether a call only looks at something, so that its success proves nothing about the task."""
    program = _program(step)
    if not program:
        return _LOOKING.match(step.action) is not None
    return program[0] in _LOOKS or program[0] in _ASIDE or " ".join(program) in _LOOKS


# -- failed, then worked ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Turnaround:
    """A call that failed, at least once, until it worked: what was tried, what worked, what was done in between."""

    failed: tuple[int, ...]
    worked: int
    between: tuple[int, ...]
    """Other calls that worked after the last failure and before the success."""


def called(trajectory: Trajectory) -> list[int]:
    """Places of the steps that call a tool."""
    return [place for place, step in enumerate(trajectory.steps) if step.action]


def turnarounds(trajectory: Trajectory) -> list[Turnaround]:
    """Every attempt that failed and then worked, in order."""
    steps, places = trajectory.steps, called(trajectory)
    open_: list[int] = []
    found = []
    for place in places:
        if steps[place].failed:
            open_.append(place)
            continue
        failed = [earlier for earlier in open_ if same_attempt(steps[earlier], steps[place])]
        if failed:
            open_ = [earlier for earlier in open_ if earlier not in failed]
            between = [p for p in places if failed[-1] < p < place and not steps[p].failed]
            found.append(Turnaround(failed=tuple(failed), worked=place, between=tuple(between[-MOST_BETWEEN:])))
    return found


def unresolved(trajectory: Trajectory) -> list[int]:
    """Places of failed calls whose attempt never worked afterwards."""
    overcome = {place for turn in turnarounds(trajectory) for place in turn.failed}
    return [place for place in called(trajectory) if trajectory.steps[place].failed and place not in overcome]


def prepared(trajectory: Trajectory, place: int) -> tuple[int, ...]:
    """Places of the calls that worked right before one, back to the last time its attempt failed."""
    found: list[int] = []
    for earlier in reversed([p for p in called(trajectory) if p < place]):
        step = trajectory.steps[earlier]
        if step.failed and same_attempt(step, trajectory.steps[place]):
            break
        if not step.failed:
            found.append(earlier)
    return tuple(reversed(found[:MOST_BETWEEN]))


def changed(before: Step, after: Step) -> dict[str, tuple[str | None, str | None]]:
    """Arguments that differ: name → as JSON before and after, None where it was not given."""
    names = dict.fromkeys([*before.arguments, *after.arguments])
    pairs = {name: (_given(before, name), _given(after, name)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def uses(trajectory: Trajectory, *, working: bool) -> Iterator[tuple[str, str, str, int]]:
    """Every argument given, as (tool, name, JSON value, place); only of calls that did not fail, if `working`."""
    for place in called(trajectory):
        step = trajectory.steps[place]
        if not (working and step.failed):
            yield from ((step.action, name, _key(value), place) for name, value in step.arguments.items())


def actions(trajectory: Trajectory, *, working: bool) -> list[str]:
    """Names of the tools called, in the order of their first call."""
    steps = [trajectory.steps[place] for place in called(trajectory)]
    return list(dict.fromkeys(step.action for step in steps if not (working and step.failed)))


def recipe(trajectory: Trajectory) -> list[int]:
    """Places of the calls that worked, in order, each run of the same call once."""
    found: list[int] = []
    for place in called(trajectory):
        step = trajectory.steps[place]
        last = trajectory.steps[found[-1]] if found else None
        same = last is not None and (last.action, last.arguments) == (step.action, step.arguments)
        if not step.failed and not same:
            found.append(place)
    return found


# -- calls as advice -------------------------------------------------------------------------------------------------


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


def put_argument(name: str, value: str | None) -> str:
    """An argument whose value is given as JSON."""
    return f"no {name}" if value is None else f"{name}={put_value(json.loads(value), '')}"


def gist(trajectory: Trajectory) -> str:
    """The task with the values of its arguments left open, so that its siblings read the same."""
    values = {
        str(value).strip().casefold()
        for place in called(trajectory)
        for value in trajectory.steps[place].arguments.values()
        if _of_task(value, trajectory.query)
    }
    text = " ".join(trajectory.query.split())
    for value in sorted(values, key=len, reverse=True):
        text = re.sub(rf"(?<![^\W_]){re.escape(value)}(?![^\W_])", OPEN, text, flags=re.IGNORECASE)
    return text


def _of_task(value: Any, query: str) -> bool:  # any JSON value
    """Whether the task names this value: as a whole word, so that "1" is not found in "2021"."""
    if isinstance(value, bool) or value is None or isinstance(value, dict | list):
        return False
    text, query = str(value).strip().casefold(), query.casefold()
    return bool(text) and (text in _WORDS.findall(query) or (" " in text and text in query))


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


# -- advice that was followed ----------------------------------------------------------------------------------------

_LIKE = re.compile(r"^For tasks like “.*?”: ")
_AGAINST = re.compile(
    r"\. \S+ failed with .*: “|: before that it failed with|: attempts with it succeeded|: it worked at"
)
_ADVICE = re.compile(r"^(?:First|Call|This worked:|Try) ")
_CALL = re.compile(r"[\w.-]+\((?=[\w)])")


def refuted(text: str, trajectory: Trajectory) -> bool:
    """Whether the trajectory did what an item says to do, in that order, and it failed each time.

    A task can succeed although the advice it was given failed, because the agent found another way. Reads the words
    that `patterns` writes; it has no opinion on any other wording.
    """
    advice = _LIKE.sub("", text)
    if not _ADVICE.match(advice):
        return False
    against = _AGAINST.search(advice)
    advice = advice[: against.start()] if against else advice
    places = called(trajectory)
    calls = [(put_at(trajectory, place), put(trajectory.steps[place], "")) for place in places]
    ends = [end for end in range(len(calls)) if _says(advice, calls[: end + 1])]
    return bool(ends) and all(trajectory.steps[places[end]].failed for end in ends)


def _says(advice: str, calls: Sequence[tuple[str, str]]) -> bool:
    """Whether the advice is exactly the last calls, each as it stands or with the task's values left open."""
    number = len(_CALL.findall(advice))
    if not 0 < number <= len(calls):
        return False
    at = 0
    for forms in calls[-number:]:
        found = [(place, len(form)) for form in forms if (place := advice.find(form, at)) >= 0]
        if not found:
            return False
        at = sum(min(found))
    return True
