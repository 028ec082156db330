"""Options that several commands take, each with one name and one sentence."""

from __future__ import annotations

from typing import Annotated

import typer

from wellworn.core.values import KINDS, LAYERS

_TIME = "ISO 8601, UTC unless it says otherwise"

Text = Annotated[list[str] | None, typer.Argument(metavar="TEXT", help='What to remember; "-" reads standard input.')]
EntryId = Annotated[str, typer.Argument(metavar="ID", help="The entry's id.")]
EntryIds = Annotated[list[str] | None, typer.Argument(metavar="ID", help="Ids of entries.")]

Kind = Annotated[str | None, typer.Option("--kind", metavar="KIND", help=f"One of {', '.join(KINDS)}.")]
Kinds = Annotated[
    list[str] | None, typer.Option("--kind", metavar="KIND", help=f"Only this kind; repeat it: {', '.join(KINDS)}.")
]
NewTags = Annotated[list[str] | None, typer.Option("--tag", metavar="TAG", help="A tag; repeat it.")]
Tags = Annotated[
    list[str] | None,
    typer.Option("--tag", metavar="TAG", help="Only entries with this tag; repeat it for all of them."),
]
Title = Annotated[str | None, typer.Option("--title", metavar="TITLE", help="The topic in a few words.")]
SessionId = Annotated[str | None, typer.Option("--session-id", metavar="ID", help="The dialogue it belongs to.")]
LayerName = Annotated[str | None, typer.Option("--layer", metavar="LAYER", help=f"One of {', '.join(LAYERS)}.")]
Layers = Annotated[
    list[str] | None, typer.Option("--layer", metavar="LAYER", help="Only this layer of the scope; repeat it.")
]

At = Annotated[str | None, typer.Option("--at", metavar="TIME", help=f"When it happened ({_TIME}).")]
ValidFrom = Annotated[str | None, typer.Option("--valid-from", metavar="TIME", help="From when on it holds.")]
ValidTo = Annotated[str | None, typer.Option("--valid-to", metavar="TIME", help="Until when it holds.")]
Since = Annotated[
    str | None, typer.Option("--since", metavar="TIME", help=f"Only what happened then or later ({_TIME}).")
]
Until = Annotated[str | None, typer.Option("--until", metavar="TIME", help="Only what happened before then.")]
AsOf = Annotated[str | None, typer.Option("--as-of", metavar="TIME", help="What was valid at that time.")]

Confidence = Annotated[float | None, typer.Option("--confidence", metavar="0..1", help="How sure it is.")]
Trust = Annotated[str | None, typer.Option("--trust", metavar="LEVEL", help="trusted or untrusted.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
ProfileName = Annotated[str, typer.Option("--profile", metavar="NAME", help="The scoring profile that recalls used.")]

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
        help="The model that summarises long sessions; none without it (env WELLWORN_SUMMARIZER).",
    ),
]
