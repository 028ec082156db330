"""The `wellworn` program: its commands in groups, its version, its exit codes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.metadata import version as installed_version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from wellworn.cli import admin, chat, connect, demo, hook, jobs, learning, mcp, read, serve, session, tasks, write
from wellworn.cli.edge import INTERRUPTED, REFUSED, print_error, utf8_streams
from wellworn.cli.target import with_shared_options

GROUPS = "More"
FIRST = [
    "remember",
    "recall",
    "chat",
    "show",
    "list",
    "edit",
    "forget",
    "outcome",
    "session",
    "reflect",
    "doctor",
    "demo",
]
"""The order of the everyday commands in the help."""


class Program(TyperGroup):
    """The root command: it reports misuse as JSON under --json."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **options: Any) -> Any:  # as the base class
        given = list(sys.argv[1:] if args is None else args)
        if "--json" not in given or not options.pop("standalone_mode", True):
            return super().main(given, *rest, **options)
        try:
            code = super().main(given, *rest, **{**options, "standalone_mode": False})
        except typer.Abort as error:
            print_error(error, "aborted", as_json=True)
            code = REFUSED
        except Exception as error:
            message = getattr(error, "format_message", None)  # click's own errors; anything else is a bug
            if message is None:
                raise
            print_error(error, message(), as_json=True)
            code = REFUSED
        sys.exit(code if isinstance(code, int) else 0)

    def list_commands(self, ctx: Any) -> list[str]:
        return [*FIRST, *(name for name in self.commands if name not in FIRST)]


app = typer.Typer(
    name="wellworn",
    cls=Program,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog='Example: wellworn remember "Ada prefers tokio." && wellworn recall "which runtime does Ada like?"',
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"wellworn {installed_version('wellworn')}")
        raise typer.Exit


@app.callback()
@with_shared_options
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Memory for AI agents that gets better with use.

    It works at once: memories are kept in ./memory.db for user "me". Start with `wellworn demo`.

    The options under "Which memory" may stand before or after any command. Ids may be shortened to their beginning.

    Exit codes: 0 done; 1 not found, or problems remain; 2 bad input, or a store or model failed; 130 interrupted.
    """


for verbs in (write.app, read.app, chat.app, session.verbs, admin.verbs, demo.app, connect.app, mcp.app):
    app.add_typer(verbs)
app.add_typer(session.app, name="session", rich_help_panel=read.EVERYDAY)
app.add_typer(learning.app, name="learning", rich_help_panel=GROUPS)
app.add_typer(tasks.app, name="tasks", rich_help_panel=GROUPS)
app.add_typer(jobs.app, name="jobs", rich_help_panel=GROUPS)
app.add_typer(admin.app, name="admin", rich_help_panel=GROUPS)
app.add_typer(admin.backup_app, name="backup", rich_help_panel=GROUPS)
app.add_typer(hook.app, name="hook", rich_help_panel=GROUPS)
app.add_typer(serve.app)
app.add_typer(serve.keys, name="keys", rich_help_panel=serve.SERVICE)


def main() -> None:
    """Run the program and exit with its code."""
    utf8_streams()
    try:
        app(prog_name="wellworn")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
