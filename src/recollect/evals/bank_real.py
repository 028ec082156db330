"""What the rules make of real trajectories: is the judge right, does distilling find anything, is a sibling found?

Two readings of a tool that raised no error: it said nothing about how it went (`as given`), or it worked (`no error =
ok`). The judge is compared with always saying what is more frequent. For retrieval a bank learns the first trial of
every task, with the true label, and is asked with what the user said first in each of the other trials: does it give an
item of the same task? Only sets whose trials put the task in other words are asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.evals.bank_report import as_json
from recollect.evals.bank_traces import Trace, load
from recollect.evals.intervals import Interval, interval
from recollect.evals.run import Progress, Steps
from recollect.memory import Memory
from recollect.reasoning import ReasoningBank
from recollect.reasoning.items import origin_of
from recollect.reasoning.judge import judge
from recollect.types import Scope

if TYPE_CHECKING:
    from rich.table import Table

SCOPE = Scope(tenant="eval", agent="reader")
READINGS = ("as given", "no error = ok")
CUTOFFS = (1, 3, 5)


@dataclass(frozen=True, kw_only=True)
class Judged:
    """How often the judge agreed with the label."""

    accuracy: Interval
    precision: float | None
    """Of what it called a success; None when it never did."""
    recall: float | None


@dataclass(frozen=True, kw_only=True)
class SetReport:
    """One set."""

    name: str
    traces: int
    tasks: int
    majority: float
    """Accuracy, in percent, of always saying the more frequent label."""
    judged: dict[str, Judged]
    taught: float
    """Share of trajectories, in percent, that gave an item when told how they went."""
    found: dict[int, Interval] = field(default_factory=dict)
    """Queries, in percent, with an item of the same task among the first so many; empty when not asked."""
    chance: float = 0.0


def run(folder: Path, *, embedder: str = "static", progress: Progress | None = None) -> list[SetReport]:
    """Measure every set in the folder."""
    sets = load(folder)
    steps = Steps(total=sum(2 * len(traces) for traces in sets.values()), progress=progress)
    return [_measured(name, traces, embedder, steps) for name, traces in sets.items()]


def _measured(name: str, traces: list[Trace], embedder: str, steps: Steps) -> SetReport:
    tasks = {trace.task for trace in traces}
    right = sum(trace.success for trace in traces)
    taught = 0
    with Memory.open(":memory:", embedder=embedder, background=False) as memory:
        bank = ReasoningBank(memory, scope=SCOPE)
        for trace in traces:
            taught += bool(bank.distill(trace.trajectory, trace.success).items)
            steps.advance()
        found = _siblings(bank, traces, steps)
    return SetReport(
        name=name, traces=len(traces), tasks=len(tasks), majority=100.0 * max(right, len(traces) - right) / len(traces),
        judged={reading: _judged(traces, reading) for reading in READINGS}, taught=100.0 * taught / len(traces),
        found=found, chance=100.0 / len(tasks),
    )  # fmt: skip


def _judged(traces: Sequence[Trace], reading: str) -> Judged:
    said = [judge(_read(trace, reading).trajectory).success for trace in traces]
    pairs = [*zip(traces, said, strict=True)]
    yes, truly = [one for one, ok in pairs if ok], [ok for one, ok in pairs if one.success]
    return Judged(
        accuracy=interval((one.task, 100.0 * (one.success == ok)) for one, ok in pairs),
        precision=sum(one.success for one in yes) / len(yes) if yes else None,
        recall=sum(truly) / len(truly) if truly else None,
    )


def _read(trace: Trace, reading: str) -> Trace:
    if reading == "as given":
        return trace
    steps = tuple(step if step.failed or not step.action else replace(step, ok=True) for step in trace.trajectory.steps)
    return replace(trace, trajectory=replace(trace.trajectory, steps=steps))


def _siblings(bank: ReasoningBank, traces: Sequence[Trace], steps: Steps) -> dict[int, Interval]:
    """Learn the first trial of each task, ask with the others."""
    first = {trace.task: trace for trace in reversed(traces)}
    rest = [trace for trace in traces if trace is not first[trace.task]]
    if all(trace.trajectory.query == first[trace.task].trajectory.query for trace in rest):
        return {}
    for trace in first.values():
        bank.record(trace.trajectory, task_id=trace.task, verdict=trace.success)
        steps.advance()
    hits: dict[int, list[tuple[str, float]]] = {k: [] for k in CUTOFFS}
    for trace in rest:
        recall = bank.retrieve(trace.trajectory.query, k=max(CUTOFFS))
        origins = [origin.task if (origin := origin_of(hit.entry)) else "" for hit in recall.hits]
        for k, values in hits.items():
            values.append((trace.task, 100.0 * (trace.task in origins[:k])))
        steps.advance()
    return {k: interval(values) for k, values in hits.items()}


def tables(reports: Sequence[SetReport]) -> list[Table]:
    """The judge, then what was distilled and found again."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    first = Table(title="the judge without a model, in percent", box=SIMPLE_HEAD, header_style="bold")
    second = Table(title="distilled, and found from a sibling, in percent", box=SIMPLE_HEAD, header_style="bold")
    found = [f"found@{k}" for k in CUTOFFS]
    for table, columns in (
        (first, ("set", "reading", "accuracy", "more frequent label", "precision", "recall")),
        (second, ("set", "trajectories", "tasks", "gave an item", *found, "by chance")),
    ):
        for column in columns:
            table.add_column(column, justify="left" if column in ("set", "reading") else "right")
    for one in reports:
        for reading, told in one.judged.items():
            shares = [_share(told.precision), _share(told.recall)]
            first.add_row(one.name, reading, str(told.accuracy), f"{one.majority:.1f}", *shares)
        again = [str(one.found[k]) if k in one.found else "" for k in CUTOFFS]
        chance = f"{one.chance:.1f}" if one.found else ""
        second.add_row(one.name, str(one.traces), str(one.tasks), f"{one.taught:.1f}", *again, chance)
    return [first, second]


def document(reports: Sequence[SetReport]) -> dict[str, Any]:  # any JSON value
    """One document; its keys do not change between runs."""
    return {
        "sets": [
            {
                "set": one.name, "trajectories": one.traces, "tasks": one.tasks, "majority": round(one.majority, 4),
                "judge": {
                    reading: {"accuracy": as_json(told.accuracy), "precision": told.precision, "recall": told.recall}
                    for reading, told in one.judged.items()
                },
                "gave_an_item": round(one.taught, 4), "found": {str(k): as_json(at) for k, at in one.found.items()},
                "chance": round(one.chance, 4),
            }
            for one in reports
        ]
    }  # fmt: skip


def _share(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}"
