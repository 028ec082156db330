"""What the rules make of real trajectories: is the judge right, does distilling find anything, is a sibling found?

For retrieval a bank learns the first trial of every task, with the true label, and is asked with what the user said
first in each of the other trials: at which rank is an item of the same task? It is compared with chance, and with
looking for the first trial whose own first words are most alike, which is as well as the task's words allow. Only sets
whose trials put the task in other words are asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evals import bank_judged
from evals.bank_judged import Judged
from evals.bank_report import as_json
from evals.bank_traces import Trace, load
from evals.intervals import Interval, interval
from evals.run import Steps
from wellworn.core.values import Progress, Scope
from wellworn.memory import Memory
from wellworn.models.choose import choose_embedder
from wellworn.models.port import Embedder
from wellworn.tasks import ReasoningBank
from wellworn.tasks.items import origin_of

if TYPE_CHECKING:
    from rich.table import Table

SCOPE = Scope(tenant="eval", agent="reader")
CUTOFFS = (1, 3, 5)
DEPTH = 60
"""Items that are looked through for one of the same task; one below counts as not found."""

Ranks = list[tuple[str, "int | None"]]
"""For each query the task and the rank of the first right one, None when there is none."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """How well siblings were found, in percent."""

    at: dict[int, Interval]
    """Queries with the right one among the first so many."""
    mrr: Interval
    """Mean of 1 / rank."""


@dataclass(frozen=True, kw_only=True)
class SetReport:
    """One set."""

    name: str
    traces: int
    tasks: int
    judged: list[Judged]
    taught: float
    """Share of trajectories, in percent, that gave an item when told how they went."""
    found: dict[str, Found] = field(default_factory=dict)
    """By the bank, and by plain similarity of the task's words; empty when not asked."""
    chance: float = 0.0


def run(folder: Path, *, embedder: str = "static", progress: Progress | None = None) -> list[SetReport]:
    """Measure every set in the folder."""
    sets = load(folder)
    steps = Steps(total=sum(2 * len(traces) for traces in sets.values()), progress=progress)
    return [_measured(name, traces, embedder, steps) for name, traces in sets.items()]


def _measured(name: str, traces: list[Trace], embedder: str, steps: Steps) -> SetReport:
    tasks = {trace.task for trace in traces}
    taught = 0
    with Memory.open(":memory:", embedder=embedder, background=False) as memory:
        bank = ReasoningBank(memory, scope=SCOPE)
        for trace in traces:
            taught += bool(bank.distill(trace.trajectory, trace.success).items)
            steps.advance()
        found = _siblings(bank, traces, choose_embedder(embedder), steps)
    return SetReport(
        name=name,
        traces=len(traces),
        tasks=len(tasks),
        judged=bank_judged.judged(name, traces),
        taught=100.0 * taught / len(traces),
        found=found,
        chance=100.0 / len(tasks),
    )


def _siblings(
    bank: ReasoningBank, traces: Sequence[Trace], embedder: Embedder | None, steps: Steps
) -> dict[str, Found]:
    """Learn the first trial of each task, ask with the others."""
    first = {trace.task: trace for trace in reversed(traces)}
    rest = [trace for trace in traces if trace is not first[trace.task]]
    if all(trace.trajectory.query == first[trace.task].trajectory.query for trace in rest):
        return {}
    for trace in first.values():
        bank.record(trace.trajectory, task_id=trace.task, verdict=trace.success)
        steps.advance()
    ranks: Ranks = []
    for trace in rest:
        hits = bank.retrieve(trace.trajectory.query, k=DEPTH).hits
        origins = list(dict.fromkeys(origin.task for hit in hits if (origin := origin_of(hit.entry))))
        ranks.append((trace.task, 1 + origins.index(trace.task) if trace.task in origins else None))
        steps.advance()
    found = {"the bank": _found(ranks)}
    return found if embedder is None else {**found, "plain similarity": _found(_plain(first, rest, embedder))}


def _plain(first: dict[str, Trace], rest: Sequence[Trace], embedder: Embedder) -> Ranks:
    """Ranks of the right first trial by similarity of first words; of those that are just as alike half come before."""
    tasks = list(first)
    known = embedder.embed([first[task].trajectory.query for task in tasks])
    ranks: Ranks = []
    for trace in rest:
        alike = np.asarray(known) @ np.asarray(embedder.embed_query(trace.trajectory.query))
        own = alike[tasks.index(trace.task)]
        ranks.append((trace.task, 1 + int((alike > own).sum()) + (int((alike == own).sum()) - 1) // 2))
    return ranks


def _found(ranks: Ranks) -> Found:
    return Found(
        at={k: interval((task, 100.0 * (rank is not None and rank <= k)) for task, rank in ranks) for k in CUTOFFS},
        mrr=interval((task, 0.0 if rank is None else 100.0 / rank) for task, rank in ranks),
    )


def tables(reports: Sequence[SetReport]) -> list[Table]:
    """The judge, then what was distilled and found again."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    first = bank_judged.table([row for one in reports for row in one.judged])
    second = Table(title="distilled, and found from a sibling, in percent", box=SIMPLE_HEAD, header_style="bold")
    left = ("set", "by")
    for column in (
        "set",
        "trajectories",
        "tasks",
        "gave an item",
        "by",
        *(f"found@{k}" for k in CUTOFFS),
        "1 / rank",
        "by chance",
    ):
        second.add_column(column, justify="left" if column in left else "right")
    for one in reports:
        said = [one.name, str(one.traces), str(one.tasks), f"{one.taught:.1f}"]
        if not one.found:
            second.add_row(*said)
        for by, found in one.found.items():
            second.add_row(*said, by, *(str(found.at[k]) for k in CUTOFFS), str(found.mrr), f"{one.chance:.1f}")
            said = ["", "", "", ""]
    return [first, second]


def document(reports: Sequence[SetReport]) -> dict[str, Any]:  # any JSON value
    """One document; its keys do not change between runs."""
    return {
        "sets": [
            {
                "set": one.name,
                "trajectories": one.traces,
                "tasks": one.tasks,
                "judge": bank_judged.document(one.judged),
                "gave_an_item": round(one.taught, 4),
                "found": {
                    by: {"at": {str(k): as_json(at) for k, at in found.at.items()}, "mrr": as_json(found.mrr)}
                    for by, found in one.found.items()
                },
                "chance": round(one.chance, 4),
            }
            for one in reports
        ]
    }
