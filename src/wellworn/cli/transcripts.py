"""Read the transcript of a coding agent as a trajectory.

Reads the files of Claude Code: one JSON object per line, each a message with text, tool calls, or their results. Only
what came after the last prompt counts. Whatever is not understood is left out, because the format is not ours.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from wellworn.tasks.trajectory import Step, Trajectory, bounded

MAX_BYTES = 50_000_000
MAX_RESULT_CHARS = 2_000
MAX_TEXT_CHARS = 1_000
RUNS_COMMANDS = ("Bash",)
"""Tools whose results are errors exactly when the command's exit code was not 0."""


def read_transcript(path: Path) -> Trajectory:
    """The work since the last prompt; empty when the file is not there or too large."""
    try:
        if path.stat().st_size > MAX_BYTES:
            return Trajectory()
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return Trajectory()
    return trajectory_in(lines)


def trajectory_in(lines: Iterable[str]) -> Trajectory:
    """The same from the lines of a transcript."""
    query = said = ""
    steps: list[Step] = []
    calls: dict[str, int] = {}
    for message in _messages(lines):
        content = message.get("content")
        prompt = _prompt(message, content)
        if prompt:
            query, steps, calls, said = prompt, [], {}, ""
            continue
        for part in content if isinstance(content, list) else [{"type": "text", "text": content}]:
            if not isinstance(part, Mapping):
                continue
            kind = part.get("type")
            if kind == "text" and message.get("role") == "assistant":
                said = str(part.get("text") or "")
            elif kind == "tool_use":
                calls[str(part.get("id"))] = len(steps)
                arguments = part.get("input")
                given = arguments if isinstance(arguments, Mapping) else {}
                steps.append(
                    Step(
                        action=str(part.get("name") or "tool"),
                        text=said[:MAX_TEXT_CHARS],
                        arguments={str(name): value for name, value in given.items()},
                    )
                )
                said = ""
            elif kind == "tool_result" and str(part.get("tool_use_id")) in calls:
                place = calls[str(part["tool_use_id"])]
                steps[place] = _answered(steps[place], part)
    return bounded(Trajectory(query=query, steps=tuple(steps), output=said, trusted=False))


def _messages(lines: Iterable[str]) -> Iterable[Mapping[str, Any]]:
    for line in lines:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, Mapping) and not value.get("isSidechain") and not value.get("isMeta"):
            message = value.get("message")
            if isinstance(message, Mapping) and value.get("type") in ("user", "assistant"):
                yield message


def _prompt(message: Mapping[str, Any], content: object) -> str:
    """What a person asked; empty when this is no prompt."""
    if message.get("role") != "user":
        return ""
    if isinstance(content, str):
        return content.strip()
    parts = [part for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []
    if any(part.get("type") == "tool_result" for part in parts):
        return ""
    return "\n".join(str(part.get("text") or "") for part in parts if part.get("type") == "text").strip()


def _answered(step: Step, part: Mapping[str, Any]) -> Step:
    content = part.get("content")
    if isinstance(content, list):
        texts = [str(one.get("text") or "") for one in content if isinstance(one, Mapping)]
        content = "\n".join(texts)
    text = str(content or "")[:MAX_RESULT_CHARS]
    failed = part.get("is_error") is True
    ran = step.action in RUNS_COMMANDS  # only a command says that it worked; that a file was read proves nothing
    return Step(
        action=step.action,
        arguments=step.arguments,
        text=step.text,
        result="" if failed else text,
        error=(text or "error") if failed else "",
        ok=False if failed else True if ran else None,
    )
