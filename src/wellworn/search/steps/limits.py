"""Hard limits of a recursive recall, and the meter that keeps them."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TypeVar

from wellworn.core.errors import InvalidInput

DEEPEST = 3

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one recall may use on the recursive route. What was found when a limit is met is kept."""

    actions: int = 16
    tokens: int = 50_000
    """Of the texts that are read on the way, and of model calls."""
    usd: float = 0.05
    """For planners that call models; plans by rules cost nothing."""
    timeout_s: float = 1.0
    depth: int = DEEPEST

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
                raise InvalidInput(f"limits.{each.name}", f"{value!r} is not a number of at least 0")
        if self.depth > DEEPEST:
            raise InvalidInput("limits.depth", f"{self.depth} is too deep", f"use at most {DEEPEST}")


class LimitMet(Exception):
    """Inside only: stop here and keep what there is."""


class Meter:
    """Counts what is used."""

    def __init__(self, limits: Limits, now: Callable[[], float] = time.perf_counter) -> None:
        self.limits = limits
        self._now = now
        self._began = now()
        self.actions = 0
        self.tokens = 0
        self.usd = 0.0

    @property
    def seconds(self) -> float:
        return self._now() - self._began

    def begin_action(self) -> None:
        """One more action; refused beyond any limit."""
        self.check()
        if self.actions >= self.limits.actions:
            raise LimitMet(f"{self.limits.actions} actions")
        self.actions += 1

    def spend(self, *, tokens: int = 0, usd: float = 0.0) -> None:
        """Ask for tokens and money before they are used; what does not fit is not spent."""
        if self.tokens + tokens > self.limits.tokens:
            raise LimitMet(f"{self.limits.tokens} tokens")
        if self.usd + usd > self.limits.usd:
            raise LimitMet(f"{self.limits.usd} USD")
        self.tokens += tokens
        self.usd += usd

    def give_back(self, *, tokens: int = 0, usd: float = 0.0) -> None:
        """What was asked for and not used; less than nothing where more was used."""
        self.tokens -= tokens
        self.usd -= usd

    def begin(self) -> None:
        """Count time from now: a plan by a model has a deadline of its own."""
        self._began = self._now()

    def check(self, *, ahead_s: float = 0.0) -> None:
        """Refuse to go on after the deadline, or with what takes until then, as far as can be foretold."""
        if self.seconds + ahead_s >= self.limits.timeout_s:
            raise LimitMet(f"{self.limits.timeout_s} s")

    def within(self, work: Callable[[], T]) -> T:
        """What somebody's code gives, if it does so before the deadline; else it is left behind on its thread."""
        self.check()
        done: queue.SimpleQueue[Callable[[], T]] = queue.SimpleQueue()

        def run() -> None:
            try:
                value = work()
            except Exception as error:  # over to the thread that waits
                raised = error

                def again() -> T:
                    raise raised

                done.put(again)
            else:
                done.put(lambda: value)

        threading.Thread(target=run, daemon=True).start()
        try:
            told = done.get(timeout=max(self.limits.timeout_s - self.seconds, 0.0))
        except queue.Empty:
            raise LimitMet(f"{self.limits.timeout_s} s") from None
        return told()
