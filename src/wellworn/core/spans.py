"""Spans: a recall, a write, a reflection, a model call or a job, told to whoever listens while it happens.

Nobody listens by default, and then a span costs nothing. A span tells ids and counts, never text. Traces
(`integrations.otel`) and the metrics of the service listen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Protocol

Fact = str | int | float | bool | None


class Note(Protocol):
    """Tells facts of the span that is open."""

    def __call__(self, **facts: Fact) -> None: ...


Listener = Callable[[str], AbstractContextManager[Note]]
"""Opens a span of this name, which lasts as long as the block."""
_listeners: tuple[Listener, ...] = ()


def listen(listener: Listener) -> Callable[[], None]:
    """Tell a listener of every span of this process, until the function that this returns is called."""
    global _listeners
    _listeners = (*_listeners, listener)

    def stop() -> None:
        global _listeners
        _listeners = tuple(one for one in _listeners if one is not listener)

    return stop


def span(name: str) -> AbstractContextManager[Note]:
    """A span of what the block does: `recall`, `remember`, `session_end`, `reflect`, `outcome`, `model_call` or `job`."""
    if not _listeners:
        return _SILENT
    return _listeners[0](name) if len(_listeners) == 1 else _open(name)


@contextmanager
def _open(name: str) -> Iterator[Note]:
    with ExitStack() as stack:
        notes = [stack.enter_context(listener(name)) for listener in _listeners]

        def note(**facts: Fact) -> None:
            for one in notes:
                one(**facts)

        yield note


_SILENT = nullcontext[Note](lambda **_facts: None)
