"""Which memory a command works on: the options that every command shares, resolved to a store and a scope.

The nearest option counts: after the command, else before it, else the environment, else the default.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from wellworn.cli import render
from wellworn.cli.edge import reported
from wellworn.core.errors import InvalidInput
from wellworn.core.values import LAYERS, Scope

if TYPE_CHECKING:
    from wellworn.memory import Memory

DEFAULT_USER = "me"
DEFAULT_DB = "memory.db"
FOLDER = ".wellworn"
"""Where `wellworn connect` keeps a memory, so that nobody commits it by accident."""
PANEL = "Which memory"

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON document; errors too.", show_default=False)]


@dataclass(frozen=True)
class Shared:
    """One shared option: its help, its environment variable and its default."""

    help: str
    metavar: str
    env: str | None = None
    default: str | None = None
    rare: bool = False
    """Accepted everywhere, but described only in `wellworn --help`."""

    @property
    def sentence(self) -> str:
        notes = [f"env {self.env}"] if self.env else []
        notes += [f"default {self.default}"] if self.default else []
        return f"{self.help} ({', '.join(notes)})" if notes else self.help


EMBEDDERS = (
    "static, onnx:FOLDER, fastembed:MODEL, sentence-transformers:MODEL, openai:MODEL, hash, or none (words only)."
)
SHARED: dict[str, Shared] = {
    "db": Shared("The memory's file.", "PATH", "WELLWORN_DB", DEFAULT_DB),
    "user": Shared(f'The person; "{DEFAULT_USER}" if no layer is named.', "ID", "WELLWORN_USER"),
    "tenant": Shared("The tenant; tenants never see each other's data.", "ID", "WELLWORN_TENANT", "default", rare=True),
    "agent": Shared("The agent.", "ID", rare=True),
    "session": Shared("The session layer (for the turns of a dialogue use --session-id).", "ID", rare=True),
    "project": Shared("The project.", "ID", rare=True),
    "team": Shared("The team.", "ID", rare=True),
    "org": Shared("The organisation.", "ID", rare=True),
    "company": Shared("The company.", "ID", rare=True),
    "embedder": Shared(EMBEDDERS, "NAME", "WELLWORN_EMBEDDER", "static", rare=True),
}


@dataclass(frozen=True, kw_only=True)
class Target:
    """The memory, the scope and the form of the answer that the command line names."""

    db: str
    embedder: str
    scope: Scope
    owner: Scope | None
    """What an operator's command is about: the layers that are named, a whole tenant, or None, the whole store."""
    json: bool
    options: Options
    """The options that lead here from a bare command."""

    def open(
        self, *, new: bool = False, whole: bool = False, background: bool = False, **settings: Any
    ) -> Memory:  # settings of Memory
        """Open the memory for the scope, or for the whole store.

        A missing file is an error unless the command may make it (`new`).
        """
        if not new and self.db != ":memory:" and "://" not in self.db and not os.path.exists(self.db):
            raise InvalidInput("--db", f"no file {self.db!r}", "remember something first, or check the path")
        from wellworn.memory import Memory

        memory = Memory.open(self.db, embedder=self.embedder, background=background, **settings)
        return memory if whole else memory.for_scope(self.scope)

    def answer(self, document: object, *shown: object) -> None:
        """Print the document with --json, otherwise what is shown: tables, and texts as they are."""
        if self.json:
            render.print_json(document)
        else:
            render.show(*shown)

    def say(self, message: str) -> None:
        """A remark on standard error; none with --json. A command in it works when it is pasted."""
        if not self.json:
            render.say(pasteable(message, self.options))

    @property
    def named(self) -> Scope:
        """The scope of a command that destroys everything of somebody: it must be named."""
        if self.owner is None or not self.owner.partitions():
            raise InvalidInput("--user", "is missing", "say whose data goes, as in --user ada")
        return self.owner

    @property
    def whose(self) -> str:
        return "the whole store" if self.owner is None else _told(self.owner)

    def __str__(self) -> str:
        return _told(self.scope)


def _told(scope: Scope) -> str:
    layers = ", ".join(f"{partition.layer} {partition.layer_id}" for partition in scope.partitions())
    tenant = f"tenant {scope.tenant}"
    return tenant if not layers else layers if scope.tenant == "default" else f"{layers} ({tenant})"


Options = Mapping[str, str]


def pasteable(text: str, options: Options) -> str:
    """The text with these options added to each command in backticks, as in `wellworn list --user ada`."""

    def whole(found: re.Match[str]) -> str:
        missing = [f" {name} {shlex.quote(value)}" for name, value in options.items() if name not in found[1].split()]
        return f"`{found[1]}{''.join(missing)}`"

    return re.sub(r"`(wellworn [^`]+)`", whole, text)


def command(
    app: typer.Typer, name: str, example: str, *, panel: str | None = None, hidden: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a command with the shared options; its first parameter becomes the `Target` they name."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        def run(ctx: typer.Context, **values: Any) -> None:  # the command's own options, of its own types
            outer: dict[str, Any] = ctx.find_root().obj or {}
            given = {option: values.pop(option) for option in SHARED}
            merged = {option: outer.get(option) if value is None else value for option, value in given.items()}
            as_json = values.pop("json") or bool(outer.get("json"))
            bare = {name: os.environ.get(shared.env or "") or shared.default for name, shared in SHARED.items()}
            added = {f"--{name}": value for name, value in merged.items() if value and value != bare[name]}
            with reported(as_json=as_json, complete=lambda text: pasteable(text, added)):
                function(_target(merged, as_json=as_json, added=added), **values)

        signed = _signed(functools.wraps(function)(run), function, own_from=1, root=False)
        epilog = f"Example: wellworn {example}"
        app.command(name, epilog=epilog, rich_help_panel=panel, hidden=hidden)(signed)
        return function

    return register


def with_shared_options(root: Callable[..., None]) -> Callable[..., None]:
    """Let the program itself take the shared options, for the command that follows."""

    def run(ctx: typer.Context, **values: Any) -> None:  # the root's own options, of its own types
        ctx.obj = {name: values.pop(name) for name in (*SHARED, "json")}
        root(**values)

    return _signed(functools.wraps(root)(run), root, own_from=0, root=True)


def usual_db() -> str:
    """The memory of this folder when nobody names one: memory.db, or the one that `wellworn connect` set up."""
    connected = os.path.isdir(FOLDER) and not os.path.exists(DEFAULT_DB)
    return os.path.join(FOLDER, DEFAULT_DB) if connected else DEFAULT_DB


def _target(values: dict[str, str | None], *, as_json: bool, added: Options) -> Target:
    layers = {layer: value for layer in LAYERS if (value := values[layer]) is not None}
    named = Scope(tenant="default" if (tenant := values["tenant"]) is None else tenant, **layers)
    return Target(
        db=values["db"] or usual_db(),
        embedder=values["embedder"] or "static",
        scope=named if layers else replace(named, user=DEFAULT_USER),
        owner=named if layers or tenant is not None else None,
        json=as_json,
        options=added,
    )


def _signed(run: Callable[..., None], like: Callable[..., None], *, own_from: int, root: bool) -> Callable[..., None]:
    """`run` with the signature that typer should see: the own options of `like`, then the shared ones."""
    hints = get_type_hints(like, include_extras=True)
    own = [
        p.replace(annotation=hints[p.name], kind=inspect.Parameter.KEYWORD_ONLY)
        for p in list(inspect.signature(like).parameters.values())[own_from:]
    ]
    context = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    shared = [_parameter(name, _option(name, option, root=root), None) for name, option in SHARED.items()]
    parameters = [context, *own, *shared, _parameter("json", JsonFlag, False)]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # how inspect is told
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def _option(name: str, shared: Shared, *, root: bool) -> Any:  # an Annotated form has no type
    option = typer.Option(
        f"--{name}",
        metavar=shared.metavar,
        help=shared.sentence,
        rich_help_panel=PANEL,
        show_default=False,
        envvar=shared.env if root else None,
        show_envvar=False,
        hidden=shared.rare and not root,
    )
    return Annotated[str | None, option]


def _parameter(name: str, annotation: Any, default: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
