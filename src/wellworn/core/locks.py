"""A lock that a forked child does not inherit as held; and how long the present call may take, or wait for locks."""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import TypeVar

T = TypeVar("T")
SHARE = 0.5
"""Of the time that is left until a deadline, for any one thing that may be left out."""

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


def in_haste() -> bool:
    """Whether the present call has limited patience: an agent waits for it."""
    return _until.get() < float("inf")


class TakesTime(Exception):
    """What was asked for takes time, and whoever asked cannot wait."""


@contextmanager
def at_once() -> Iterator[None]:
    """Do only what takes next to no time: whatever comes to `take_time` raises `TakesTime` before it has done anything."""
    token = _at_once.set(True)
    try:
        yield
    finally:
        _at_once.reset(token)


_at_once: ContextVar[bool] = ContextVar("wellworn_at_once", default=False)


def take_time() -> None:
    """Say that what follows may compute, or wait."""
    if _at_once.get():
        raise TakesTime


def started(work: Callable[[], T]) -> queue.SimpleQueue[T | Exception]:
    """Begin work on a daemon thread, in the caller's context; its result, or its error, comes through the queue."""
    box: queue.SimpleQueue[T | Exception] = queue.SimpleQueue()

    def run() -> None:
        try:
            box.put(work())
        except Exception as error:  # passed on to the thread that waits
            box.put(error)

    threading.Thread(target=copy_context().run, args=(run,), daemon=True).start()
    return box


class Deadline:
    """The moment by which the present call answers, with what it has by then."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self.missed = False
        """Whether anything was left out because of it."""

    def left_s(self, *, whole: bool = False) -> float:
        """Seconds for one thing that may be left out; `whole`: until the deadline itself."""
        left_s = (1.0 if whole else SHARE) * (self._until - time.monotonic())
        return max(0.0, min(left_s, threading.TIMEOUT_MAX))

    def answer(self, work: Callable[[], T]) -> T | None:
        """The result of the whole call, whose parts find this deadline by `deadline()`; None when it is late."""
        token = _deadline.set(self)
        try:
            return self.wait_for(work, whole=True)
        finally:
            _deadline.reset(token)

    def wait_for(self, work: Callable[[], T], *, whole: bool = False) -> T | None:
        """The result of work that may take long; None when it is late. It goes on all the same."""
        try:
            result = started(work).get(timeout=self.left_s(whole=whole))
        except queue.Empty:
            self.missed = True
            return None
        if isinstance(result, Exception):
            raise result
        return result


_deadline: ContextVar[Deadline | None] = ContextVar("wellworn_deadline", default=None)
deadline = _deadline.get
"""The deadline of the present call; None without one."""


def process_runs(pid: int) -> bool:
    """Whether there is a process of this number. On Windows, where asking would end it, every one counts as running."""
    if sys.platform == "win32":
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


def fork_lock() -> threading.Lock:
    """A `threading.Lock`; a child of a fork begins with a free one, whoever held it in the parent."""
    lock = threading.Lock()
    _locks.add(lock)
    return lock


_locks: weakref.WeakSet[threading.Lock] = weakref.WeakSet()


def _set_free() -> None:
    for lock in [*_locks]:
        if lock.locked():
            lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_set_free)
