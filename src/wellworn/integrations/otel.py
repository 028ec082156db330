"""OpenTelemetry traces over the loop: recall, remember, end of session, reflect, outcome, model calls, jobs.

Needs `pip install 'wellworn[otel]'`, which is the API alone; where spans go is the business of the SDK that the program
configures. Spans carry ids and counts, and of an error its type: never text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING

from wellworn.core.errors import MissingExtra
from wellworn.core.spans import Fact, Note, listen

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

_CONVENTION = {
    "model": "gen_ai.request.model",
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "session": "session.id",
}
"""Facts that OpenTelemetry has a name for; the others are `wellworn.NAME`."""


def start_tracing(provider: TracerProvider | None = None) -> Callable[[], None]:
    """Trace every memory of this process, with the global provider unless one is given. Call the result to stop."""
    try:
        from opentelemetry.trace import StatusCode, get_tracer
    except ImportError:
        raise MissingExtra("tracing", "otel") from None
    tracer = get_tracer("wellworn", version("wellworn"), provider)

    @contextmanager
    def opened(name: str) -> Iterator[Note]:
        # Not as OpenTelemetry records exceptions: their messages may quote a memory.
        with tracer.start_as_current_span(
            f"wellworn.{name}", record_exception=False, set_status_on_exception=False
        ) as current:

            def note(**facts: Fact) -> None:
                for fact, value in facts.items():
                    if value is not None:
                        current.set_attribute(_CONVENTION.get(fact, f"wellworn.{fact}"), value)

            try:
                yield note
            except BaseException as error:
                current.set_attribute("error.type", type(error).__name__)
                current.set_status(StatusCode.ERROR)
                raise

    return listen(opened)
