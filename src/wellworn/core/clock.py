"""Time, randomness and ids as parameters, so that every run can be repeated.

Knows nothing about entries. `Clock` and `NewId` are plain callables; the defaults are the system's.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from wellworn.core.locks import fork_lock

Clock = Callable[[], datetime]
NewId = Callable[[], str]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def system_clock() -> datetime:
    """The current time, with a zone."""
    return datetime.now(UTC)


def aware(clock: Clock) -> Clock:
    """The clock with its answers in UTC; one that tells no zone is taken to tell UTC."""

    def tell() -> datetime:
        moment = clock()
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)

    return clock if clock is system_clock or isinstance(clock, SteadyClock) else tell


STEP_BACK = timedelta(days=1)


class SteadyClock:
    """A clock that does not go back: a step back of less than a day is waited out, so that what was just written is
    not in the future. A larger step is believed: the clock was wrong before."""

    def __init__(self, clock: Clock, last: datetime) -> None:
        self._clock = aware(clock)
        self._last = last

    def __call__(self) -> datetime:
        now = self._clock()
        if not self._last - STEP_BACK < now < self._last:
            self._last = now
        return self._last


_last = (EPOCH, 0)
"""The last moment that was asked for: everything that one call writes has the same."""


def to_micros(moment: datetime) -> int:
    """Microseconds since 1970, exact (no float in between)."""
    global _last
    last, micros = _last
    if moment is not last:
        micros = (moment - EPOCH) // _MICROSECOND
        _last = moment, micros
    return micros


def from_micros(micros: int) -> datetime:
    """The inverse of `to_micros`."""
    return EPOCH + timedelta(0, 0, micros)


_62_BITS = (1 << 62) - 1
_AT_ONCE = 100
"""Random numbers that are drawn at once: to ask the system takes longer than all else."""


class TimeOrderedIds:
    """UUID version 7: 48 bits of milliseconds, then a counter, then randomness.

    Ids of one process sort in the order they were made, so the id index of a store grows at its end.
    """

    def __init__(self) -> None:
        self._lock = fork_lock()
        self._last_ms = 0
        self._counter = 0
        self._chances: list[int] = []
        self._pid = 0

    def __call__(self) -> str:
        with self._lock:
            if not self._chances or self._pid != os.getpid():  # a child of a fork must not make the ids of its parent
                drawn = os.urandom(10 * _AT_ONCE)
                self._chances = [int.from_bytes(drawn[at : at + 10], "big") for at in range(0, len(drawn), 10)]
                self._pid = os.getpid()
            chance = self._chances.pop()
            now_ms = time.time_ns() // 1_000_000
            if now_ms > self._last_ms:
                self._last_ms, self._counter = now_ms, chance >> 69
            else:
                self._counter += 1
                if self._counter >> 12:
                    self._last_ms, self._counter = self._last_ms + 1, 0
            stamp, counter = self._last_ms, self._counter
        digits = f"{stamp & 0xFFFFFFFFFFFF:012x}7{counter:03x}{0b10 << 62 | chance & _62_BITS:016x}"
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
