"""What went wrong with memory, logged and counted: never a reason for the agent to fail."""

from __future__ import annotations

import logging
from collections import Counter
from types import TracebackType

from wellworn.core.locks import ForkLock

_logger = logging.getLogger("wellworn.integrations.langchain")


class Faults:
    """Counts by step. Safe between threads."""

    def __init__(self) -> None:
        self._lock = ForkLock()
        self._counts: Counter[str] = Counter()

    @property
    def counts(self) -> Counter[str]:
        with self._lock:
            return self._counts.copy()

    def note(self, step: str, why: str) -> None:
        """Log and count one."""
        with self._lock:
            self._counts[step] += 1
        _logger.warning("memory failed to %s (%s); the agent goes on", step, why)

    def guarded(self, step: str) -> _Guard:
        """A block of which whatever goes wrong inside is noted and goes no further. No model of the agent is called
        inside one, and nothing of the graph's own control flow passes it."""
        return _Guard(self, step)


class _Guard:
    def __init__(self, faults: Faults, step: str) -> None:
        self._faults = faults
        self._step = step

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if kind is None or not issubclass(kind, Exception):
            return False
        self._faults.note(self._step, kind.__name__)  # the kind only: a message may quote a text
        return True
