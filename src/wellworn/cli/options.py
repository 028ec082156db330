"""Options that several commands take, each with one name and one sentence."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from wellworn.core.values import KINDS, LAYERS

EVERYDAY, CONNECT = "Everyday", "Connect and reason"
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


def given(**values: Any) -> dict[str, Any]:  # options of as many types as there are parameters
    """The options that were given; the facade's defaults stand for the rest."""
    return {name: value for name, value in values.items() if value not in (None, [], ())}
