"""What models are asked: constant instructions from files, trajectories as fenced and escaped data, within a budget."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from wellworn.core.fence import escape
from wellworn.models.port import Model, Request, read_prompt
from wellworn.tasks.trajectory import Trajectory

MAX_LINE_CHARS = 1_200
MAX_SHOWN_CHARS = 24_000
"""Of all the steps that a model is shown at once; the middle of longer ones is left out."""


prompt = partial(read_prompt, __file__)


def ask(model: Model, name: str, shown: str, *, max_tokens: int) -> str:
    """The model's answer to a prompt with data."""
    purpose = "judge" if name == "judge" else "distill"
    return model.complete(
        Request.of(prompt(name), shown, purpose=purpose, max_output_tokens=max_tokens, json=True)
    ).text


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


def shown_attempts(attempts: Sequence[tuple[Trajectory, bool]]) -> str:
    """Several attempts, each with its verdict, numbered from 1."""
    room = MAX_SHOWN_CHARS // max(1, len(attempts))
    return "\n".join(
        f"Attempt {number} | {'success' if success else 'failure'}\n"
        f"{shown_steps(trajectory, prefix=f'{number}.', room=room)}"
        for number, (trajectory, success) in enumerate(attempts, start=1)
    )


def _within(lines: list[str], room: int) -> list[str]:
    """The first and the last lines that fit."""
    kept = list(lines)
    while kept and sum(map(len, kept)) > room:
        kept.pop(len(kept) // 2)
    middle, left = (len(kept) + 1) // 2, len(lines) - len(kept)
    return [*kept[:middle], f"… {left} steps left out …", *kept[middle:]] if left else kept


def _cut(text: str) -> str:
    return text if len(text) <= MAX_LINE_CHARS else text[:MAX_LINE_CHARS] + " […]"
