"""Verbs that look: recall, assemble, reason, show, history, list, stats, events."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer

from wellworn.cli import render
from wellworn.cli.options import AsOf, EntryId, Kinds, Layers, LlmName, SessionId, Since, Tags, Until
from wellworn.cli.stdin import text_from
from wellworn.cli.target import Target, with_target
from wellworn.core.values import Recall, Stats

app = typer.Typer()


@app.command("recall", epilog='Example: wellworn recall "which async runtime does Ada like?" -k 3 --explain')
@with_target
def recall(
    target: Target,
    query: Annotated[list[str] | None, typer.Argument(metavar="QUERY", help='"-" reads standard input.')] = None,
    k: Annotated[int, typer.Option("-k", "--k", metavar="N", help="How many hits.")] = 5,
    kind: Kinds = None,
    tag: Tags = None,
    layer: Layers = None,
    session_id: SessionId = None,
    since: Since = None,
    until: Until = None,
    as_of: AsOf = None,
    min_score: Annotated[float | None, typer.Option("--min-score", help="Leave out hits that score less.")] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print every factor of each score, and the steps of a recursive route.")
    ] = False,
    context: Annotated[bool, typer.Option("--context", help="Print the fenced block for a prompt.")] = False,
    max_tokens: Annotated[int, typer.Option("--max-tokens", help="The size of that block.")] = 1500,
    profile: Annotated[str, typer.Option("--profile", help="The scoring profile.")] = "default",
    learning: Annotated[
        str, typer.Option("--learning", metavar="MODE", help="on, observe (serve the untrained ranking) or off.")
    ] = "on",
    recursion: Annotated[
        str, typer.Option("--recursion", metavar="MODE", help="on (questions decide), off (always plain) or always.")
    ] = "on",
) -> None:
    """Find the entries that answer a question best, and say why with --explain."""
    with target.open(profile=profile, learning=learning) as memory:
        found = memory.recall(
            text_from(query or []).rstrip("\n"),
            scope=target.scope,
            k=k,
            kind=kind or None,  # type: ignore[arg-type]
            tags=tag or None,
            layer=layer or None,  # type: ignore[arg-type]
            session_id=session_id,
            since=since,
            until=until,
            as_of=as_of,
            min_score=min_score,
            recursion=recursion,  # type: ignore[arg-type]
        )
    if target.json:
        block = {"context": found.context(max_tokens=max_tokens)} if context else {}
        render.print_json({**render.document(found), **block})
    elif context:
        render.print_lines(filter(None, [found.context(max_tokens=max_tokens)]))
    else:
        _print_hits(found, target, explain=explain)
        if found.hits and learning != "off":
            render.say(f"recall {found.id} (say what became of it: wellworn outcome {found.id} --cited 0)")


@app.command("assemble", epilog='Example: wellworn assemble "Who leads the team that owns billing?" --budget 800')
@with_target
def assemble(
    target: Target,
    question: Annotated[list[str] | None, typer.Argument(metavar="QUESTION", help='"-" reads standard input.')] = None,
    budget: Annotated[int, typer.Option("--budget", metavar="N", help="Tokens that the context may have.")] = 1500,
    k: Annotated[int, typer.Option("-k", "--k", metavar="N", help="How many hits to choose from.")] = 40,
    kind: Kinds = None,
    tag: Tags = None,
    layer: Layers = None,
    since: Since = None,
    until: Until = None,
    as_of: AsOf = None,
    recursion: Annotated[
        str, typer.Option("--recursion", metavar="MODE", help="on (questions decide), off (always plain) or always.")
    ] = "on",
) -> None:
    """Print the fenced block for a prompt whose entries together say most about a question within a token budget.

    What was left out is counted on standard error; with --json it is named, with the reason.
    """
    with target.open(background=False) as memory:
        found = memory.assemble(
            text_from(question or []).rstrip("\n"),
            scope=target.scope,
            max_tokens=budget,
            k=k,
            kind=kind or None,  # type: ignore[arg-type]
            tags=tag or None,
            layer=layer or None,  # type: ignore[arg-type]
            since=since,
            until=until,
            as_of=as_of,
            recursion=recursion,  # type: ignore[arg-type]
        )
    if target.json:
        recalls = [{"id": one.id, "route": one.route} for one in found.recalls]
        render.print_json({**vars(found), "recalls": recalls})
        return
    render.print_lines(filter(None, [found.text]))
    reasons = Counter(one.why for one in found.left_out)
    left = ", ".join(f"{count} for {why}" for why, count in reasons.items())
    render.say(
        f"{len(found)} entries in {found.tokens} of {found.max_tokens} tokens"
        f"{', the last one cut' if found.cut else ''}; left out: {left or 'none'}"
    )
    for one in found.recalls:
        if one.hits:
            render.say(
                f"recall {one.id}, route {one.route} (say what became of it: wellworn outcome {one.id} --used 1)"
            )


@app.command("reason", epilog='Example: wellworn reason "Who leads the team that owns the billing service?"')
@with_target
def reason(
    target: Target,
    question: Annotated[list[str] | None, typer.Argument(metavar="QUESTION", help='"-" reads standard input.')] = None,
    k: Annotated[int, typer.Option("-k", "--k", metavar="N", help="How many hits to begin with.")] = 5,
    as_of: AsOf = None,
    llm: LlmName = None,
) -> None:
    """Follow what entries name and are linked to, and print the chain of evidence for a question.

    With --llm, also what a model concludes from it.
    """
    with target.open(llm=llm, background=False) as memory:
        found = memory.reason(text_from(question or []).rstrip("\n"), scope=target.scope, k=k, as_of=as_of)
    if target.json:
        render.print_json(found)
        return
    rows = [(step.operation, step.entry.id, step.reasoning, step.entry.text) for step in found.path]
    if rows:
        render.console().print(render.row_table(("operation", "entry", "why", "text"), rows))
    if found.model:
        print(found.conclusion)
        render.say(f"concluded by {found.model} from {', '.join(found.cited)}")
    elif found.problem:
        render.say(f"no conclusion by a model: {found.problem}")
    steps = f"{len(rows)} {'step' if len(rows) == 1 else 'steps'}"
    render.say(f"{steps}, confidence {found.confidence:.2f}, {1000 * found.recall.cost.seconds:.1f} ms")


@app.command("show", epilog="Example: wellworn show 0198c0de-… --history")
@with_target
def show(
    target: Target,
    id: EntryId,
    history: Annotated[bool, typer.Option("--history", help="Every state it has had, too.")] = False,
) -> None:
    """Print an entry with its evidence and links, whatever its state."""
    with target.open() as memory:
        entry = memory.get(id, scope=target.scope)
        links = memory.links(id, scope=target.scope)
        versions = memory.history(id, scope=target.scope) if history else []
    if target.json:
        states = {"history": versions} if history else {}
        render.print_json({"entry": entry, "links": links, **states})
        return
    out = render.console()
    values = {name: value for name, value in render.document(entry).items() if value not in (None, "", [], {})}
    partition = values.pop("partition")
    place = f"{partition['layer']} {partition['layer_id']} (tenant {partition['tenant']})"
    tags = {"tags": ", ".join(entry.tags)} if entry.tags else {}
    out.print(render.pair_table({**values, "layer": place, **tags}))
    if links:
        out.print(render.link_table(links))
    if versions:
        out.print(render.version_table(versions))


@app.command("history", epilog="Example: wellworn history 0198c0de-…")
@with_target
def history(target: Target, id: EntryId) -> None:
    """Print every state an entry has had, oldest first."""
    with target.open() as memory:
        versions = memory.history(id, scope=target.scope)
    if target.json:
        render.print_json({"history": versions})
    else:
        render.console().print(render.version_table(versions))


@app.command("list", epilog="Example: wellworn list --kind preference --limit 20")
@with_target
def list_(
    target: Target,
    kind: Kinds = None,
    tag: Tags = None,
    session_id: SessionId = None,
    state: Annotated[
        list[str] | None,
        typer.Option("--state", help="Only this state; repeat it: active, superseded, flagged, pruned."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="At most this many.")] = 50,
    offset: Annotated[int, typer.Option("--offset", help="Leave out this many first.")] = 0,
) -> None:
    """List the entries the scope sees, oldest first."""
    with target.open() as memory:
        entries = memory.entries(
            scope=target.scope,
            kind=kind or None,  # type: ignore[arg-type]
            tags=tag or None,
            session_id=session_id,
            state=state or None,  # type: ignore[arg-type]
            limit=limit,
            offset=offset,
        )
    if target.json:
        render.print_json({"entries": entries, "limit": limit, "offset": offset})
    elif entries:
        render.console().print(render.entry_table(entries))
    else:
        render.say(f"no entries for {target} in {target.db}")


@app.command("stats", epilog="Example: wellworn stats --json")
@with_target
def stats(target: Target) -> None:
    """Count what the scope holds."""
    with target.open() as memory:
        found = memory.admin.stats(scope=target.scope)
    if target.json:
        render.print_json(found)
    else:
        render.console().print(render.pair_table(_stat_pairs(found)))


@app.command("events", epilog="Example: wellworn events --limit 20")
@with_target
def events(
    target: Target, limit: Annotated[int, typer.Option("--limit", "-n", help="At most this many.")] = 50
) -> None:
    """Print the tenant's audit log, newest first: what was done to which entry when, never its text."""
    with target.open() as memory:
        found = memory.admin.events(scope=target.scope, limit=limit)
    if target.json:
        render.print_json({"events": found})
        return
    details = [", ".join(f"{name}={value}" for name, value in event.detail.items()) for event in found]
    rows = [
        (event.at.isoformat(timespec="seconds"), event.action, event.entry_id or "", detail)
        for event, detail in zip(found, details, strict=True)
    ]
    render.console().print(render.row_table(("when", "action", "entry", "detail"), rows))


def _print_hits(found: Recall, target: Target, *, explain: bool) -> None:
    if found.hits:
        render.console().print(render.hit_table(found.hits, explain=explain))
    if explain and found.trace:
        render.console().print(render.step_table(found.trace))
    render.say(
        f"{len(found.hits)} of {found.searched} entries for {target}, "
        f"route {found.route}, {1000 * found.cost.seconds:.1f} ms"
    )
    if not found.searched:
        render.say(f"nothing there is valid and passes the filters (what there is: wellworn list --db {target.db})")


def _stat_pairs(found: Stats) -> dict[str, object]:
    pairs = {name: value for name, value in vars(found).items() if not isinstance(value, dict)}
    return {
        **pairs,
        **{f"kind {kind}": count for kind, count in sorted(found.by_kind.items())},
        **{f"state {state}": count for state, count in sorted(found.by_state.items())},
    }
