"""Options that several commands take, each with one name and one sentence, and commands with the shared ones."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_type_hints

import typer

from wellworn.cli.edge import reported
from wellworn.cli.target import SHARED, Shared, added_options, pasteable, target_of
from wellworn.core.values import KINDS, LAYERS

EVERYDAY, CONNECT, WHICH = "Everyday", "Connect and reason", "Which memory"
"""Headings in the help."""
_TIME = "ISO 8601; UTC if no zone is given"

Text = Annotated[list[str] | None, typer.Argument(metavar="TEXT", help='The text; "-" reads standard input.')]
Query = Annotated[list[str] | None, typer.Argument(metavar="QUERY", help='The question; "-" reads standard input.')]
EntryId = Annotated[str, typer.Argument(metavar="ID", help="The entry's id, or the beginning of it.")]
EntryIds = Annotated[list[str] | None, typer.Argument(metavar="ID", help="Ids of entries, or the beginnings of them.")]

Kind = Annotated[str | None, typer.Option("--kind", metavar="KIND", help=f"One of {', '.join(KINDS)}.")]
Kinds = Annotated[list[str] | None, typer.Option("--kind", metavar="KIND", help="Only this kind; may be repeated.")]
NewTags = Annotated[list[str] | None, typer.Option("--tag", metavar="TAG", help="A tag; may be repeated.")]
Tags = Annotated[
    list[str] | None, typer.Option("--tag", metavar="TAG", help="Only entries with this tag; repeat it to ask for all.")
]
Title = Annotated[str | None, typer.Option("--title", metavar="TITLE", help="The topic in a few words.")]
SessionId = Annotated[str | None, typer.Option("--session-id", metavar="ID", help="The dialogue it belongs to.")]
LayerName = Annotated[str | None, typer.Option("--layer", metavar="LAYER", help=f"One of {', '.join(LAYERS)}.")]
Layers = Annotated[list[str] | None, typer.Option("--layer", metavar="LAYER", help="Only this layer; may be repeated.")]
Limit = Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, help="At most this many.")]

At = Annotated[str | None, typer.Option("--at", metavar="TIME", help=f"When it happened ({_TIME}).")]
Since = Annotated[str | None, typer.Option("--since", metavar="TIME", help=f"Only what happened since then ({_TIME}).")]
Until = Annotated[str | None, typer.Option("--until", metavar="TIME", help="Only what happened before then.")]
AsOf = Annotated[str | None, typer.Option("--as-of", metavar="TIME", help="Only what held at that time.")]

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
Recursion = Annotated[
    str,
    typer.Option(
        "--recursion", metavar="MODE", help="Search in several steps: on (if the question needs it), off or always."
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and change nothing.")]

LlmName = Annotated[
    str | None,
    typer.Option(
        "--llm",
        metavar="NAME",
        envvar="WELLWORN_LLM",
        show_envvar=False,
        help="openai:MODEL, ollama:MODEL, anthropic:MODEL, or rules for none (env WELLWORN_LLM).",
    ),
]
SummarizerName = Annotated[
    str | None,
    typer.Option(
        "--summarizer",
        metavar="NAME",
        envvar="WELLWORN_SUMMARIZER",
        show_envvar=False,
        help="The model that summarises long sessions; no summaries without it (env WELLWORN_SUMMARIZER).",
    ),
]


JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON document; errors too.", show_default=False)]


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
            given = {option: values.pop(option) for option in SHARED}
            merged = {option: outer.get(option) if value is None else value for option, value in given.items()}
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
        ctx.obj = {name: values.pop(name) for name in (*SHARED, "json")}
        root(**values)

    return _signed(functools.wraps(root)(run), root, own_from=0, root=True)


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
        rich_help_panel=WHICH,
        show_default=False,
        envvar=shared.env if root else None,
        show_envvar=False,
        hidden=shared.rare and not root,
    )
    return Annotated[str | None, option]


def _parameter(name: str, annotation: Any, default: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
