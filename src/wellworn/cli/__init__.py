"""The command line: parse, call the facade, render.

One module per group of commands. `target` turns the shared options into a memory and a scope, `edge` turns errors into
exit codes, `render` turns values into tables or JSON. Results go to standard output, remarks to standard error. Heavy
modules load inside the commands, so that `wellworn --help` answers at once; a hook beside a server of its memory (`ask`)
loads none at all.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import typer

    app: typer.Typer

__all__ = ["app", "main"]


def main() -> None:
    """Run the program and exit with its code."""
    try:
        if sys.argv[1:2] == ["hook"]:
            from wellworn.cli.ask import served

            if served(sys.argv[2:]):
                return

        from wellworn.cli.edge import utf8_streams
        from wellworn.cli.program import run

        utf8_streams()
        run()
    except KeyboardInterrupt:
        from wellworn.cli.edge import INTERRUPTED

        sys.exit(INTERRUPTED)


def __getattr__(name: str) -> object:
    """`app`, the whole program, is built when it is asked for."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from wellworn.cli.program import program

    return program()
