"""Memory inside other people's frameworks. Each file bears the name of its framework, which is an extra.

Here is what they share: faults that never reach the agent, methods for event loops.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, ParamSpec, TypeVar, cast

from wellworn.core.errors import InvalidInput
from wellworn.core.locks import fork_lock, patience
from wellworn.core.wellformed import clean_text
from wellworn.ingest.validate import MAX_TEXT_BYTES
from wellworn.memory import Memory

P = ParamSpec("P")
T = TypeVar("T")

WAIT_S = {"start": 0.65, "store": 0.65, "recall": 0.2, "show": 0.2, "learn": 0.2, "reflect": 0.2, "call": 1.9}
"""How long each step of a turn may wait for a locked file: less than two seconds in all. A LangChain turn begins and ends
with a `start`, which includes the last `store` and `reflect`. `call` is one call of a tool or a store."""

CUT = "… (cut)"
"""Ends a text that was too long to be stored."""

_logger = logging.getLogger("wellworn.integrations")


class Faults:
    """Logs and counts what went wrong with memory, by step, so that the agent continues without it.

    Only the kind of an error is logged, since a message may quote private text. Safe to share between threads.
    """

    def __init__(self) -> None:
        self._lock = fork_lock()
        self._counts: Counter[str] = Counter()

    @property
    def counts(self) -> Counter[str]:
        with self._lock:
            return self._counts.copy()

    def note(self, step: str, reason: str, remedy: str = "") -> None:
        """Log and count one fault."""
        with self._lock:
            self._counts[step] += 1
        advice = f"; {remedy}" if remedy else ""
        _logger.warning("memory failed to %s (%s); the agent continues without it%s", step, reason, advice)

    def guarded(self, step: str) -> AbstractContextManager[None, bool]:
        """Note any exception raised inside the block and stop it there. Never call the agent's model inside."""
        return cast("AbstractContextManager[None, bool]", self._guard(step))  # True: it stops exceptions

    @contextmanager
    def _guard(self, step: str) -> Iterator[None]:
        try:
            with patience(WAIT_S.get(step, float("inf"))):
                yield
        except Exception as error:
            self.note(step, type(error).__name__, error.remedy if isinstance(error, InvalidInput) else "")


class CountsFaults:
    """Something that goes on when its memory fails."""

    _faults: Faults

    @property
    def faults(self) -> Counter[str]:
        """How often memory failed so far, by step: `recall`, `store`; of a loop `learn` and `reflect` too."""
        return self._faults.counts


def off_loop(method: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Return the method as a coroutine function that runs it on a thread, so that an event loop is never held up."""

    @functools.wraps(method)
    async def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.to_thread(method, *args, **kwargs)

    return call


def storable(text: str) -> str:
    """Return the text as every store takes it: cleaned, and cut where it is too long."""
    text = clean_text(text)
    encoded = text.encode()
    if len(encoded) <= MAX_TEXT_BYTES:
        return text
    return encoded[: MAX_TEXT_BYTES - len(CUT.encode())].decode(errors="ignore") + CUT


def checked_memory(memory: object) -> Memory:
    if not isinstance(memory, Memory):
        raise InvalidInput("memory", f"must be a Memory, not {type(memory).__name__}", "use Memory(…)")
    return memory
