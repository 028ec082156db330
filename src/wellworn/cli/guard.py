"""The edge of the process: every error becomes one line and an exit code, never a traceback."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import ParamSpec

import typer

from wellworn.core.errors import NotFound, WellwornError

FAILED = 1
REFUSED = 2
INTERRUPTED = 130  # 128 + SIGINT, as shells have it

P = ParamSpec("P")


def guarded(command: Callable[P, None]) -> Callable[P, None]:
    """The command with its errors told on standard error."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
            sys.stdout.flush()  # here, not at exit, so that a closed pipe is met inside the guard
        except WellwornError as error:
            _leave(str(error), FAILED if isinstance(error, NotFound) else REFUSED)
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            _ignore_output()
            raise typer.Exit(FAILED) from None
        except OSError as error:
            _leave(f"{error.filename or 'input/output'}: {error.strerror or error}", REFUSED)

    return run


def utf8_streams() -> None:
    """Write UTF-8 whatever the locale says, and never fail on a character."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="backslashreplace")


def _leave(message: str, code: int) -> None:
    typer.echo(f"wellworn: {' '.join(message.split())}", err=True)
    raise typer.Exit(code)


def _ignore_output() -> None:
    """Point standard output at nothing, so that the interpreter's last flush stays quiet."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
