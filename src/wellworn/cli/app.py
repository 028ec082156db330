"""The `wellworn` program: its commands gathered, its version, its way out."""

from __future__ import annotations

import sys
from importlib.metadata import version as installed_version
from typing import Annotated

import typer

from wellworn.cli import bank, care, chat, hook, learn, read, reflect, session, tour, write
from wellworn.cli.guard import INTERRUPTED, utf8_streams
from wellworn.cli.target import with_shared_options

app = typer.Typer(
    name="wellworn",
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
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Memory for AI agents: remember, recall, forget.

    Works at once: without options, memories are kept in ./memory.db for tenant "default" and user "me".

    The options under "Which memory" may stand before or after the command.
    """


for verbs in (write.app, read.app, learn.verbs, reflect.verbs, care.app, chat.app, tour.app):
    app.add_typer(verbs)
app.add_typer(session.app, name="session")
app.add_typer(learn.app, name="learn")
app.add_typer(reflect.jobs, name="jobs")
app.add_typer(bank.app, name="bank")
app.add_typer(hook.app, name="hook")


def main() -> None:
    """Run the program and leave with its exit code: 0 done, 1 not found or flaws, 2 bad input, 130 interrupted."""
    utf8_streams()
    try:
        app(prog_name="wellworn")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
