"""`wellworn connect`: give a coding agent this memory, by adding it to the agent's own settings."""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from wellworn.cli import options, render
from wellworn.cli.target import DEFAULT_DB, Target, command
from wellworn.core.errors import InvalidInput, MissingExtra
from wellworn.core.values import LAYERS
from wellworn.doors.clients import CLIENTS, applied, write

app = typer.Typer()

GLOBAL_DB = Path(".wellworn") / "memory.db"
"""Under the home folder: the memory that all projects share."""


@command(app, "connect", "connect claude-code", panel="Agents")
def connect(
    target: Target,
    client: Annotated[str, typer.Argument(metavar="CLIENT", help=f"One of {', '.join(CLIENTS)}.")],
    everywhere: Annotated[
        bool, typer.Option("--global", "-g", help="For all your projects, not only for this folder.")
    ] = False,
    show: Annotated[bool, typer.Option("--print", help="Print the settings, and change nothing.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Take out what connect added.")] = False,
    llm: options.LlmName = None,
) -> None:
    """Add this memory to the settings of a coding agent: its MCP server, and hooks where the agent has them.

    Nothing that is there is replaced, and --remove restores the files. The memory is ./memory.db of this folder, or
    ~/.wellworn/memory.db with --global, unless --db names another.
    """
    chosen = CLIENTS.get(client)
    if chosen is None:
        raise InvalidInput("CLIENT", f"{client!r} is not known", f"use one of {', '.join(CLIENTS)}")
    project = None if everywhere or not chosen.has_projects else Path.cwd()
    changes = chosen.changes(project, _program(), _options(target, project), llm)
    if show:
        for change in changes:
            render.show(f"# {change.file}", change.shown())
        return
    if not remove and find_spec("mcp") is None:
        raise MissingExtra("an MCP server", "mcp")
    texts = applied(changes, remove=remove)
    write(texts)
    _folder(project is None and target.db == DEFAULT_DB, remove=remove)
    files = sorted({str(change.file) for change in changes})
    did = "Removed from" if remove else "Added to"
    changed = sorted(map(str, texts))
    target.answer({"client": client, "files": files, "changed": changed}, *[f"{did} {file}" for file in changed])
    if not texts:
        target.say("Nothing to change.")
    elif not remove:
        target.say(chosen.then)


def _folder(wanted: bool, *, remove: bool) -> None:
    """The folder of the memory that all projects share; it goes again while nothing is in it."""
    folder = (Path.home() / GLOBAL_DB).parent
    if wanted and not remove:
        folder.mkdir(mode=0o700, exist_ok=True)
    elif wanted:
        with suppress(OSError):
            folder.rmdir()


def _program() -> list[str]:
    """How to start this program from anywhere: with its whole path, because agents have a path of their own."""
    script = Path(sys.executable).with_name("wellworn")
    return [str(script)] if script.exists() else [sys.executable, "-m", "wellworn"]


def _options(target: Target, project: Path | None) -> list[str]:
    """The shared options with which the program finds the same memory from anywhere."""
    given = target.db != DEFAULT_DB or project is not None
    db = Path(target.db).absolute() if given else Path.home() / GLOBAL_DB
    options = {"db": target.db if "://" in target.db else str(db)}
    options |= {layer: str(id) for layer in LAYERS if target.owner is not None and (id := getattr(target.owner, layer))}
    options |= {"tenant": target.scope.tenant, "embedder": target.embedder}
    usual = {"tenant": "default", "embedder": "static"}
    return [part for name, value in options.items() if value != usual.get(name) for part in (f"--{name}", value)]
