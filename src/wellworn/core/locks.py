"""A lock that a forked child does not inherit as held."""

from __future__ import annotations

import os
import threading
from types import TracebackType


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
