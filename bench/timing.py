"""Timing calls that take turns, so that a busy moment of the machine hits all of them alike."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import fmean

import numpy as np

Call = Callable[[int], object]
"""Takes the number of the round, from 0."""


class _Waiting(threading.local):
    """Seconds that this thread was ready to run and had no core, as Linux counts them; 0 elsewhere."""

    def __init__(self) -> None:
        try:
            self._file: int | None = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        except OSError:
            self._file = None

    def __call__(self) -> float:
        return 0.0 if self._file is None else int(os.pread(self._file, 100, 0).split()[1]) / 1e9


waited = _Waiting()


def own_time() -> float:
    """A clock that stands still while others have the core: what a call takes on a machine that is free for it."""
    return time.perf_counter() - waited()


@dataclass(frozen=True, kw_only=True)
class Times:
    """What one call took, round by round, in seconds. `own` is the wall without the wait for a core."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    own: list[float] = field(default_factory=list)

    @property
    def p50_ms(self) -> float:
        return 1000 * float(np.median(self.wall))

    @property
    def p95_ms(self) -> float:
        return 1000 * float(np.percentile(self.wall, 95))

    @property
    def own_p50_ms(self) -> float:
        return 1000 * float(np.median(self.own))

    @property
    def own_p95_ms(self) -> float:
        return 1000 * float(np.percentile(self.own, 95))

    @property
    def mean_ms(self) -> float:
        return 1000 * fmean(self.wall)

    @property
    def cpu_p50_ms(self) -> float:
        return 1000 * float(np.median(self.cpu))

    @property
    def cpu_p99_ms(self) -> float:
        return 1000 * float(np.percentile(self.cpu, 99))

    @property
    def cpu_mean_ms(self) -> float:
        return 1000 * fmean(self.cpu)


def take_turns(
    calls: dict[str, Call], *, rounds: int, warm_up: int = 3, before: Call | None = None
) -> dict[str, Times]:
    """Time each call once a round; every other round in the opposite order, so that none always follows the same.

    `before` begins each round, untimed.
    """
    times = {name: Times() for name in calls}
    for round_ in range(warm_up + rounds):
        if before is not None:
            before(round_)
        order = list(calls) if round_ % 2 else list(reversed(calls))
        for name in order:
            waited_before, wall, cpu = waited(), time.perf_counter(), time.process_time()
            calls[name](round_)
            spent_cpu, spent = time.process_time() - cpu, time.perf_counter() - wall
            waited_in = waited() - waited_before
            if round_ >= warm_up:
                times[name].wall.append(spent)
                times[name].cpu.append(spent_cpu)
                times[name].own.append(spent - waited_in)
    return times


def ratio(times: Times, floor: Times) -> float:
    """How many times the floor's median a call's median is."""
    return times.p50_ms / floor.p50_ms
