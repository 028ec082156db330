"""What the bank brought: success rates of each way to live with intervals, gains, families and the course over time.

Gathers tasks into tables and JSON. Knows nothing about how they were done. Intervals are a bootstrap over kinds of
tasks in worlds, since the tasks of one kind in one world go together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evals.bank_world import FAMILIES
from evals.intervals import Interval, interval

if TYPE_CHECKING:
    from rich.table import Table

QUARTERS = 4


@dataclass(frozen=True, kw_only=True)
class Done:
    """One task, done once."""

    seed: int
    kind: str
    family: str
    number: int
    place: float
    """When in the life it came: 0 first, towards 1 last."""
    success: bool
    calls: int
    given: int
    """Items that the bank gave."""
    used: int
    """Of these, how many the agent went by."""
    steps: list[dict[str, Any]] = field(repr=False, default_factory=list)


Chosen = Callable[[Done], bool]


@dataclass(frozen=True, kw_only=True)
class BankReport:
    """Every task of every way; all ways do the same tasks."""

    tasks: int
    seeds: int
    embedder: str
    done: dict[str, list[Done]] = field(repr=False)

    def success(self, way: str, chosen: Chosen = lambda _: True) -> Interval:
        """Tasks that succeeded, in percent."""
        return interval(((one.seed, one.kind), 100.0 * one.success) for one in self.done[way] if chosen(one))

    def gain(self, way: str) -> Interval:
        """Points over the same tasks without a bank (where rules change: over the same change without one).

        Nothing where that was not lived.
        """
        alone = "rules change, without" if way.startswith("rules change") else "without"
        if alone not in self.done:
            return interval([])
        same = {(one.seed, one.number): one.success for one in self.done[alone]}
        return interval(
            ((one.seed, one.kind), 100.0 * (one.success - same[one.seed, one.number])) for one in self.done[way]
        )

    def calls(self, way: str) -> float:
        """Mean calls of a task."""
        return sum(one.calls for one in self.done[way]) / max(len(self.done[way]), 1)

    def quarters(self, way: str) -> list[Interval]:
        """Success by quarter of a life."""
        return [self.success(way, _in_quarter(number)) for number in range(QUARTERS)]

    def tables(self) -> list[Table]:
        """Success with intervals and gains, then families and quarters."""
        from rich.box import SIMPLE_HEAD
        from rich.table import Table

        first = Table(title="tasks that succeeded, in percent", box=SIMPLE_HEAD, header_style="bold")
        second = Table(title="by family and by quarter of a life", box=SIMPLE_HEAD, header_style="bold")
        for table, columns in (
            (first, ("success", "gain", "calls a task")),
            (second, (*FAMILIES, "1st", "2nd", "3rd", "4th")),
        ):
            table.add_column("way")
            for column in columns:
                table.add_column(column, justify="right")
        for way in self.done:
            gain = "" if way.endswith("without") or not self.gain(way).n else str(self.gain(way))
            first.add_row(way, str(self.success(way)), gain, f"{self.calls(way):.1f}")
            parts = [*(self.success(way, _of(family)) for family in FAMILIES), *self.quarters(way)]
            second.add_row(way, *(f"{part.mean:.1f}" for part in parts))
        return [first, second]

    def as_json(self) -> dict[str, Any]:  # any JSON value
        """One document; its keys do not change between runs."""
        return {
            "world": "hidden rules",
            "tasks": self.tasks,
            "seeds": self.seeds,
            "embedder": self.embedder,
            "ways": {
                way: {
                    "success": as_json(self.success(way)),
                    "gain": as_json(self.gain(way)),
                    "calls": round(self.calls(way), 4),
                    "by_family": {family: as_json(self.success(way, _of(family))) for family in FAMILIES},
                    "by_quarter": [as_json(quarter) for quarter in self.quarters(way)],
                }
                for way in self.done
            },
        }


def as_json(one: Interval) -> dict[str, float]:
    return {"mean": round(one.mean, 4), "low": round(one.low, 4), "high": round(one.high, 4), "n": one.n}


def _of(family: str) -> Chosen:
    return lambda one: one.family == family


def _in_quarter(number: int) -> Chosen:
    return lambda one: min(int(one.place * QUARTERS), QUARTERS - 1) == number
