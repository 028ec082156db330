"""Trajectories: what an agent did for a task, step by step, with what is known of how it went.

Values only. Takes what agents have at hand (a text, a list of steps, a mapping from JSON) and bounds it, because it is
kept. Knows no store and no judge.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from wellworn.core.errors import InvalidInput
from wellworn.core.wellformed import well_formed

MAX_STEPS = 400
MAX_STEP_CHARS = 4_000
MAX_ARGUMENTS = 40
_HEAD_STEPS = 40
"""Of a longer trajectory its beginning is kept, and its end."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One thing that was done: a call of a tool with its arguments, or a text; and what came of it."""

    action: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)  # any JSON value
    text: str = ""
    """What was thought or said with it."""
    result: str = ""
    error: str = ""
    exit_code: int | None = None
    ok: bool | None = None
    """Whether the tool itself said that it worked; None when it did not say."""

    @property
    def failed(self) -> bool:
        return bool(self.error) or self.ok is False or self.exit_code not in (None, 0)

    @property
    def said_ok(self) -> bool:
        """Whether something says that it worked, which is more than not failing."""
        return not self.failed and (self.ok is True or self.exit_code == 0)

    @property
    def call(self) -> str:
        """The call on one line, as evidence shows it."""
        named = ", ".join(f"{name}={_shown(value)}" for name, value in self.arguments.items())
        return f"{self.action}({named})" if self.action else self.text

    @property
    def line(self) -> str:
        """The whole step on one line: call, then what came of it."""
        came = self.error or self.result
        code = f" [exit {self.exit_code}]" if self.exit_code is not None else ""
        thought = f"{self.text} · " if self.text and self.action else ""
        mark = "✗ " if self.failed else ""
        return f"{thought}{self.call}{code}" + (f" → {mark}{came}" if came else " → ✗" if self.failed else "")


@dataclass(frozen=True, kw_only=True)
class Trajectory:
    """The steps of one attempt at a task, and the signals there are about its end."""

    query: str = ""
    steps: tuple[Step, ...] = ()
    output: str = ""
    error: str = ""
    """An exception that nobody caught."""
    exit_code: int | None = None
    """Of the whole."""
    verdict: bool | None = None
    """What a person or a checker said about it; this wins."""
    checks: dict[str, bool] = field(default_factory=dict)
    """Assertions of the caller, by name."""
    used: tuple[int, ...] | None = None
    """Which of the memories it was given it used, by place; None when it does not say."""
    trusted: bool = True
    """False when it holds what others wrote, such as web pages: what is learned from it is marked."""

    @property
    def text(self) -> str:
        """Everything in it, for looking words up."""
        return "\n".join([self.query, *(step.line for step in self.steps), self.output, self.error])


def trajectory_of(value: object, *, query: str = "") -> Trajectory:
    """What an agent gave, as a bounded trajectory: a text is its output, a list its steps, a mapping its fields."""
    if isinstance(value, Trajectory):
        found = value
    elif value is None:
        found = Trajectory()
    elif isinstance(value, str):
        found = Trajectory(output=value)
    elif isinstance(value, Mapping):
        found = _from_mapping(value)
    elif isinstance(value, Iterable):
        found = Trajectory(steps=tuple(step_of(step) for step in value))
    else:
        remedy = "give a Trajectory, a mapping, a list of steps or a text"
        raise InvalidInput("trajectory", f"is a {type(value).__name__}", remedy)
    return bounded(replace(found, query=found.query or query))


def _from_mapping(value: Mapping[Any, Any]) -> Trajectory:
    known = ("query", "steps", "output", "error", "exit_code", "verdict", "checks", "used", "trusted")
    unknown = [str(name) for name in value if name not in known]
    if unknown:
        raise InvalidInput("trajectory", f"has {', '.join(unknown)[:80]}", f"known are {', '.join(known)}")
    steps = value.get("steps") or ()
    if isinstance(steps, str | Mapping) or not isinstance(steps, Iterable):
        raise InvalidInput("trajectory.steps", f"is a {type(steps).__name__}", "give a list of steps")
    return Trajectory(
        query=_text(value.get("query")),
        steps=tuple(step_of(step) for step in steps),
        output=_text(value.get("output")),
        error=_text(value.get("error")),
        exit_code=_code("trajectory.exit_code", value.get("exit_code")),
        verdict=_verdict(value.get("verdict")),
        checks=_checks(value.get("checks")),
        used=_places(value.get("used")),
        trusted=value.get("trusted", True) is True,
    )


def step_of(value: object) -> Step:
    """A step as given: a text is something said; a mapping may use the names that agents use (`tool`, `args`, …)."""
    if isinstance(value, Step):
        return value
    if isinstance(value, str):
        return Step(text=value)
    if not isinstance(value, Mapping):
        raise InvalidInput("step", f"is a {type(value).__name__}", "give a Step, a mapping or a text")
    named = {
        name: next((value[word] for word in words if value.get(word) is not None), None)
        for name, words in {
            "action": ("action", "tool", "name"),
            "arguments": ("arguments", "args", "input"),
            "text": ("text", "thought", "content"),
            "result": ("result", "observation", "output"),
            "error": ("error",),
        }.items()
    }
    arguments = named["arguments"]
    if arguments is not None and not isinstance(arguments, Mapping):
        arguments = {"input": arguments}
    ok = value.get("ok")
    return Step(
        action=_text(named["action"]),
        arguments=_arguments(arguments or {}),
        text=_text(named["text"]),
        result=_text(named["result"]),
        error=_text(named["error"]),
        exit_code=_code("step.exit_code", value.get("exit_code")),
        ok=ok if isinstance(ok, bool) else None,
    )


def bounded(trajectory: Trajectory) -> Trajectory:
    """The trajectory with every text cut and cleaned, and the middle left out where it has too many steps."""
    steps = trajectory.steps
    if len(steps) > MAX_STEPS:
        left_out = len(steps) - MAX_STEPS
        gap = Step(text=f"[{left_out} steps left out]")
        steps = (*steps[:_HEAD_STEPS], gap, *steps[len(steps) - (MAX_STEPS - _HEAD_STEPS) + 1 :])
    return mapped(replace(trajectory, steps=steps), _cut)


def mapped(trajectory: Trajectory, change: Callable[[str], str]) -> Trajectory:
    """The trajectory with every text in it changed: an agent's action may be a whole command, a key an address."""

    def of(value: Any) -> Any:  # any JSON value
        if isinstance(value, str):
            return change(value)
        if isinstance(value, dict):
            return {change(key): of(one) for key, one in value.items()}
        return [of(one) for one in value] if isinstance(value, list) else value

    steps = tuple(
        replace(
            step,
            action=change(step.action) if step.action else "",
            arguments=of(step.arguments),
            text=change(step.text) if step.text else "",
            result=change(step.result) if step.result else "",
            error=change(step.error) if step.error else "",
        )
        for step in trajectory.steps
    )
    query, output, error = (
        change(text) if text else "" for text in (trajectory.query, trajectory.output, trajectory.error)
    )
    checks = {change(name): held for name, held in trajectory.checks.items()}
    return replace(trajectory, steps=steps, query=query, output=output, error=error, checks=checks)


def as_value(trajectory: Trajectory) -> dict[str, Any]:
    """The trajectory as JSON, without what is empty."""
    steps = [
        {name: value for name, value in vars(step).items() if value not in ("", None, {})} for step in trajectory.steps
    ]
    whole = {name: value for name, value in vars(trajectory).items() if name != "steps"}
    kept = {name: value for name, value in whole.items() if value not in ("", None, {})}
    if trajectory.used is not None:
        kept["used"] = list(trajectory.used)
    return {**kept, "steps": steps}


def _cut(text: str) -> str:
    text = well_formed(text).replace("\x00", " ")
    return text if len(text) <= MAX_STEP_CHARS else text[: MAX_STEP_CHARS - 4] + " […]"


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {said(value)}"
    return json.dumps(_plain(value), ensure_ascii=False)


def said(value: object) -> str:
    """The text of a value; where that cannot be had, what it is."""
    try:
        return str(value)
    except Exception:  # an object of anybody's
        return f"[{type(value).__name__}]"


def _arguments(given: Mapping[Any, Any]) -> dict[str, Any]:
    plain = _plain({said(key): value for key, value in given.items()})
    return plain if isinstance(plain, dict) else {"input": plain}


def _plain(value: Any) -> Any:
    """Any value as one of JSON: what is none becomes its text."""
    try:
        plain = json.loads(json.dumps(value, ensure_ascii=False, default=said), parse_constant=str)
    except (TypeError, ValueError, RecursionError):  # a ring, too deep, a number of thousands of digits
        return said(value)
    if isinstance(plain, dict) and len(plain) > MAX_ARGUMENTS:
        return dict(list(plain.items())[:MAX_ARGUMENTS])
    return plain


def _code(name: str, value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput(name, f"{value!r} is not a whole number", "0 for success, as a shell gives it")
    return value


def _verdict(value: object) -> bool | None:
    words = {"success": True, "failure": False}
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in words:
        return words[value.lower()]
    raise InvalidInput("verdict", f"{value!r} is no verdict", "use True, False, success or failure")


def _checks(value: object) -> dict[str, bool]:
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(passed, bool) for passed in value.values()):
        raise InvalidInput(
            "checks", f"{str(value)[:60]!r} is not names with True or False", "as in {'tests pass': True}"
        )
    return {_cut(str(name)): passed for name, passed in value.items()}


def _places(value: object) -> tuple[int, ...] | None:
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidInput("used", f"{value!r} is not a list of places", "as in [0]")
    found = tuple(value)
    if not all(isinstance(one, int) and not isinstance(one, bool) and one >= 0 for one in found):
        raise InvalidInput("used", f"{value!r} is not a list of places", "as in [0]")
    return found
