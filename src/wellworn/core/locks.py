"""A lock that a forked child does not inherit as held; and how long the present call may wait for locks."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType

_until: ContextVar[float] = ContextVar("wellworn_patience", default=float("inf"))


@contextmanager
def patience(seconds: float) -> Iterator[None]:
    """Let everything in the block wait for locks no longer than this in all; what comes too late raises `StoreBusy`."""
    token = _until.set(min(_until.get(), time.monotonic() + seconds))
    try:
        yield
    finally:
        _until.reset(token)


def patience_left(most_s: float) -> float:
    """Seconds that the present call may still wait, at most so many."""
    return max(0.0, min(most_s, _until.get() - time.monotonic()))


class ForkLock:
    """Like `threading.Lock` in a `with`; a child of a fork begins with a free one, whoever held it in the parent."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        if os.getpid() != self._pid:
            self._pid, self._lock = os.getpid(), threading.Lock()
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()
