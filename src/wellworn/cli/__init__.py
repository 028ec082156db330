"""The command line: parse, call the facade, render.

One module a group of verbs (`write`, `read`, `session`, `care`, `learn`, `evals`); `target` turns shared options into
a memory and a scope, `render` turns values into JSON or tables, `chart` draws. Results go to standard output, the rest
to standard error. Heavy modules load inside the commands, so that `wellworn --help` answers at once.
"""

from __future__ import annotations

from wellworn.cli.app import app, main

__all__ = ["app", "main"]
