"""What an agent did for a task, step by step, and what is known about how it ended.

Accepts what agents have at hand (a text, a list of steps, a mapping from JSON) and bounds it, because it is stored.
Reads the transcripts of Claude Code and Codex, too: one JSON object per line, each a message with text, tool calls, or
their results. Only what came after the last prompt counts; one that only consents or goes on belongs to the prompt before
it. What is not understood is left out, because the formats are not ours. Knows no store and no judge.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any, TypeVar

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import InvalidInput
from wellworn.core.lazy import cached_property, regex
from wellworn.core.plain import from_plain
from wellworn.core.wellformed import well_formed
from wellworn.ingest.utterance import UNDO, by_program, goes_on, rejects
from wellworn.tasks.shell import belied, read_output, refuses_call, reports_findings

MAX_STEPS = 400
MAX_STEP_CHARS = 4_000
MAX_ARGUMENTS = 40
HEAD_STEPS = 40
"""A longer trajectory keeps this many steps of its beginning, and its end."""
SECRET = "[SECRET]"  # noqa: S105  what stands in the place of one
_SECRET_NAME = regex(
    r"pass(?:word|wd|phrase|code)?$|secret|credential|authorization|(?:api|access|private)[_-]?key$|(?:^|[_-])token$",
    re.IGNORECASE,
)
_STEP_NAMES = {
    "action": ("action", "tool", "name"),
    "arguments": ("arguments", "args", "input"),
    "text": ("text", "thought", "content"),
    "result": ("result", "observation", "output"),
    "error": ("error",),
}
"""Field of a step → the names that agents use for it."""
_TEXTS = ("query", "output", "error")
_SIGNALS = ("exit_code", "verdict", "checks", "used", "trusted")
_EXAMPLE = 'as in {"exit_code": 0, "verdict": true, "checks": {"tests pass": true}, "used": [0]}'

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Step:
    """One thing that was done: a tool call with its arguments, or a text; and its result."""

    action: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)  # any JSON value
    text: str = ""
    """What was thought or said with it."""
    result: str = ""
    error: str = ""
    exit_code: int | None = None
    ok: bool | None = None
    """Whether the tool itself said that it worked; None when it did not say."""

    @cached_property
    def command(self) -> str:
        """The command line that it runs; empty for a call that runs none.

        It is the argument that is named so, the only one of a call that has an exit code, or the whole action.
        """
        if " " in self.action.strip():
            return self.action
        texts = {name.lower(): value for name, value in self.arguments.items() if isinstance(value, str)}
        alone = next(iter(texts.values()), "") if self.exit_code is not None and len(self.arguments) == 1 else ""
        return texts.get("command") or texts.get("cmd") or alone

    @cached_property
    def failed(self) -> bool:
        """Whether the tool says that it failed; of a command that says nothing, whether its output does."""
        if self.ok is None and self.exit_code is None and not self.error:
            return bool(self.command) and read_output(self.result) is False
        return bool(self.error) or self.ok is False or self.exit_code not in (None, 0)

    @property
    def said_ok(self) -> bool:
        """Whether something says that it worked, which is more than not failing."""
        return not self.failed and (self.ok is True or self.exit_code == 0) and not self.belied

    @cached_property
    def belied(self) -> bool:
        """Whether the output of a command speaks against its exit code, which is not its own."""
        return bool(self.command) and belied(self.command, self.result)

    @cached_property
    def found(self) -> bool:
        """Whether it failed because a test, a linter or a compiler found something, or a look at something answered no:
        never a reason against the call."""
        return self.failed and reports_findings(self.command, self.error or self.result, self.exit_code)

    @cached_property
    def refused(self) -> bool:
        """Whether a command failed because it cannot be called like this."""
        refused = self.failed and refuses_call(self.error or self.result, self.exit_code)
        return bool(self.command) and refused and not self.found

    @property
    def call(self) -> str:
        """The call on one line, as evidence shows it."""
        named = ", ".join(f"{name}={_shown(value)}" for name, value in self.arguments.items())
        return f"{self.action}({named})" if self.action else self.text

    @property
    def line(self) -> str:
        """The whole step on one line: the call, then its result."""
        result = self.error or self.result
        code = f" [exit {self.exit_code}]" if self.exit_code is not None else ""
        thought = f"{self.text} · " if self.text and self.action else ""
        mark = "✗ " if self.failed else ""
        return f"{thought}{self.call}{code}" + (f" → {mark}{result}" if result else " → ✗" if self.failed else "")


@dataclass(frozen=True, kw_only=True)
class Trajectory:
    """The steps of one attempt at a task, and the signals about how it ended."""

    query: str = ""
    steps: tuple[Step, ...] = ()
    output: str = ""
    error: str = ""
    """An exception that nobody caught."""
    exit_code: int | None = None
    """Of the whole attempt."""
    verdict: bool | None = None
    """What a person or a checker said about it. It overrides every other signal."""
    checks: dict[str, bool] = field(default_factory=dict)
    """Assertions of the caller, by name."""
    used: tuple[int, ...] | None = None
    """Which of the memories it was given it used, by place; None when it does not say."""
    trusted: bool = True
    """False when it holds what others wrote, such as web pages: what is learned from it is marked."""

    @property
    def text(self) -> str:
        """Everything in it, for looking up words."""
        return "\n".join([self.query, *(step.line for step in self.steps), self.output, self.error])


# -- from what agents give -------------------------------------------------------------------------------------------


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
    known = (*_TEXTS, "steps", *_SIGNALS)
    unknown = [str(name) for name in value if name not in known]
    if unknown:
        raise InvalidInput("trajectory", f"has {', '.join(unknown)[:80]}", f"known are {', '.join(known)}")
    steps = value.get("steps") or ()
    if isinstance(steps, str | Mapping) or not isinstance(steps, Iterable):
        raise InvalidInput("trajectory.steps", f"is a {type(steps).__name__}", "give a list of steps")
    words = {"success": True, "failure": False}
    signals = {name: value[name] for name in _SIGNALS if value.get(name) is not None}
    signals["verdict"] = words.get(str(value.get("verdict")).lower(), value.get("verdict"))
    found = _checked(Trajectory, {**signals, **{name: _text(value.get(name)) for name in _TEXTS}})
    if any(place < 0 for place in found.used or ()):
        raise InvalidInput("trajectory", f"used is {value['used']}", "give places from 0 on, as in [0]")
    return replace(found, steps=tuple(step_of(step) for step in steps))


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
        for name, words in _STEP_NAMES.items()
    }
    given = named.pop("arguments")
    if given is not None and not isinstance(given, Mapping):
        given = {"input": given}
    plain = _json({text_of(name): one for name, one in (given or {}).items()})
    fields: dict[str, Any] = {name: _text(each) for name, each in named.items()}
    fields["arguments"] = plain if isinstance(plain, dict) else {"input": plain}
    fields["ok"] = value["ok"] if isinstance(value.get("ok"), bool) else None
    return _checked(Step, {**fields, "exit_code": value.get("exit_code")})


def _checked(type_: type[T], fields: dict[str, Any]) -> T:
    try:
        return from_plain(type_, fields)
    except ValueError as error:
        raise InvalidInput(type_.__name__.lower(), str(error), _EXAMPLE) from None


def text_of(value: object) -> str:
    """The text of a value; its type where the value cannot say."""
    try:
        return str(value)
    except Exception:  # anybody's object
        return f"[{type(value).__name__}]"


def _text(value: object) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {text_of(value)}"
    return json.dumps(_json(value), ensure_ascii=False)


def _json(value: Any) -> Any:
    """Any value as JSON data; what JSON cannot hold becomes its text."""
    try:
        plain = json.loads(json.dumps(value, ensure_ascii=False, default=text_of), parse_constant=str)
    except (TypeError, ValueError, RecursionError):  # a cycle, too deep, a number of thousands of digits
        return text_of(value)
    return dict(list(plain.items())[:MAX_ARGUMENTS]) if isinstance(plain, dict) else plain


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


# -- changed and stored ----------------------------------------------------------------------------------------------


def bounded(trajectory: Trajectory) -> Trajectory:
    """The trajectory with every text cut and cleaned, and without its middle where it has too many steps."""
    steps = trajectory.steps
    if len(steps) > MAX_STEPS:
        gap = Step(text=f"[{len(steps) - MAX_STEPS} steps left out]")
        steps = (*steps[:HEAD_STEPS], gap, *steps[len(steps) - (MAX_STEPS - HEAD_STEPS) + 1 :])
    return mapped(replace(trajectory, steps=steps), _cut)


def _cut(text: str) -> str:
    text = well_formed(text).replace("\x00", " ")
    return text if len(text) <= MAX_STEP_CHARS else text[: MAX_STEP_CHARS - 4] + " […]"


def scrubbed(trajectory: Trajectory, scrub: Callable[[str], str], read: Callable[[str], str]) -> Trajectory:
    """The trajectory after the scrubber. Arguments that are named like a secret (`password`, `api_key`) are masked
    whatever they hold, and so are those that only their whole call gives away (`docker`, `login`, `-p`, …) when `read`
    scrubs it; here and wherever else the trajectory repeats them."""
    named = {value for step in trajectory.steps for value in _secrets(step.arguments)}
    once = mapped(trajectory, lambda text: scrub(_without(named, text)))
    told = {value for step in once.steps if step.arguments for value in _told_by_call(step, read)}
    return mapped(once, lambda text: _without(told, text)) if told else once


def _without(secrets: Collection[str], text: str) -> str:
    for secret in sorted((value for value in secrets if len(value) >= 4), key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", SECRET, text)
    return text


def _secrets(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, one in value.items():
            if isinstance(one, str) and _SECRET_NAME.search(name):
                yield one
            else:
                yield from _secrets(one)
    elif isinstance(value, list):
        for one in value:
            yield from _secrets(one)


def _told_by_call(step: Step, read: Callable[[str], str]) -> Iterator[str]:
    """The values, and parts of them (`user:…`), that are gone from the call, or from a list read as a command line."""
    lines = [f"{step.action}({json.dumps(step.arguments, ensure_ascii=False)})"]
    values: list[str] = []
    parts: list[Any] = [step.arguments]  # any JSON values
    for part in parts:  # grows
        if isinstance(part, str):
            values += [part, *re.split("[:=%]", part)]
        elif isinstance(part, dict | list):
            parts += part.values() if isinstance(part, dict) else part
            if isinstance(part, list) and all(isinstance(one, str) for one in part):
                lines.append(" ".join(part))
    for line in lines:
        clean = read(line)
        yield from (value for value in values if value in line and value not in clean)


def mapped(trajectory: Trajectory, change: Callable[[str], str]) -> Trajectory:
    """The trajectory with every text in it changed: an agent's action may be a whole command, a key an address."""

    def of(value: Any) -> Any:  # any JSON value
        if isinstance(value, str):
            return change(value) if value else ""
        if isinstance(value, dict):
            return {change(key): of(one) for key, one in value.items()}
        return [of(one) for one in value] if isinstance(value, list) else value

    texts = ("action", "arguments", "text", "result", "error")
    steps = tuple(replace(step, **{name: of(getattr(step, name)) for name in texts}) for step in trajectory.steps)
    whole = {name: of(getattr(trajectory, name)) for name in ("query", "output", "error", "checks")}
    return replace(trajectory, steps=steps, **whole)


# -- transcripts of coding agents --------------------------------------------------------------------------------------


MAX_BYTES = 50_000_000
MAX_RESULT_CHARS = 2_000
MAX_TEXT_CHARS = 1_000
RUNS_COMMANDS = ("Bash",)
"""Tools whose results are errors exactly when the command's exit code was not 0."""
_NOT_SAID = ("isSidechain", "isMeta", "isCompactSummary")
_EXIT_CODE = regex(r"^(?:Process exited with code|Exit code:) (-?\d+)$", re.MULTILINE)
_RUNNING = regex(r"^Process running with session ID (\d+)$", re.MULTILINE)


def read_transcript(path: Path) -> Trajectory:
    """The work since the last prompt."""
    try:
        size = path.stat().st_size
        lines = [] if size > MAX_BYTES else path.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError as error:
        raise InvalidInput("transcript_path", f"cannot read {str(path)!r}: {error.strerror}") from None
    if size > MAX_BYTES:
        raise InvalidInput("transcript_path", f"{str(path)!r} has more than {MAX_BYTES:,} bytes")
    return trajectory_in(lines)


def trajectory_in(lines: Iterable[str]) -> Trajectory:
    """The same from the lines of a transcript."""
    query = said = ""
    known, steps = 0, list[Step]()
    calls: dict[str, int] = {}
    running: dict[str, int] = {}
    for message in _messages(lines):
        content = message.get("content")
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
        parts = [part for part in parts if isinstance(part, Mapping)]
        kinds = {part.get("type") for part in parts}
        asked = _texts(parts).strip() if message.get("role") == "user" and "tool_result" not in kinds else ""
        if asked and not by_program(asked):
            rejected, known = query and rejects(asked, said), len(steps)
            if rejected or not goes_on(asked, said):
                query = asked if not rejected else "" if UNDO.search(asked) else query
                known, steps, calls, running, said = 0, [], {}, {}, ""
            continue
        for part in parts:
            if part.get("type") == "text" and message.get("role") == "assistant":
                said = str(part.get("text") or "")
            elif part.get("type") == "tool_use":
                value = part.get("input")
                given: Mapping[str, Any] = value if isinstance(value, Mapping) else {}
                if part.get("name") == "write_stdin" and str(given.get("session_id")) in running:
                    calls[str(part.get("id"))] = running[str(given["session_id"])]  # Codex waits for a command
                    continue
                calls[str(part.get("id"))] = len(steps)
                step = {"tool": part.get("name") or "tool", "args": given}
                steps.append(step_of({**step, "text": said[:MAX_TEXT_CHARS]}))
                said = ""
            elif part.get("type") == "tool_result" and str(part.get("tool_use_id")) in calls:
                place = calls[str(part["tool_use_id"])]
                steps[place] = _answered(steps[place], part)
                if waits := part.get("running"):
                    running[waits] = place
    done = steps if query and len(steps) > known else []
    return bounded(Trajectory(query=query, steps=tuple(done), output=said, trusted=False))


def _messages(lines: Iterable[str]) -> Iterable[Mapping[str, Any]]:
    for line in lines:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if not isinstance(value, Mapping) or any(value.get(name) for name in _NOT_SAID):
            continue
        message, item = value.get("message"), value.get("payload")
        if isinstance(message, Mapping) and value.get("type") in ("user", "assistant"):
            yield message
        elif isinstance(item, Mapping) and value.get("type") == "response_item":
            yield _of_codex(item)


def _of_codex(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """An item of Codex as Claude Code writes it, with commands under the same name, so that both teach each other."""
    match item:
        case {"type": "message", "role": "user" | "assistant" as role, "content": list() as parts}:
            texts = [{**part, "type": "text"} for part in parts if isinstance(part, Mapping) and "text" in part]
            return {"role": role, "content": texts}
        case {"type": "function_call", "call_id": str() as id, "name": str() as name, "arguments": str() as text}:
            try:
                given = json.loads(text)
            except (ValueError, RecursionError):
                given = {}
            if name == "exec_command" and isinstance(given, Mapping):
                name, given = "Bash", {"command": given.get("cmd")}
            return {"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": name, "input": given}]}
        case {"type": "custom_tool_call", "call_id": str() as id, "name": str() as name, "input": str() as text}:
            call = {"type": "tool_use", "id": id, "name": name, "input": {"input": text}}
            return {"role": "assistant", "content": [call]}
        case {"type": "function_call_output", "call_id": str() as id, "output": str() as output}:
            head, _, text = output.partition("Output:\n")
            code, running = _EXIT_CODE.search(head), _RUNNING.search(head)
            failed = None if code is None else code[1] != "0"  # a command that still runs has no code
            result = {"type": "tool_result", "tool_use_id": id, "content": text or output, "is_error": failed}
            return {"role": "user", "content": [{**result, "running": running and running[1]}]}
    return {}


def _texts(parts: Iterable[Any]) -> str:
    texts = (part.get("text") for part in parts if isinstance(part, Mapping) and part.get("type") == "text")
    return "\n".join(text for text in texts if isinstance(text, str))


def _answered(step: Step, part: Mapping[str, Any]) -> Step:
    content = part.get("content")
    text = (_texts(content) if isinstance(content, list) else str(content or ""))[:MAX_RESULT_CHARS]
    if part.get("is_error") is True:
        return replace(step, error=text or "error", ok=False)
    # Only a command that ended says that it worked; that a file was read proves nothing.
    ran = step.action in RUNS_COMMANDS and part.get("is_error", False) is False
    return replace(step, result=text, ok=True if ran else None)
