"""Read the transcript of a coding agent as a trajectory.

Reads the files of Claude Code and Codex: one JSON object per line, each a message with text, tool calls, or their
results. Only what came after the last prompt counts. Whatever is not understood is left out, because the formats are not
ours.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from wellworn.core.errors import InvalidInput
from wellworn.core.lazy import regex
from wellworn.tasks.trajectory import Step, Trajectory, bounded, step_of

MAX_BYTES = 50_000_000
MAX_RESULT_CHARS = 2_000
MAX_TEXT_CHARS = 1_000
RUNS_COMMANDS = ("Bash",)
"""Tools whose results are errors exactly when the command's exit code was not 0."""
_EXIT_CODE = regex(r"^(?:Process exited with code|Exit code:) (-?\d+)$", re.MULTILINE)
_RUNNING = regex(r"^Process running with session ID (\d+)$", re.MULTILINE)


def read_transcript(path: Path) -> Trajectory:
    """The work since the last prompt."""
    try:
        size = path.stat().st_size
        lines = [] if size > MAX_BYTES else path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise InvalidInput("transcript_path", f"cannot read {str(path)!r}: {error.strerror}") from None
    if size > MAX_BYTES:
        raise InvalidInput("transcript_path", f"{str(path)!r} has more than {MAX_BYTES:,} bytes")
    return trajectory_in(lines)


def trajectory_in(lines: Iterable[str]) -> Trajectory:
    """The same from the lines of a transcript."""
    query = said = ""
    steps: list[Step] = []
    calls: dict[str, int] = {}
    running: dict[str, int] = {}
    for message in _messages(lines):
        content = message.get("content")
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
        parts = [part for part in parts if isinstance(part, Mapping)]
        kinds = {part.get("type") for part in parts}
        asked = _texts(parts).strip() if message.get("role") == "user" and "tool_result" not in kinds else ""
        if asked:
            query, steps, calls, running, said = asked, [], {}, {}, ""
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
    return bounded(Trajectory(query=query, steps=tuple(steps), output=said, trusted=False))


def _messages(lines: Iterable[str]) -> Iterable[Mapping[str, Any]]:
    for line in lines:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if not isinstance(value, Mapping) or value.get("isSidechain") or value.get("isMeta"):
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
