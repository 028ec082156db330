"""The `wellworn` program: its commands in groups, its version, its exit codes.

A command loads only the group it is in.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from wellworn import __version__
from wellworn.cli.edge import REFUSED, print_error
from wellworn.cli.options import EVERYDAY, flag, with_shared_options
from wellworn.cli.target import SHARED
from wellworn.core.dataclass import dataclass
from wellworn.core.wellformed import not_a_number

GROUPS = "More"
FIRST = "remember recall chat show list edit forget outcome session reflect doctor demo".split()  # noqa: SIM905
"""The order of the everyday commands in the help."""


class Program(TyperGroup):
    """The root command: it reports misuse as JSON under --json, and says which option was meant."""

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
            print_error(error, message() or "needs a command", as_json=True)
            code = REFUSED
        sys.exit(code if isinstance(code, int) else 0)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta["json"] = "--json" in args  # for --version, which is read before any other option
        found: list[str] = super().parse_args(ctx, args)
        return found

    def invoke(self, ctx: Any) -> Any:  # as the base class
        try:
            return super().invoke(ctx)
        except Exception as error:
            name = getattr(error, "option_name", None) or ""
            if hasattr(error, "possibilities") and name[2:] in {*SHARED, "json"}:  # only a group does not take it
                error.message = f"{name} stands before the group, or after its command"  # type: ignore[attr-defined]
            faults: list[Any] = getattr(
                error.__cause__, "errors", list
            )()  # of pydantic, which newer versions of typer use
            if faults and (problem := not_a_number(faults[0])):
                error.message = problem  # type: ignore[attr-defined]
            raise

    def list_commands(self, ctx: Any) -> list[str]:
        first = [name for name in FIRST if name in self.commands]
        return [*first, *(name for name in self.commands if name not in FIRST)]


def _version(ctx: typer.Context, wanted: bool) -> None:
    if wanted:
        typer.echo(json.dumps({"version": __version__}) if ctx.meta["json"] else f"wellworn {__version__}")
        raise typer.Exit


@with_shared_options
def root(
    version: Annotated[
        bool, flag("--version", "Print the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Memory for AI agents that gets better with use.

    It works at once: memories are kept in ./memory.db for user "me". Start with `wellworn demo`.

    The options under "Which memory" may stand before or after any command. Ids may be shortened to their beginning.

    Exit codes: 0 done; 1 not found, or problems remain; 2 bad input, or a store or model failed; 130 interrupted.
    """


def _root() -> typer.Typer:
    app = typer.Typer(
        name="wellworn",
        cls=Program,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog='Example: wellworn remember "Ada prefers tokio." && wellworn recall "which runtime does Ada like?"',
    )
    app.callback()(root)
    return app


@dataclass(frozen=True)
class Part:
    """A group of commands: where it is defined, and what it is called. Without a name its commands stand on top."""

    module: str
    attribute: str
    commands: tuple[str, ...] = ()
    name: str = ""
    panel: str | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """The words that lead to it."""
        return (self.name,) if self.name else self.commands


ENTRIES = (
    *("remember", "edit", "forget", "outcome", "link", "unlink", "supersede"),
    *("recall", "show", "get", "list", "assemble", "reason"),
)
PARTS = (
    Part("entries", "app", ENTRIES),
    Part("session", "verbs", ("reflect", "chat")),
    Part("admin", "verbs", ("doctor", "import", "move")),
    Part("demo", "app", ("demo",)),
    Part("connect", "app", ("connect", "mcp")),
    Part("session", "app", name="session", panel=EVERYDAY),
    Part("upkeep", "learning", name="learning", panel=GROUPS),
    Part("tasks", "app", name="tasks", panel=GROUPS),
    Part("upkeep", "jobs", name="jobs", panel=GROUPS),
    Part("admin", "app", name="admin", panel=GROUPS),
    Part("admin", "backup_app", name="backup", panel=GROUPS),
    Part("connect", "hooks", name="hook", panel=GROUPS),
    Part("serve", "app", ("serve",)),
    Part("serve", "keys", name="keys", panel="Service"),
)


@cache
def program(word: str | None = None) -> typer.Typer:
    """The whole program, or only the part that a command is in: the others take longer to load than it takes to run."""
    app = _root()
    for part in PARTS:
        if word is None or word in part.words:
            commands = getattr(import_module(f"wellworn.cli.{part.module}"), part.attribute)
            if part.name:
                app.add_typer(commands, name=part.name, rich_help_panel=part.panel)
            else:
                app.add_typer(commands)
    return app


def command_word(args: Sequence[str]) -> str | None:
    """The command in a line of arguments; None if it is not clear, or not one of ours."""
    words = iter(args)
    for word in words:
        if word.startswith("--") and word[2:].partition("=")[0] in SHARED:
            if "=" not in word:
                next(words, None)
        elif word != "--json":
            return word if any(word in part.words for part in PARTS) else None
    return None


def run() -> None:
    """Run the program and exit with its code."""
    program(command_word(sys.argv[1:]))(prog_name="wellworn")
