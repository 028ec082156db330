"""Tool calls as data: what was attempted, what failed and then worked, and calls whose values are left open.

Reads trajectories only. `distill` turns the findings into items.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from wellworn.core.dataclass import dataclass
from wellworn.core.lazy import regex
from wellworn.core.wellformed import one_line, shortened
from wellworn.ingest.forget import MAX_TASK_CHARS
from wellworn.tasks import shell
from wellworn.tasks.trajectory import Step, Trajectory

FROM_TASK = "[from the task]"
"""Stands for a value that the task itself names: the next task names another."""
FOUND = "[as found]"
"""Stands for a value that an earlier step brought up: an id that was looked up, what a user said."""
OPEN = "…"
"""The same in the words of the task."""
MAX_VALUE_CHARS = 400
MOST_WORDS = 8
"""A longer value is prose: it is cut, unless it made the difference or is a command."""
MOST_BETWEEN = 3
MAX_DEPTH = 6
"""Of values within values; what is deeper is left out."""
ERROR_CHARS = 160
_WORDS = regex(r"[^\W_]+(?:[@.+_/-][^\W_]+)*")
_LOOKING = regex(
    r"(?:search|look_?up|find|query|browse|grep|glob|read|list|ls$|view|web_?(?:search|fetch)|todo|update_plan"
    r"|(?:mcp__\w+__)?memory_(?:search|reason))",
    re.IGNORECASE,
)
_PLACES = ("file_path", "notebook_path", "path")
_TEXTS = {"old_string", "new_string", "content", "new_source", "edits", "old_str", "new_str", "file_text"}
_CHANGING = regex(
    r"(?:^|_)(?:multi_?|notebook_?)?(?:edit|write|patch|replace|insert|create|delete|rename|move|apply)", re.IGNORECASE
)

_EDITS = regex(r"\b(?:sed|perl) (?:-\S+ )*-\w*i")
_DOCUMENT = regex(r"<<-?\s*['\"]?\w+['\"]?[^\n]*\n")


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """A call as advice: the tool and its arguments, `FROM_TASK` and `FOUND` where any value will do."""

    tool: str
    args: dict[str, Any] = field(default_factory=dict)  # any JSON value
    error: str = ""
    """What it failed with, if it did."""

    @property
    def text(self) -> str:
        """On one line, as an item shows it."""
        return f"{self.tool}({', '.join(put_argument(name, value) for name, value in self.args.items())})"


# -- what was attempted ----------------------------------------------------------------------------------------------


def attempted(step: Step) -> frozenset[shell.Program]:
    """What a call tries to do: the programs that its command runs, else its tool."""
    return frozenset(shell.programs(step.command) if step.command else [(step.action,)])


def only_looks(step: Step) -> bool:
    """Whether a call only looks at something, so that its success proves nothing about the task."""
    if step.command:
        return all(shell.looks(program) for program in shell.programs(step.command))
    return _LOOKING.match(step.action) is not None


def is_check(step: Step) -> bool:
    """Whether a call tests, lints or builds something."""
    return shell.checks(step.command) is not None if step.command else step.found


def answers_no(step: Step) -> bool:
    """Whether a look at something failed only because of what it found, such as a `grep` without a match."""
    return only_looks(step) and step.found


def holds(step: Step) -> bool:
    """Whether a call is a check that passed, as far as its exit code and its output say."""
    return step.said_ok and shell.checks(step.command) is not None and shell.read_checks(step.result) is not False


def changes(step: Step) -> bool:
    """Whether a call changes what a check is about."""
    if step.command:
        return shell.writes(step.command) and shell.checks(step.command) is None
    return _CHANGING.search(step.action) is not None


def _did(step: Step) -> bool:
    """Whether a call worked and belongs to the way: a command that only looked does not, nor a check that checked nothing."""
    return not (step.failed or (step.belied and is_check(step)) or (step.command and only_looks(step)))


def _outdone(steps: Sequence[Step], place: int) -> bool:
    """Whether a test run printed nothing, and a later one of its kind says that its checks hold: it is the one that counts."""
    step = steps[place]
    return (
        not step.result.strip()
        and "tests" in (shell.checks(step.command) or ())
        and any(
            shell.read_checks(later.result) and shell.checks_as_much(later.command, step.command)
            for later in steps[place + 1 :]
        )
    )


def same_attempt(one: Step, other: Step) -> bool:
    """Whether two calls try the same; of commands, whether the other does all that the one does."""
    return attempted(one) <= attempted(other)


def _makes_good(worked: Step, failed: Step, between: Sequence[Step]) -> bool:
    """Whether a call that worked does what another failed to do. One that never ran changed nothing: another can stand
    in for it, and another check of its kind for one that
    told of nothing that it checked. What a check found is mended when another holds after something was done about it."""
    if worked.belied or shell.does_less(worked.command, failed.command):
        return False
    if is_check(failed) and failed.found:
        done = (step for step in reversed(between) if changes(step) or (_did(step) and not is_check(step)))
        if shell.checks_elsewhere(worked.command, failed.command) or shell.goes_back(worked.command):
            return False
        if shell.undoes(next(done, Step()).command):
            return False
    if same_attempt(failed, worked):
        return True
    if not worked.command or not _did(worked):
        return False
    if failed.refused:
        return shell.stands_in(worked.command, failed.command)
    if not (failed.found and holds(worked) and shell.checks_as_much(worked.command, failed.command)):
        return False
    told = failed.error or failed.result
    if not shell.tells_findings(told) and (
        shell.read_checks(worked.result) or (shell.ran_nothing(told) and worked.result.strip())
    ):
        return True  # the first did not come to check anything
    return any(changes(step) or (step.command and _did(step) and not is_check(step)) for step in between)


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
        failed = [one for one in open_ if _makes_good(steps[place], steps[one], steps[one + 1 : place])]
        failed = [] if failed and _outdone(steps, place) else failed
        if failed:
            open_ = [earlier for earlier in open_ if earlier not in failed]
            between = [p for p in places if failed[-1] < p < place and _did(steps[p]) and not _outdone(steps, p)]
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
        if _did(step):
            found.append(earlier)
    return tuple(reversed(found[:MOST_BETWEEN]))


def changed(before: Step, after: Step) -> dict[str, tuple[Any, Any]]:  # any JSON values
    """Arguments that differ: name → the value before and after, None where it was not given."""
    old, new = _arguments(before), _arguments(after)
    pairs = {name: (old.get(name), new.get(name)) for name in dict.fromkeys([*old, *new])}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _edits(command: str) -> bool:
    """Whether a command has a text that is never the same again: an editor without a screen, or a document within the
    command that is written to a file."""
    document = _DOCUMENT.search(command)
    written = document is not None and (shell.writes(command) or shell.writes(command[: document.end()]))
    return written or _EDITS.search(command) is not None


def recipe(trajectory: Trajectory) -> list[int]:
    """Places of the calls that worked, in order, each run of the same call once; of commands those that do something
    which can be done again, so no edits."""
    found: list[int] = []
    runs = any(step.command for step in trajectory.steps)  # then what was read is no part of the way
    for place in called(trajectory):
        step = trajectory.steps[place]
        if (runs and only_looks(step)) or _edits(step.command):
            continue
        last = trajectory.steps[found[-1]] if found else None
        same = last is not None and (last.action, _arguments(last)) == (step.action, _arguments(step))
        if _did(step) and not same and not _outdone(trajectory.steps, place):
            found.append(place)
    return found


# -- values left open ------------------------------------------------------------------------------------------------


def opened(trajectory: Trajectory, place: int, *, literal: Collection[str] = ()) -> ToolCall:
    """The call at a place as advice: values that the task names, or that an earlier step brought up, are left open,
    and prose is cut, but for the arguments that made the difference."""
    step, earlier = trajectory.steps[place], trajectory.steps[:place]
    seen = "\n".join(part for step in earlier for part in (step.text, step.result, step.error) if part).casefold()

    def put(name: str, value: Any) -> Any:  # any JSON value
        kept = name in literal or value == step.command
        return _opened(value, "", "", -1) if kept else _opened(value, trajectory.query, seen)

    return replace(_literal(step), args={name: put(name, value) for name, value in _arguments(step).items()})


def error_of(step: Step) -> str:
    """What a call that failed says, on one line."""
    return one_line(step.error or step.result) or (f"exit code {step.exit_code}" if step.exit_code else "an error")


def _literal(step: Step) -> ToolCall:
    error = shortened(error_of(step), ERROR_CHARS).rstrip(".") if step.failed else ""
    return ToolCall(tool=step.action, args=_arguments(step), error=error)


def _arguments(step: Step) -> dict[str, Any]:  # any JSON values
    """The arguments that matter: of a command the command alone, not its description or its timeout; of an edit where
    it was made, because its text is never the same again."""
    commands = {name: value for name, value in step.arguments.items() if step.command and value == step.command}
    places = {
        name: value for name, value in step.arguments.items() if name in _PLACES and step.arguments.keys() & _TEXTS
    }
    return commands or places or step.arguments


def _opened(value: Any, query: str, seen: str, depth: int = 0) -> Any:  # any JSON value
    if depth > MAX_DEPTH:
        return OPEN
    if _of_task(value, query):
        return FROM_TASK
    if _found(value, seen):
        return FOUND
    if isinstance(value, Mapping):
        return {str(name): _opened(one, query, seen, depth + 1) for name, one in value.items()}
    if isinstance(value, list):
        inside = [_opened(one, query, seen, depth + 1) for one in value]
        return [one for place, one in enumerate(inside) if one not in inside[:place]]
    if isinstance(value, str) and depth >= 0 and len(words := value.split()) > MOST_WORDS:
        return " ".join(words[:MOST_WORDS]) + OPEN
    return value


def put_argument(name: str, value: Any) -> str:  # any JSON value
    """An argument in words."""
    if value is None:
        return f"no {name}"
    text = json.dumps(value, ensure_ascii=False)
    for mark in (FROM_TASK, FOUND):
        text = text.replace(f'"{mark}"', mark)
    return f"{name}={text if len(text) <= MAX_VALUE_CHARS else text[: MAX_VALUE_CHARS - 1] + OPEN}"


def shape_of(trajectory: Trajectory) -> str:
    """The task with the values of its arguments, numbers and ids left open: its siblings have the same shape."""
    given = [value for place in called(trajectory) for value in trajectory.steps[place].arguments.values()]
    values = {str(value).strip().casefold() for value in given if _of_task(value, trajectory.query)}
    text = one_line(trajectory.query)[:MAX_TASK_CHARS]  # as it is kept
    for value in sorted(values, key=len, reverse=True):
        text = re.sub(rf"(?<![^\W_]){re.escape(value)}(?![^\W_])", OPEN, text, flags=re.IGNORECASE)
    return _WORDS.sub(lambda word: OPEN if any(map(str.isdigit, word[0])) else word[0], text)


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
    return len(text) > 1 and any(map(str.isdigit, text)) and text.casefold() in seen


# -- advice that was followed ----------------------------------------------------------------------------------------


def followed(advice: Sequence[ToolCall], trajectory: Trajectory) -> bool | None:
    """Whether exactly these calls, made in this order, worked in the end; None when they were not made, or ended in
    the findings of a check, which say nothing about the advice.

    A task can succeed although the advice it was given failed, because the agent found another way; and fail although
    the advice worked.
    """
    places = called(trajectory)
    calls = [(opened(trajectory, place), _literal(trajectory.steps[place])) for place in places]
    number, worked = len(advice), None
    for end in range(number, len(calls) + 1) if number else ():
        made = calls[end - number : end]
        if not trajectory.steps[places[end - 1]].found and all(
            any((one.tool, one.args) == (form.tool, form.args) for form in forms)
            for one, forms in zip(advice, made, strict=True)
        ):
            worked = bool(worked) or not trajectory.steps[places[end - 1]].failed
    return worked


def tried(calls: Sequence[ToolCall], trajectory: Trajectory) -> bool:
    """Whether the work attempts what one of these calls does, with whatever arguments."""
    wanted = [Step(action=call.tool, arguments=call.args) for call in calls]
    return any(same_attempt(one, step) for one in wanted for step in trajectory.steps if step.action)
