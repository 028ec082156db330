"""Runs programs that a model wrote in a process of their own, with `pydantic-monty`; never with `exec`.

Its interpreter of a small Python has no files, no network and no way to the host but the functions it is given. Time,
memory, depth and calls are limited; whatever a program does, the host gets a `Ran`. Knows no memories or models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from wellworn.core.errors import MissingExtra

GRACE_S = 1.0
"""How much longer than its time a program may take before its process is killed."""
_DEPTH = 200
_MOST_PRINTED = 1_000_000
"""Bytes; a program that prints more is ended."""
_LOOKUPS = 200
"""Names that a program may look up, beside its calls."""
_ENDS = (TimeoutError, MemoryError)
"""After these the session is of no use."""

Function = Callable[..., Any]  # any JSON values in and out


def check_installed() -> None:
    """`MissingExtra` where there is no sandbox."""
    try:
        import pydantic_monty  # noqa: F401
    except ImportError as error:
        raise MissingExtra("running programs that a model wrote", "repl") from error


class Stop(Exception):
    """Raised by a function to end the program at once; the program cannot catch it."""


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What a program did."""

    printed: str
    error: str = ""
    """The program's mistake, as a model may be shown it."""
    over: bool = False
    """Whether the session cannot continue."""


class Sandbox:
    """One session in a `with`: variables are kept from one program to the next."""

    def __init__(self, functions: Mapping[str, Function], *, program_s: float, memory_bytes: int, calls: int) -> None:
        check_installed()
        import pydantic_monty

        self._monty = pydantic_monty
        self._functions = dict(functions)
        self._pool = pydantic_monty.Monty(
            max_processes=1,
            request_timeout=program_s + GRACE_S,
            checkout_timeout=GRACE_S + program_s,
            feed_duration_limit_grace=GRACE_S,
        )
        self._limits: pydantic_monty.ResourceLimits = {
            "max_feed_duration_secs": program_s,
            "max_memory": memory_bytes,
            "max_recursion_depth": _DEPTH,
            "max_suspensions": calls + _LOOKUPS,
            "max_total_sleep_secs": 0.0,
        }
        self._session: Any = None  # of their own class, made on entry

    def __enter__(self) -> Sandbox:
        self._pool.__enter__()
        try:
            self._session = self._pool.checkout(limits=self._limits).__enter__()
        except BaseException:
            self._pool.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._session.__exit__(None, None, None)
        finally:
            self._pool.__exit__(None, None, None)

    def run(self, program: str) -> Ran:
        """Run a program to its end, or to its limits. `Stop` from a function goes through."""
        monty = self._monty
        printed = monty.CollectString(_MOST_PRINTED)
        error, over = "", False
        try:
            state = self._session.feed_start(program, external_lookup=self._functions, print_callback=printed)
            while not isinstance(state, monty.MontyComplete):
                state = self._answered(state)
        except monty.MontyRuntimeError as raised:
            error = raised.display("type-msg")
            over = isinstance(raised.exception(), _ENDS) or "suspension limit" in error
        except (monty.MontySyntaxError, monty.MontyConversionError) as raised:
            error = str(raised)
        except monty.MontyError as raised:  # its process is gone
            error, over = f"{type(raised).__name__}: the program's process was ended", True
        return Ran(printed=printed.output, error=error, over=over)

    def _answered(self, state: Any) -> Any:  # snapshots of theirs
        """The next state after a program waited: for a function of ours, or for what the sandbox decides itself."""
        ours = isinstance(state, self._monty.FunctionSnapshot) and not state.is_os_function and state.object_id is None
        function = self._functions.get(state.function_name) if ours else None
        if function is None:
            return state.resume_auto()
        try:
            answer = {"return_value": function(*state.args, **state.kwargs)}
        except (TypeError, ValueError, RuntimeError) as error:  # the program's own fault, or bad luck: it may go on
            answer = {"exception": RuntimeError(f"{type(error).__name__}: {error}")}
        return state.resume(answer)
