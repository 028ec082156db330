"""Is the judge right about real work, and is what a task taught found again? On labelled public trajectories.

| set      | files                                                                        | label         |
|----------|------------------------------------------------------------------------------|---------------|
| taubench | `historical_trajectories/*.json` of sierra-research/tau-bench                | reward 1 or 0 |
| hotpotqa | ReAct logs of noahshinn/reflexion, `*.txt` with CORRECT, INCORRECT and HALTED | the heading   |

The label never gets into a trajectory. Tasks are split in two halves by the hash of their name: `tune` served to set the
weights of the judge's signs, `check` did not.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evals.data import PUBLISHED, DataError, read_json
from evals.report import Report, Steps, Table, interval
from wellworn import Memory, Scope
from wellworn.core.values import Progress
from wellworn.tasks import ReasoningBank, Step, Trajectory, trajectory_of
from wellworn.tasks.items import ORIGIN
from wellworn.tasks.judge import Verdict, judge

SCOPE = Scope(tenant="eval", agent="reader")
DEPTH = 60
"""Items that are looked through for one of the same task; one below counts as not found."""
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

    task: str
    trajectory: Trajectory
    success: bool

    @property
    def half(self) -> str:
        return ("tune", "check")[int(hashlib.sha256(self.task.encode()).hexdigest(), 16) % 2]


def run(folder: Path, *, embedder: str = "reader", progress: Progress | None = None) -> Report:
    """Judge every trajectory; teach a bank the first trial of each task and look for it from the others."""
    sets = load(folder)
    steps = Steps(total=sum(map(len, sets.values())), progress=progress)
    judged = [_judged(name, half, traces) for name, traces in sets.items() for half in ("tune", "check")]
    found = [_siblings(name, traces, embedder, steps) for name, traces in sets.items()]
    columns = ("set", "half", "n", "accuracy %", "more frequent label %", "ranking %", "teaches", "of these right %")
    siblings = (
        "set",
        "trajectories",
        "tasks",
        "gave an item %",
        "found@1",
        "found@3",
        "found@5",
        "plain@1",
        "by chance %",
    )
    tables = [
        Table(title="the judge without a model", columns=columns, rows=[row for row in judged if row[2]]),
        Table(title="found from a sibling", columns=siblings, rows=found),
    ]
    return Report(name="judge", about={"embedder": embedder, "intervals": "over tasks"}, tables=tables)


def _judged(name: str, half: str, traces: Sequence[Trace]) -> tuple[Any, ...]:
    """Accuracy misleads where one label is frequent, hence also how often a success is thought likelier than a failure."""
    pairs = [(one, judge(one.trajectory)) for one in traces if one.half == half]
    wins = sum(one.success for one, _ in pairs)
    taught = [pair for pair in pairs if pair[1].teaches]
    frequent = 100.0 * max(wins, len(pairs) - wins) / max(len(pairs), 1)
    return name, half, len(pairs), _right(pairs), frequent, _ranking(pairs), len(taught), _right(taught)


def _right(pairs: Sequence[tuple[Trace, Verdict]]) -> Any:  # an interval
    return interval((one.task, 100.0 * (one.success == verdict.success)) for one, verdict in pairs)


def _ranking(pairs: Sequence[tuple[Trace, Verdict]]) -> float | None:
    """The area under the curve over all pairs of a success and a failure; None where one label is all."""
    odds = [(one.success, v.confidence if v.success else 1 - v.confidence) for one, v in pairs]
    won, lost = ([sure for success, sure in odds if success is wanted] for wanted in (True, False))
    if not won or not lost:
        return None
    return 100.0 * sum((a > b) + 0.5 * (a == b) for a in won for b in lost) / (len(won) * len(lost))


def _siblings(name: str, traces: Sequence[Trace], embedder: str, steps: Steps) -> tuple[Any, ...]:
    """At which rank is an item of the same task? Asked only where trials put the task in other words.

    `plain` takes the task whose first words are nearest by cosine, without a bank.
    """
    first = {one.task: one for one in reversed(traces)}
    rest = [one for one in traces if one.trajectory.query != first[one.task].trajectory.query]
    ranks: list[tuple[str, int]] = []
    with Memory.open(":memory:", embedder=embedder, background=False) as memory:
        bank = ReasoningBank(memory, scope=SCOPE)
        taught = sum(bool(bank.distill(one.trajectory, one.success).items) for one in traces)
        for one in first.values() if rest else ():
            bank.record(one.trajectory, task_id=one.task, verdict=one.success)
        for one in rest:
            hits = bank.retrieve(one.trajectory.query, k=DEPTH).hits
            tasks = list(dict.fromkeys(hit.entry.metadata[ORIGIN]["task"] for hit in hits))
            ranks.append((one.task, 1 + tasks.index(one.task) if one.task in tasks else DEPTH + 1))
        embed = memory.engine.embedder
        words = None if embed is None or not rest else embed.embed([one.trajectory.query for one in first.values()])
        plain = [
            (
                one.task,
                100.0 * (list(first)[int((words @ embed.embed_query(one.trajectory.query)).argmax())] == one.task),
            )
            for one in rest
            if words is not None and embed is not None
        ]
    steps.advance(len(traces))
    share = 100.0 * taught / len(traces)
    at = [interval((task, 100.0 * (rank <= k)) for task, rank in ranks) for k in (1, 3, 5)]
    return name, len(traces), len(first), share, *at, interval(plain), 100.0 / len(first) if rest else None


# -- reading ---------------------------------------------------------------------------------------------------------


def load(folder: Path) -> dict[str, list[Trace]]:
    """Every labelled trajectory in a folder and in the folders right below it, by set."""
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
        raise DataError(f"no labelled trajectories in {str(folder)!r} (get them from {PUBLISHED['traces']})")
    return found


def _once(traces: list[Trace]) -> list[Trace]:
    """Each attempt once: some logs list a solved task again in every later trial."""
    return list({(one.task, one.trajectory.text, one.success): one for one in reversed(traces)}.values())[::-1]


def _taubench(value: Any) -> Iterator[Trace]:  # whatever the file holds
    for run in value if isinstance(value, list) else []:
        if isinstance(run, Mapping) and isinstance(run.get("traj"), list) and "reward" in run:
            success = float(run["reward"]) == 1.0
            yield Trace(task=str(run.get("task_id")), trajectory=_dialogue(run["traj"]), success=success)


def _dialogue(messages: list[Any]) -> Trajectory:
    """The task is what the user said first; what was said later, and calls, are the steps.

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


def _arguments(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {"input": text}
    return value if isinstance(value, dict) else {"input": value}


def _hotpotqa(text: str) -> Iterator[Trace]:
    heading = ""
    block: list[str] = []
    for line in [*text.splitlines(), "Question: "]:
        found = _HEADING.match(line)
        if (found or line.startswith(("Question: ", "BEGIN TRIAL"))) and block:
            yield _react(block, heading)
            block = []
        if found:
            heading = found[1]
        elif block or (heading and line.startswith("Question: ")):
            block.append(line)


def _react(lines: list[str], heading: str) -> Trace:
    question = lines[0].removeprefix("Question: ").split(_ASKED_AGAIN)[0].strip()
    parts: dict[int, dict[str, str]] = {}
    for line in lines[1:]:
        if found := _LINE.match(line):
            parts.setdefault(int(found[2]), {})[found[1]] = found[3]
    steps = tuple(_step(parts[number]) for number in sorted(parts))
    trajectory = trajectory_of(Trajectory(query=question, steps=steps))
    return Trace(task=question, trajectory=trajectory, success=heading == "CORRECT")


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
