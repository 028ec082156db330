"""Time calls that take turns, so that a busy moment of the machine hits all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

Call = Callable[[int], object]
"""Takes the number of the round, from 0."""
WARM_UP = 3


@dataclass(frozen=True, kw_only=True)
class Times:
    """What one call took, round by round, in seconds."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    @property
    def row(self) -> tuple[float, float, float, float]:
        """Wall median and 95th percentile, CPU median and 99th percentile, in ms."""
        wall, cpu = (1000 * np.array(found) for found in (self.wall, self.cpu))
        quantiles = (np.median(wall), np.percentile(wall, 95), np.median(cpu), np.percentile(cpu, 99))
        return tuple(round(float(value), 4) for value in quantiles)  # type: ignore[return-value]


COLUMNS = ("p50 ms", "p95 ms", "cpu ms", "cpu p99 ms")


def take_turns(calls: Mapping[str, Call], *, rounds: int, before: Call | None = None) -> dict[str, Times]:
    """Time each call once a round, every other round in the opposite order; `before` opens each round, untimed."""
    times = {name: Times() for name in calls}
    for number in range(WARM_UP + rounds):
        if before is not None:
            before(number)
        for name in list(calls)[:: 1 if number % 2 else -1]:
            wall, cpu = time.perf_counter(), time.process_time()
            calls[name](number)
            spent_cpu, spent = time.process_time() - cpu, time.perf_counter() - wall
            if number >= WARM_UP:
                times[name].wall.append(spent)
                times[name].cpu.append(spent_cpu)
    return times


def compared(label: tuple[object, ...], found: Times, floor: Times) -> tuple[object, ...]:
    """A row of a table: the label, the times, and the ratio of CPU medians to the floor's."""
    return (*label, *found.row, round(found.row[2] / floor.row[2], 2))
