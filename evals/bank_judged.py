"""How right the judge is on trajectories with labels: what it calls a success or a failure, and how sure it says it is.

Accuracy alone misleads where one label is frequent, so each kind of verdict is counted by itself, and so are those that
are sure enough to teach. Tasks are in two halves by the hash of their name: `looked at` served to set the weights of
signs, `aside` did not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from evals.bank_report import as_json
from evals.bank_traces import Trace
from evals.intervals import Interval, interval
from wellworn.tasks.judge import Verdict, judge

if TYPE_CHECKING:
    from rich.table import Table

Half = Literal["looked at", "aside"]
HALVES: tuple[Half, ...] = ("looked at", "aside")
READINGS = ("as given", "no error = ok")
"""Of a tool that raised no error: it said nothing about how it went, or it worked."""


@dataclass(frozen=True, kw_only=True)
class Told:
    """Verdicts that say the same."""

    count: int
    right: Interval
    """In percent."""


@dataclass(frozen=True, kw_only=True)
class Judged:
    """One reading of one half of a set."""

    set: str
    half: Half
    reading: str
    traces: int
    majority: float
    """Accuracy, in percent, of always saying the more frequent label."""
    accuracy: Interval
    ranking: float | None
    """How often a success is thought likelier than a failure, in percent: 50 is chance, None where one label is all."""
    successes: Told
    failures: Told
    teaches: Told
    """Verdicts sure enough to be learned from."""


def half_of(task: str) -> Half:
    return HALVES[int(hashlib.sha256(task.encode()).hexdigest(), 16) % 2]


def judged(name: str, traces: Sequence[Trace]) -> list[Judged]:
    """The judge without a model on each half of a set, each tool read in both ways."""
    halves = {half: [one for one in traces if half_of(one.task) == half] for half in HALVES}
    return [_judged(name, half, reading, found) for reading in READINGS for half, found in halves.items() if found]


def read(trace: Trace, reading: str) -> Trace:
    """The trace, each call without an error read as one that worked if so wanted."""
    if reading == "as given":
        return trace
    steps = tuple(step if step.failed or not step.action else replace(step, ok=True) for step in trace.trajectory.steps)
    return replace(trace, trajectory=replace(trace.trajectory, steps=steps))


def _judged(name: str, half: Half, reading: str, traces: Sequence[Trace]) -> Judged:
    pairs = [(one, judge(read(one, reading).trajectory)) for one in traces]
    right = sum(one.success for one in traces)
    return Judged(
        set=name,
        half=half,
        reading=reading,
        traces=len(traces),
        majority=100.0 * max(right, len(traces) - right) / len(traces),
        accuracy=_right(pairs),
        ranking=_ranking(pairs),
        successes=_told([pair for pair in pairs if pair[1].success]),
        failures=_told([pair for pair in pairs if not pair[1].success]),
        teaches=_told([pair for pair in pairs if pair[1].teaches]),
    )


def _told(pairs: Sequence[tuple[Trace, Verdict]]) -> Told:
    return Told(count=len(pairs), right=_right(pairs))


def _right(pairs: Sequence[tuple[Trace, Verdict]]) -> Interval:
    return interval((one.task, 100.0 * (one.success == verdict.success)) for one, verdict in pairs)


def _ranking(pairs: Sequence[tuple[Trace, Verdict]]) -> float | None:
    """The area under the curve: over all pairs of a success and a failure, ties by half."""
    odds = [(one.success, v.confidence if v.success else 1 - v.confidence) for one, v in pairs]
    won, lost = ([sure for success, sure in odds if success is wanted] for wanted in (True, False))
    if not won or not lost:
        return None
    return 100.0 * sum((a > b) + 0.5 * (a == b) for a in won for b in lost) / (len(won) * len(lost))


def table(rows: Sequence[Judged]) -> Table:
    """One line a half and reading."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    made = Table(title="the judge without a model, in percent", box=SIMPLE_HEAD, header_style="bold")
    left = ("set", "tools", "tasks")
    for column in (*left, "n", "accuracy", "more frequent", "ranking", "says success", "says failure", "sure enough"):
        made.add_column(column, justify="left" if column in left else "right")
    for row in rows:
        told = [_shown(one) for one in (row.successes, row.failures, row.teaches)]
        ranking = "" if row.ranking is None else f"{row.ranking:.1f}"
        made.add_row(
            row.set, row.reading, row.half, str(row.traces), str(row.accuracy), f"{row.majority:.1f}", ranking, *told
        )
    return made


def _shown(one: Told) -> str:
    return f"{one.right.mean:.1f} of {one.count}" if one.count else "never"


def document(rows: Sequence[Judged]) -> list[dict[str, Any]]:  # any JSON value
    """One entry a half and reading; its keys do not change between runs."""
    return [
        {
            "half": row.half,
            "reading": row.reading,
            "trajectories": row.traces,
            "majority": round(row.majority, 4),
            "accuracy": as_json(row.accuracy),
            "ranking": None if row.ranking is None else round(row.ranking, 4),
            **{
                name: {"count": told.count, "coverage": round(told.count / row.traces, 4), "right": as_json(told.right)}
                for name, told in (("successes", row.successes), ("failures", row.failures), ("teaches", row.teaches))
            },
        }
        for row in rows
    ]
