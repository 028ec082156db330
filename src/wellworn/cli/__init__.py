"""The command line: parse, call the facade, render.

One module per group of commands. `target` turns the shared options into a memory and a scope, `edge` turns errors into
exit codes, `render` turns values into tables or JSON. Results go to standard output, remarks to standard error. Heavy
modules load inside the commands, so that `wellworn --help` answers at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wellworn.cli.program import main, program

if TYPE_CHECKING:
    import typer

    app: typer.Typer

__all__ = ["app", "main"]


def __getattr__(name: str) -> object:
    """`app`, the whole program, is built when it is asked for."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return program()
