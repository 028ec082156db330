"""Trajectories as data for a prompt: fenced, escaped, numbered, within a budget."""

from __future__ import annotations

from collections.abc import Sequence

from wellworn.core.fence import escape
from wellworn.tasks.trajectory import Trajectory

MAX_LINE_CHARS = 1_200
MAX_SHOWN_CHARS = 24_000
"""Of all the steps a model is shown at once; where they are more, the middle is left out."""
SHORT_SHOWN_CHARS = 5_000
"""The same for a model that refused more: with the instructions, within a context of 4,096 tokens."""


def shown_task(query: str) -> str:
    return f"<task>{escape(query)}</task>"


def shown_steps(trajectory: Trajectory, *, prefix: str = "", room: int = MAX_SHOWN_CHARS) -> str:
    """The steps, one a line, and how it ended."""
    lines = [f"Step {prefix}{number} | {_cut(escape(step.line))}" for number, step in enumerate(trajectory.steps)]
    lines = _within(lines, room)
    lines += [f"Said at the end | {_cut(escape(trajectory.output))}"] if trajectory.output else []
    lines += [f"Exception | {_cut(escape(trajectory.error))}"] if trajectory.error else []
    lines += [f"Exit code | {trajectory.exit_code}"] if trajectory.exit_code is not None else []
    return "\n".join(["<trajectory>", *lines, "</trajectory>"])


def shown_attempts(attempts: Sequence[tuple[Trajectory, bool | None]], *, room: int = MAX_SHOWN_CHARS) -> str:
    """Several attempts, each with its verdict, numbered from 1."""
    room //= max(1, len(attempts))
    told = {True: "success", False: "failure", None: "not judged"}
    return "\n".join(
        f"Attempt {number} | {told[success]}\n{shown_steps(trajectory, prefix=f'{number}.', room=room)}"
        for number, (trajectory, success) in enumerate(attempts, start=1)
    )


def _within(lines: list[str], room: int) -> list[str]:
    """The first and the last lines that fit."""
    if sum(map(len, lines)) <= room:
        return lines
    first: list[str] = []
    last: list[str] = []
    left = room
    rest = list(lines)
    while rest:
        line = rest.pop(-1 if len(first) > len(last) else 0)
        left -= len(line)
        if left < 0:
            break
        if len(first) > len(last):
            last.insert(0, line)
        else:
            first.append(line)
    return [*first, f"… {len(lines) - len(first) - len(last)} steps left out …", *last]


def _cut(text: str) -> str:
    return text if len(text) <= MAX_LINE_CHARS else text[:MAX_LINE_CHARS] + " […]"
