"""`wellworn connect`: give a coding agent this memory, by adding it to the agent's own settings; and what it then starts,
`wellworn hook` and `wellworn mcp`, as a person calls them. What these do is in `agents`."""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from wellworn.cli import agents, options
from wellworn.cli.ask import DEFAULT_DB, FOLDER
from wellworn.cli.options import argument, command, flag
from wellworn.cli.target import Target
from wellworn.core.errors import InvalidInput, MissingExtra
from wellworn.core.lazy import regex
from wellworn.core.values import LAYERS
from wellworn.doors.clients import CLIENTS, applied, write

app = typer.Typer()

IGNORED = "*\n"
"""What .gitignore says beside a memory: nothing of this folder is committed, the file itself included."""
_MODEL = regex(r"rules|(?:openai|ollama|anthropic|scripted):.*\S.*")
"""Models by name, where nothing has to be loaded to know them."""


@command(app, "connect", "connect claude-code", panel="Agents")
def connect(
    target: Target,
    client: Annotated[str, argument("CLIENT", f"One of {', '.join(CLIENTS)}.")],
    everywhere: Annotated[bool, flag("--global -g", "For all your projects, not only for this folder.")] = False,
    show: Annotated[bool, flag("--print", "Print the settings, and change nothing.")] = False,
    remove: Annotated[bool, flag("--remove", "Take out what connect added.")] = False,
    llm: options.LlmName = None,
) -> None:
    """Add this memory to the settings of a coding agent: its MCP server, and hooks where the agent has them.

    Nothing that is there is replaced, and --remove restores the files. The memory is ./memory.db if there is one, else
    .wellworn/memory.db, which git ignores, or ~/.wellworn/memory.db with --global, unless --db names another.
    """
    chosen = CLIENTS.get(client)
    if chosen is None:
        raise InvalidInput("CLIENT", f"{client!r} is not known", f"use one of {', '.join(CLIENTS)}")
    if llm and not remove and not _MODEL.fullmatch(llm):
        from wellworn.models.choose import choose_model  # takes time to import

        choose_model(llm)  # it refuses names that it does not know
    project = None if everywhere or not chosen.has_projects else Path.cwd()
    ours = (project or Path.home()) / FOLDER / DEFAULT_DB
    place = ours if remove else _place(target, project)
    changes = chosen.changes(project, _program(), _options(target, place), llm)
    if show:
        shown: dict[str, str] = {}
        for change in changes:
            shown[str(change.file)] = change.add(shown.get(str(change.file), ""))
        parts = [f"Add to {file}\n\n{text}" for file, text in shown.items()]
        target.answer({"client": client, "files": shown}, *parts)
        return
    if not remove and find_spec("mcp") is None:
        raise MissingExtra("an MCP server", "mcp")
    texts = applied(changes, remove=remove)
    write(texts)
    if not _named(project) if remove else place == ours:
        _folder(ours, remove=remove)
    files = sorted({str(change.file) for change in changes})
    did = "Removed from" if remove else "Added to"
    changed = sorted(map(str, texts))
    target.answer({"client": client, "files": files, "changed": changed}, *[f"{did} {file}" for file in changed])
    if not texts:
        target.say("Nothing to change.")
    elif not remove:
        target.say(chosen.then)
        if place == Path.cwd() / DEFAULT_DB:
            target.say(f"The memory is {DEFAULT_DB} of this folder: add it to .gitignore if you share the folder.")


def _place(target: Target, project: Path | None) -> Path | str:
    """Where the memory is: as --db says, else in a folder of ours, unless the project has a memory.db."""
    from wellworn.store import POSTGRES  # takes time to import

    scheme, sign, _ = target.db.partition("://")
    if target.db == ":memory:" or (sign and scheme not in POSTGRES):
        raise InvalidInput("--db", f"an agent cannot open {target.place!r}", "use a file or postgresql://…")
    if sign:
        if target.place != target.db:
            problem = "a password would stand in the client's settings"
            raise InvalidInput("--db", problem, "leave it out of the URL and use ~/.pgpass or PGPASSWORD")
        return target.db
    if target.names_db:
        return Path(target.db).expanduser().absolute()
    if project is not None and (project / DEFAULT_DB).exists():
        return project / DEFAULT_DB
    return (project or Path.home()) / FOLDER / DEFAULT_DB


def _named(project: Path | None) -> bool:
    """Whether the settings of another agent still name our folder."""
    agents = [one for one in CLIENTS.values() if project is None or one.has_projects]
    files = {change.file for one in agents for change in one.changes(project, _program(), []) if change.file.is_file()}
    texts = [file.read_text(encoding="utf-8", errors="replace") for file in files]
    return any(FOLDER + sign in text for text in texts for sign in "/\\")


def _folder(place: Path, *, remove: bool) -> None:
    """Make our folder of a memory, which git ignores; it goes again while no memory is in it."""
    ignore = place.with_name(".gitignore")
    if not remove:
        place.parent.mkdir(mode=0o700, exist_ok=True)
        if not ignore.exists():
            ignore.write_text(IGNORED, encoding="utf-8")
    elif [*place.parent.glob("*")] in ([], [ignore]):
        with suppress(OSError):
            ignore.unlink(missing_ok=True)
            place.parent.rmdir()


def _program() -> list[str]:
    """How to start this program from anywhere: with its whole path, because agents have a path of their own."""
    script = Path(sys.executable).with_name("wellworn")
    return [str(script)] if script.exists() else [sys.executable, "-m", "wellworn"]


def _options(target: Target, place: Path | str) -> list[str]:
    """The shared options with which the program finds the same memory from anywhere."""
    options = {"db": str(place)}
    options |= {layer: str(id) for layer in LAYERS if target.owner is not None and (id := getattr(target.owner, layer))}
    options |= {"tenant": target.scope.tenant, "embedder": target.embedder}
    usual = {"tenant": "default", "embedder": "reader"}
    return [part for name, value in options.items() if value != usual.get(name) for part in (f"--{name}", value)]


# -- hooks and the MCP server ------------------------------------------------------------------------------------------

hooks = typer.Typer(no_args_is_help=True, help="For agents driven from a shell: before and after a task.")
command(hooks, "pre-task", "hook pre-task --task-id t1 --query 'create a user'")(agents.pre_task)
command(hooks, "post-task", "hook post-task --task-id t1 --trajectory-file work.json --success")(agents.post_task)
command(hooks, "session-end", "hook session-end")(agents.session_end)
command(app, "mcp", "mcp --user ada", panel="Agents")(agents.serve_mcp)
