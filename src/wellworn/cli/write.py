"""Verbs that change what is remembered: remember, edit, link, unlink, supersede, forget."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from wellworn.cli import options, render
from wellworn.cli.ask import confirm
from wellworn.cli.stdin import read_stdin, text_from
from wellworn.cli.target import Target, with_target
from wellworn.core.errors import InvalidInput
from wellworn.core.values import LINK_TYPES

app = typer.Typer()


@app.command(
    "remember", epilog='Example: wellworn remember "Ada prefers tokio over async-std." --kind preference --tag rust'
)
@with_target
def remember(
    target: Target,
    text: options.Text = None,
    lines: Annotated[bool, typer.Option("--lines", help="One entry a line.")] = False,
    kind: options.Kind = None,
    tag: options.NewTags = None,
    title: options.Title = None,
    session_id: options.SessionId = None,
    layer: options.LayerName = None,
    at: options.At = None,
    valid_from: options.ValidFrom = None,
    valid_to: options.ValidTo = None,
    confidence: options.Confidence = None,
    trust: options.Trust = None,
) -> None:
    """Remember a text and print the ids of its entries.

    Reads standard input when TEXT is "-" or missing; several words make one text.

    A long text becomes several entries; a text that is there already is strengthened, not stored twice.
    """
    given = text_from(text or [])
    texts = [line for line in given.splitlines() if line.strip()] if lines else [given]
    if not texts:
        raise InvalidInput("TEXT", "is empty")
    about = _given(
        kind=kind,
        tags=tag,
        title=title,
        session_id=session_id,
        layer=layer,
        at=at,
        valid_from=valid_from,
        valid_to=valid_to,
        confidence=confidence,
        trust=trust,
    )
    with target.open(new=True) as memory, render.progress_bar("remembering") as progress:
        ids = memory.remember_many(texts, scope=target.scope, progress=progress, **about)
    if target.json:
        render.print_json({"ids": ids})
        return
    render.print_lines(ids)
    render.say(f"remembered {len(ids)} {'entry' if len(ids) == 1 else 'entries'} for {target} in {target.db}")


@app.command("edit", epilog='Example: wellworn edit 0198c0de-… --text "Ada prefers smol." --tag rust')
@with_target
def edit(
    target: Target,
    id: options.EntryId,
    text: Annotated[str | None, typer.Option("--text", help='The new text; "-" reads standard input.')] = None,
    title: options.Title = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="A tag; repeat it. Replaces all tags.")] = None,
    no_tags: Annotated[bool, typer.Option("--no-tags", help="Take all tags away.")] = False,
    kind: options.Kind = None,
    state: Annotated[str | None, typer.Option("--state", help="active, superseded, flagged or pruned.")] = None,
    speaker: Annotated[str | None, typer.Option("--speaker", help="Who said it.")] = None,
    at: options.At = None,
    valid_from: options.ValidFrom = None,
    valid_to: options.ValidTo = None,
    confidence: options.Confidence = None,
    trust: options.Trust = None,
) -> None:
    """Change an entry; the entry as it stood stays in its history."""
    changes = _given(
        text=read_stdin() if text == "-" else text,
        title=title,
        tags=[] if no_tags else tag,
        kind=kind,
        state=state,
        speaker=speaker,
        at=at,
        valid_from=valid_from,
        valid_to=valid_to,
        confidence=confidence,
        trust=trust,
    )
    if not changes:
        raise InvalidInput("edit", "nothing to change", "give --text, --title, --tag or another option")
    with target.open() as memory:
        entry = memory.edit(id, scope=target.scope, **changes)
    if target.json:
        render.print_json(entry)
    else:
        render.console().print(render.entry_table([entry]))


LinkTypeName = Annotated[str, typer.Argument(metavar="TYPE", help=f"One of {', '.join(LINK_TYPES)}.")]
Source = Annotated[str, typer.Argument(metavar="SOURCE", help="The entry the link starts at.")]
Goal = Annotated[str, typer.Argument(metavar="TARGET", help="The entry it leads to.")]


@app.command("link", epilog="Example: wellworn link 0198c0de-… 0198c0df-… supports")
@with_target
def link(target: Target, source: Source, goal: Goal, type: LinkTypeName, confidence: options.Confidence = None) -> None:
    """Record that one entry stands in a relation to another, read "SOURCE TYPE TARGET"."""
    with target.open() as memory:
        made = memory.link(source, goal, type, scope=target.scope, **_given(confidence=confidence))  # type: ignore[arg-type]
    if target.json:
        render.print_json(made)
    else:
        render.console().print(render.link_table([made]))


@app.command("unlink", epilog="Example: wellworn unlink 0198c0de-… 0198c0df-… supports")
@with_target
def unlink(target: Target, source: Source, goal: Goal, type: LinkTypeName) -> None:
    """Remove a link; removing one that is not there changes nothing."""
    with target.open() as memory:
        removed = memory.unlink(source, goal, type, scope=target.scope)  # type: ignore[arg-type]
    if target.json:
        render.print_json({"removed": removed})
    else:
        render.say("removed" if removed else "there was no such link")


@app.command("supersede", epilog="Example: wellworn supersede 0198c0de-… 0198c0df-… --at 2026-05-01")
@with_target
def supersede(
    target: Target,
    old: Annotated[str, typer.Argument(help="The entry that no longer holds.")],
    new: Annotated[str, typer.Argument(help="The entry that replaced it.")],
    at: options.At = None,
    wrong: Annotated[bool, typer.Option("--wrong", help="The old one was never true.")] = False,
) -> None:
    """Say that one entry replaced another; recall then returns the new one, and the old one for times before.

    With --wrong the old one is not recalled for any time.
    """
    with target.open() as memory:
        entry = memory.supersede(old, new, scope=target.scope, at=at, wrong=wrong)
    if target.json:
        render.print_json(entry)
    else:
        render.console().print(render.entry_table([entry]))


@app.command("forget", epilog="Example: wellworn forget --everything --user ada --yes")
@with_target
def forget(
    target: Target,
    ids: options.EntryIds = None,
    session_id: options.SessionId = None,
    everything: Annotated[
        bool, typer.Option("--everything", help="All of the scope's home layer (the user's, where it has one).")
    ] = False,
    layer: options.LayerName = None,
    turns: Annotated[
        bool | None, typer.Option("--turns/--no-turns", help="Raw turns too; by default except with IDs.")
    ] = None,
    yes: options.Yes = False,
) -> None:
    """Remove entries for good and print the receipt.

    Give entry IDs, --session-id or --everything. Asks first on a terminal; elsewhere --yes is needed.
    """
    if [bool(ids), session_id is not None, everything].count(True) != 1:
        raise InvalidInput("forget", "not exactly one of IDs, --session-id, --everything", "say what to forget")
    doomed = _doomed(target, ids, session_id, layer)
    confirm("forget", f"Forget {doomed} for good?", no="nothing was forgotten", yes=yes)
    with target.open() as memory:
        receipt = memory.forget(
            scope=target.scope,
            ids=ids or None,
            session_id=session_id,
            everything=everything,
            layer=layer,  # type: ignore[arg-type]
            turns=turns,
        )
    if target.json:
        render.print_json(receipt)
        return
    counts = {name: value for name, value in vars(receipt).items() if isinstance(value, int)}
    kept = {f"kept: {name}": value for name, value in receipt.kept.items()}
    render.console().print(render.pair_table({**counts, **kept, "at": receipt.at}))


def _doomed(target: Target, ids: list[str] | None, session_id: str | None, layer: str | None) -> str:
    """What is about to go, for the question."""
    partition = target.scope.home(layer)
    where = f"{partition.layer} {partition.layer_id} (tenant {partition.tenant}) in {target.db}"
    if ids:
        return f"{len(ids)} {'entry' if len(ids) == 1 else 'entries'} in {target.db}"
    return f"session {session_id} of {where}" if session_id is not None else f"everything of {where}"


def _given(**options: Any) -> dict[str, Any]:  # options of as many types as there are fields
    """The options that were given; the facade's defaults stand for the rest."""
    return {name: value for name, value in options.items() if value is not None}
