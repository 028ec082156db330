"""The command line: parse, call the facade, render.

One module per group of commands. `target` turns the shared options into a memory and a scope, `edge` turns errors into
exit codes, `render` turns values into tables or JSON. Results go to standard output, remarks to standard error. Heavy
modules load inside the commands, so that `wellworn --help` answers at once.
"""

from __future__ import annotations

from wellworn.cli.app import app, main

__all__ = ["app", "main"]
