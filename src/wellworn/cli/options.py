"""Options that several commands take, each with one name and one sentence, and commands with the shared ones."""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable
from typing import Annotated, Any, get_type_hints

import typer

from wellworn.cli.edge import reported
from wellworn.cli.target import SHARED, Shared, added_options, pasteable, target_of
from wellworn.core.values import KINDS, LAYERS

EVERYDAY, CONNECT, WHICH = "Everyday", "Connect and reason", "Which memory"
"""Headings in the help."""
_TIME = "ISO 8601; UTC if no zone is given"


def argument(metavar: str, help: str) -> Any:  # what typer makes of it has no type
    """An argument of a command, as the help names it."""
    return typer.Argument(metavar=metavar, help=help)


def flag(names: str, help: str, **more: Any) -> Any:  # as typer takes them
    """An option without a value; several names stand with spaces between them."""
    return typer.Option(*names.split(), help=help, **more)


def option(names: str, metavar: str, help: str, *, env: str | None = None, **more: Any) -> Any:
    """An option with a value, which a variable of the environment may give."""
    return flag(names, help, metavar=metavar, envvar=env, show_envvar=False, **more)


Text = Annotated[list[str] | None, argument("TEXT", 'The text; "-" reads standard input.')]
Query = Annotated[list[str] | None, argument("QUERY", 'The question; "-" reads standard input.')]
EntryId = Annotated[str, argument("ID", "The entry's id, or the beginning of it.")]
EntryIds = Annotated[list[str] | None, argument("ID", "Ids of entries, or the beginnings of them.")]

Kind = Annotated[str | None, option("--kind", "KIND", f"One of {', '.join(KINDS)}.")]
Kinds = Annotated[list[str] | None, option("--kind", "KIND", "Only this kind; may be repeated.")]
NewTags = Annotated[list[str] | None, option("--tag", "TAG", "A tag; may be repeated.")]
Tags = Annotated[list[str] | None, option("--tag", "TAG", "Only entries with this tag; repeat it to ask for all.")]
Title = Annotated[str | None, option("--title", "TITLE", "The topic in a few words.")]
SessionId = Annotated[str | None, option("--session-id", "ID", "The dialogue it belongs to.")]
LayerName = Annotated[str | None, option("--layer", "LAYER", f"One of {', '.join(LAYERS)}.")]
Layers = Annotated[list[str] | None, option("--layer", "LAYER", "Only this layer; may be repeated.")]
Limit = Annotated[int, option("--limit -n", "N", "At most this many.", min=1)]

At = Annotated[str | None, option("--at", "TIME", f"When it happened ({_TIME}).")]
Since = Annotated[str | None, option("--since", "TIME", f"Only what happened since then ({_TIME}).")]
Until = Annotated[str | None, option("--until", "TIME", "Only what happened before then.")]
AsOf = Annotated[str | None, option("--as-of", "TIME", "Only what held at that time.")]

Yes = Annotated[bool, flag("--yes -y", "Do not ask for confirmation.")]
Recursion = Annotated[
    str, option("--recursion", "MODE", "Search in several steps: on (if the question needs it), off or always.")
]
DryRun = Annotated[bool, flag("--dry-run", "Show what would be done, and change nothing.")]

_LLM = "openai:MODEL, ollama:MODEL, anthropic:MODEL, or rules for none (env WELLWORN_LLM)."
_SUMMARIZER = "The model that summarises long sessions; no summaries without it (env WELLWORN_SUMMARIZER)."
LlmName = Annotated[str | None, option("--llm", "NAME", _LLM, env="WELLWORN_LLM")]
SummarizerName = Annotated[str | None, option("--summarizer", "NAME", _SUMMARIZER, env="WELLWORN_SUMMARIZER")]

TaskId = Annotated[str | None, option("--task-id", "ID", "The task; by default the session_id of the input.")]
TaskQuery = Annotated[str | None, option("--query", "TEXT", "The task; by default the prompt of the input.")]
TaskDomain = Annotated[str, option("--domain", "DOMAIN", "The task's domain, as web.admin.")]
ItemCount = Annotated[int, flag("--k", "How many items.", min=1)]
TrajectoryFile = Annotated[
    str | None, option("--trajectory-file", "PATH", 'The work as JSON; "-" reads standard input.')
]
TaskSuccess = Annotated[bool | None, flag("--success/--failure", "How it went; judged if not given.")]
ExitCode = Annotated[int | None, option("--exit-code", "N", "The exit code of the agent's process.")]

JsonFlag = Annotated[bool, flag("--json", "Print one JSON document; errors too.", show_default=False)]


def given(**values: Any) -> dict[str, Any]:  # options of as many types as there are parameters
    """The options that were given; the facade's defaults stand for the rest."""
    return {name: value for name, value in values.items() if value not in (None, [], ())}


# -- commands with the shared options ----------------------------------------------------------------------------------


def command(
    app: typer.Typer, name: str, example: str, *, panel: str | None = None, hidden: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a command with the shared options; its first parameter becomes the `Target` they name."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        def run(ctx: typer.Context, **values: Any) -> None:  # the command's own options, of its own types
            outer: dict[str, Any] = ctx.find_root().obj or {}
            given = {name: _once(ctx, name, values.pop(name)) for name in SHARED}
            merged = {name: outer.get(name) if value is None else value for name, value in given.items()}
            as_json = values.pop("json") or bool(outer.get("json"))
            added = added_options(merged)
            with reported(as_json=as_json, complete=lambda text: pasteable(text, added)):
                function(target_of(merged, as_json=as_json), **values)

        signed = _signed(functools.wraps(function)(run), function, own_from=1, root=False)
        epilog = f"Example: wellworn {example}"
        app.command(name, epilog=epilog, rich_help_panel=panel, hidden=hidden)(signed)
        return function

    return register


def with_shared_options(root: Callable[..., None]) -> Callable[..., None]:
    """Let the program itself take the shared options, for the command that follows."""

    def run(ctx: typer.Context, **values: Any) -> None:  # the root's own options, of its own types
        ctx.obj = {name: _once(ctx, name, values.pop(name)) for name in SHARED} | {"json": values.pop("json")}
        root(**values)

    return _signed(functools.wraps(root)(run), root, own_from=0, root=True)


def _signed(run: Callable[..., None], like: Callable[..., None], *, own_from: int, root: bool) -> Callable[..., None]:
    """`run` with the signature that typer should see: the own options of `like`, then the shared ones. The lines of a
    paragraph become one, which is as wide as the terminal."""
    here = {"options": sys.modules[__name__]}  # `agents` does without this module
    hints = get_type_hints(like, localns=here, include_extras=True)
    given = [*inspect.signature(like).parameters.values()][own_from:]
    own = [p.replace(annotation=hints[p.name], kind=inspect.Parameter.KEYWORD_ONLY) for p in given]
    context = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    shared = [_parameter(name, _option(name, one, root=root), None) for name, one in SHARED.items()]
    parameters = [context, *own, *shared, _parameter("json", JsonFlag, False)]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # how inspect is told
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    run.__doc__ = re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.cleandoc(like.__doc__ or ""))
    return run


def _option(name: str, shared: Shared, *, root: bool) -> Any:  # an Annotated form has no type
    hidden, env = shared.rare and not root, shared.env if root else None
    more: dict[str, Any] = {"rich_help_panel": WHICH, "show_default": False, "env": env, "hidden": hidden}
    taken = list[str] if env is None else str  # the words of a variable would be taken for several values
    return Annotated[taken | None, option(f"--{name}", shared.metavar, shared.sentence, **more)]


def _once(ctx: typer.Context, name: str, value: list[str] | str | None) -> str | None:
    """The value of a shared option; click would silently take the last of several."""
    if isinstance(value, list) and len(value) > 1:
        raise typer.BadParameter(f"was given {len(value)} times; give it once", ctx, param_hint=f"'--{name}'")
    return (value[0] if value else None) if isinstance(value, list) else value


def _parameter(name: str, annotation: Any, default: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
