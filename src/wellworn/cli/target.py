"""Which memory a command works on: the options that every command shares, resolved to a store and a scope.

The nearest option counts: after the command, else before it, else the environment, else the default.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass
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
    scope_named: bool
    """False if tenant and layers are all defaults."""
    layers_named: bool
    """False if the user is the default one."""
    json: bool

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
        """A remark on standard error; none with --json."""
        if not self.json:
            render.say(message)

    def __str__(self) -> str:
        layers = ", ".join(f"{partition.layer} {partition.layer_id}" for partition in self.scope.partitions())
        return layers if self.scope.tenant == "default" else f"{layers} (tenant {self.scope.tenant})"


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
            with reported(as_json=as_json):
                function(_target(merged, as_json=as_json), **values)

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


def _target(values: dict[str, str | None], *, as_json: bool) -> Target:
    layers = {layer: value for layer in LAYERS if (value := values[layer]) is not None}
    tenant = values["tenant"]
    return Target(
        db=values["db"] or DEFAULT_DB,
        embedder=values["embedder"] or "static",
        scope=Scope(tenant="default" if tenant is None else tenant, **(layers or {"user": DEFAULT_USER})),
        scope_named=bool(layers) or tenant is not None,
        layers_named=bool(layers),
        json=as_json,
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
