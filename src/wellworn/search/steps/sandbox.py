"""Runs programs that a model wrote in a process of their own, with `pydantic-monty`; never with `exec`.

Its interpreter of a small Python has no files, no network and no way to the host but the functions it is given. Time,
memory, depth and calls are limited; whatever a program does, the host gets a `Ran`. Knows no memories or models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import MissingExtra

GRACE_S = 1.0
"""How much longer than its time a program may take before its process is killed."""
_DEPTH = 200
_MOST_PRINTED = 1_000_000
"""Bytes; a program that prints more is ended."""
_LOOKUPS = 200
"""Names that a program may look up, beside its calls."""

Functions = Mapping[str, Callable[..., Any]]  # any JSON values in and out


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


def check_installed() -> Any:  # the module
    """The sandbox's package; `MissingExtra` where there is none."""
    try:
        import pydantic_monty
    except ImportError as error:
        raise MissingExtra("running programs that a model wrote", "repl") from error
    return pydantic_monty


@contextmanager
def sandbox(functions: Functions, *, program_s: float, memory_bytes: int, calls: int) -> Iterator[Callable[[str], Ran]]:
    """One session: what it gives runs a program to its end or its limits. Variables are kept between programs."""
    monty = check_installed()
    pool = monty.Monty(
        max_processes=1,
        request_timeout=program_s + GRACE_S,
        checkout_timeout=program_s + GRACE_S,
        feed_duration_limit_grace=GRACE_S,
    )
    limits = {
        "max_feed_duration_secs": program_s,
        "max_memory": memory_bytes,
        "max_recursion_depth": _DEPTH,
        "max_suspensions": calls + _LOOKUPS,
        "max_total_sleep_secs": 0.0,
    }
    with pool, pool.checkout(limits=limits) as session:
        yield partial(_run, monty, session, dict(functions))


def _run(monty: Any, session: Any, functions: Functions, program: str) -> Ran:  # their module and session
    """Run one program. `Stop` from a function goes through."""
    printed = monty.CollectString(_MOST_PRINTED)
    error, over = "", False
    try:
        state = session.feed_start(program, external_lookup=functions, print_callback=printed)
        while not isinstance(state, monty.MontyComplete):
            ours = isinstance(state, monty.FunctionSnapshot) and not state.is_os_function and state.object_id is None
            state = _answered(state, functions.get(state.function_name) if ours else None)
    except monty.MontyRuntimeError as raised:
        error = raised.display("type-msg")
        over = isinstance(raised.exception(), TimeoutError | MemoryError) or "suspension limit" in error
    except (monty.MontySyntaxError, monty.MontyConversionError) as raised:
        error = str(raised)
    except monty.MontyError as raised:  # its process is gone
        error, over = f"{type(raised).__name__}: the program's process was ended", True
    return Ran(printed=printed.output, error=error, over=over)


def _answered(state: Any, function: Callable[..., Any] | None) -> Any:  # their snapshots
    """The next state after a program waited: for a function of ours, or for what the sandbox decides itself."""
    if function is None:
        return state.resume_auto()
    try:
        answer = {"return_value": function(*state.args, **state.kwargs)}
    except (TypeError, ValueError, RuntimeError) as error:  # the program's own fault: it may go on
        answer = {"exception": RuntimeError(f"{type(error).__name__}: {error}")}
    return state.resume(answer)
