"""Real trajectories with labels, read from their public files: what an agent did, and whether it was right.

| set      | files                                                                        | label            |
|----------|------------------------------------------------------------------------------|------------------|
| taubench | `historical_trajectories/*.json` of sierra-research/tau-bench                | reward 1 or 0    |
| hotpotqa | ReAct logs of noahshinn/reflexion, `*.txt` with CORRECT, INCORRECT and HALTED | the heading      |

The label never gets into a trajectory: the line that tells the agent of the log whether it was right is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evals.files import read_json
from wellworn.core.errors import InvalidInput
from wellworn.tasks import Step, Trajectory, trajectory_of

REMEDY = (
    "get historical_trajectories/*.json of the public repository sierra-research/tau-bench, or the ReAct logs of "
    "noahshinn/reflexion"
)
_HEADING = re.compile(r"^-+ BEGIN (CORRECT|INCORRECT|HALTED) AGENTS -+\s*$")
_LINE = re.compile(r"^(Thought|Action|Observation) (\d+): ?(.*)$")
_ACTION = re.compile(r"^(\w+)\[(.*)\]\s*$")
_ASKED_AGAIN = "You have attempted to answer following question before"
_OVER = "###STOP###"
"""Said by a simulated user who has nothing more to ask."""
_FAILED = ("Could not find", "No Results", "No more results", "The last page Searched was not found", "Invalid Action")


@dataclass(frozen=True, kw_only=True)
class Trace:
    """One attempt at one task, with the truth about it."""

    set: str
    task: str
    trial: int
    trajectory: Trajectory
    success: bool


def load(folder: Path) -> dict[str, list[Trace]]:
    """Every labelled trajectory in a folder and in the folders right below it, by set."""
    if not folder.exists():
        raise InvalidInput("--data", f"no folder {str(folder)!r}", REMEDY)
    places = [folder] if folder.is_file() else sorted([*folder.glob("*"), *folder.glob("*/*")])
    found: dict[str, list[Trace]] = {}
    for path in places:
        if path.suffix == ".json":
            found.setdefault("taubench", []).extend(_taubench(read_json(path)))
        elif path.suffix == ".txt":
            text = path.read_text(encoding="utf-8", errors="replace")
            found.setdefault("hotpotqa", []).extend(_hotpotqa(text))
    found = {name: _once(traces) for name, traces in found.items() if traces}
    if not found:
        raise InvalidInput("--data", f"no labelled trajectories in {str(folder)!r}", REMEDY)
    return found


def _once(traces: list[Trace]) -> list[Trace]:
    """Each attempt once: a log that lists a solved task again in every later trial did not do it again."""
    return list({(one.task, one.trajectory.text, one.success): one for one in reversed(traces)}.values())[::-1]


def _taubench(value: Any) -> Iterator[Trace]:  # whatever the file holds
    for run in value if isinstance(value, list) else []:
        if isinstance(run, Mapping) and isinstance(run.get("traj"), list) and "reward" in run:
            yield Trace(
                set="taubench",
                task=str(run.get("task_id")),
                trial=int(run.get("trial", 0)),
                trajectory=_dialogue(run["traj"]),
                success=float(run["reward"]) == 1.0,
            )


def _dialogue(messages: list[Any]) -> Trajectory:
    """A dialogue with tools: the task is what the user said first; what was said later, and calls, are the steps.

    A result belongs to the call right before it: some files give several calls of one run the same id.
    """
    steps: list[Step] = []
    asked = ""
    for message in messages:
        role, said = message.get("role"), str(message.get("content") or "")
        if role == "user" and not asked:
            asked = said
        elif role == "tool" and steps:
            failed = said.startswith("Error")
            steps[-1] = replace(steps[-1], result="" if failed else said, error=said if failed else "")
        elif role in ("user", "assistant") and said and said != _OVER:
            steps.append(Step(text=f"{'User' if role == 'user' else 'Agent'}: {said.removesuffix(_OVER).strip()}"))
        for call in message.get("tool_calls") or []:
            called = call["function"]
            steps.append(Step(action=called["name"], arguments=_arguments(called["arguments"])))
    last = [str(one["content"]) for one in messages if one.get("role") == "assistant" and one.get("content")]
    return trajectory_of(Trajectory(query=asked, steps=tuple(steps), output=last[-1] if last else ""))


def _arguments(text: str) -> dict[str, Any]:  # any JSON values
    try:
        value = json.loads(text)
    except ValueError:
        return {"input": text}
    return value if isinstance(value, dict) else {"input": value}


def _hotpotqa(text: str) -> Iterator[Trace]:
    trial, heading = 0, ""
    block: list[str] = []
    for line in [*text.splitlines(), "Question: "]:
        found = _HEADING.match(line)
        if (found or line.startswith(("Question: ", "BEGIN TRIAL"))) and block:
            yield _react(block, trial, heading)
            block = []
        if line.startswith("BEGIN TRIAL"):
            trial = int(line.split()[-1])
        elif found:
            heading = found[1]
        elif block or (heading and line.startswith("Question: ")):
            block.append(line)


def _react(lines: list[str], trial: int, heading: str) -> Trace:
    question = lines[0].removeprefix("Question: ").split(_ASKED_AGAIN)[0].strip()
    parts: dict[int, dict[str, str]] = {}
    for line in lines[1:]:
        if found := _LINE.match(line):
            parts.setdefault(int(found[2]), {})[found[1]] = found[3]
    steps = [_step(parts[number]) for number in sorted(parts)]
    return Trace(
        set="hotpotqa",
        task=question,
        trial=trial,
        success=heading == "CORRECT",
        trajectory=trajectory_of(Trajectory(query=question, steps=tuple(steps))),
    )


def _step(part: Mapping[str, str]) -> Step:
    called, seen = _ACTION.match(part.get("Action", "")), part.get("Observation", "")
    if seen.startswith("Answer is"):  # the label
        seen = ""
    failed = seen.startswith(_FAILED)
    return Step(
        action=called[1] if called else "",
        arguments={"input": called[2]} if called else {},
        text=part.get("Thought", ""),
        result="" if failed else seen,
        error=seen if failed else "",
    )
