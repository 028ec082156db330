"""The command line: parse, call the facade, render.

One module per group of commands. `target` turns the shared options into a memory and a scope, `edge` turns errors into
exit codes, `render` turns values into tables or JSON. Results go to standard output, remarks to standard error. Heavy
modules load inside the commands, so that `wellworn --help` answers at once; what agents start (`agents`) does without
the parser.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import typer

    app: typer.Typer

__all__ = ["app", "main"]


def main() -> None:
    """Run the program and exit with its code."""
    from wellworn.cli.agents import run_line
    from wellworn.cli.edge import INTERRUPTED, utf8_streams

    utf8_streams()
    try:
        if run_line(sys.argv[1:]):
            os._exit(0)  # all is closed and flushed, and taking apart what was imported is a thirtieth of a hook

        from wellworn.cli.program import run

        run()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def __getattr__(name: str) -> object:
    """`app`, the whole program, is built when it is asked for."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from wellworn.cli.program import program

    return program()
