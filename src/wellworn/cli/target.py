"""Which memory a command works on: the options every command shares, resolved to a store and a scope.

An option counts where it stands closest: after the command, else before it, else the environment, else the default.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from wellworn.cli.guard import guarded
from wellworn.core.errors import InvalidInput
from wellworn.core.values import LAYERS, Scope

if TYPE_CHECKING:
    from wellworn.memory import Memory

DEFAULT_USER = "me"
PANEL = "Which memory"

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON document.", show_default=False)]


@dataclass(frozen=True)
class Shared:
    """One shared option: its help, the environment variable that fills it and what it is without both."""

    help: str
    metavar: str
    env: str | None = None
    default: str | None = None

    @property
    def sentence(self) -> str:
        notes = [f"env {self.env}"] if self.env else []
        notes += [f"default {self.default}"] if self.default else []
        return f"{self.help} ({', '.join(notes)})" if notes else self.help


SHARED: dict[str, Shared] = {
    "db": Shared("The memory's file.", "PATH", "WELLWORN_DB", "memory.db"),
    "tenant": Shared("Whose data; nothing crosses tenants.", "ID", "WELLWORN_TENANT", "default"),
    "user": Shared(f'The person; "{DEFAULT_USER}" when no layer at all is named.', "ID", "WELLWORN_USER"),
    "agent": Shared("The agent layer.", "ID"),
    "session": Shared("The session layer (a dialogue's turns: --session-id).", "ID"),
    "project": Shared("The project layer.", "ID"),
    "team": Shared("The team layer.", "ID"),
    "org": Shared("The org layer.", "ID"),
    "company": Shared("The company layer.", "ID"),
    "embedder": Shared(
        "static, hash, openai:MODEL, sentence-transformers:MODEL, or none (words only).",
        "NAME",
        "WELLWORN_EMBEDDER",
        "static",
    ),
}


@dataclass(frozen=True, kw_only=True)
class Target:
    """The memory, the scope and the form of the answer that the command line named."""

    db: str
    embedder: str
    scope: Scope
    scope_named: bool
    """False when tenant and layers are all defaults."""
    json: bool

    def open(self, *, new: bool = False, **keywords: Any) -> Memory:  # keywords of Memory.open
        """The memory; a file that is not there is an error unless the command may make it (`new`)."""
        if not new and self.db != ":memory:" and "://" not in self.db and not os.path.exists(self.db):
            raise InvalidInput("--db", f"no file {self.db!r}", "remember something first, or check the path")
        from wellworn.memory import Memory

        return Memory.open(self.db, embedder=self.embedder, **keywords)

    def __str__(self) -> str:
        layers = ", ".join(f"{partition.layer} {partition.layer_id}" for partition in self.scope.partitions())
        return f"tenant {self.scope.tenant}, {layers}"


def with_target(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the shared options: its first parameter becomes the `Target` they name."""

    def run(ctx: typer.Context, **values: Any) -> None:  # the command's own options, of its own types
        nearest = {name: values.pop(name) for name in SHARED}
        outer: dict[str, Any] = ctx.find_root().obj or {}
        merged = {name: value if value is not None else outer.get(name) for name, value in nearest.items()}
        command(_target(merged, json=values.pop("json") or bool(outer.get("json"))), **values)

    return _signed(guarded(functools.wraps(command)(run)), command, drop=1, env=False)


def with_shared_options(root: Callable[..., None]) -> Callable[..., None]:
    """Let the program itself take the shared options, for every command that follows."""

    def run(ctx: typer.Context, **values: Any) -> None:  # the root's own options, of its own types
        ctx.obj = {name: values.pop(name) for name in (*SHARED, "json")}
        root(**values)

    return _signed(guarded(functools.wraps(root)(run)), root, drop=0, env=True)


def _target(values: dict[str, str | None], *, json: bool) -> Target:
    layers = {layer: value for layer in LAYERS if (value := values[layer]) is not None}
    tenant = values["tenant"]
    return Target(
        db=values["db"] or "memory.db",
        embedder=values["embedder"] or "static",
        scope=Scope(tenant=tenant if tenant is not None else "default", **(layers or {"user": DEFAULT_USER})),
        scope_named=bool(layers) or tenant is not None,
        json=json,
    )


def _signed(run: Callable[..., None], like: Callable[..., None], *, drop: int, env: bool) -> Callable[..., None]:
    """`run` with the signature typer should see: that of `like` without its first parameters, plus shared options."""
    hints = get_type_hints(like, include_extras=True)
    own = [
        p.replace(annotation=hints[p.name], kind=inspect.Parameter.KEYWORD_ONLY)
        for p in list(inspect.signature(like).parameters.values())[drop:]
    ]
    context = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    shared = [_option(name, option, env=env) for name, option in SHARED.items()]
    parameters = [context, *own, *shared, _parameter("json", JsonFlag, False)]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # how inspect lets one say it
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def _option(name: str, shared: Shared, *, env: bool) -> inspect.Parameter:
    option = typer.Option(
        f"--{name}",
        metavar=shared.metavar,
        help=shared.sentence,
        rich_help_panel=PANEL,
        show_default=False,
        envvar=shared.env if env else None,
        show_envvar=False,
    )
    return _parameter(name, Annotated[str | None, option], None)


def _parameter(name: str, annotation: Any, default: object) -> inspect.Parameter:  # an Annotated form has no type
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
