"""Commands that read: recall, show, list; reason and assemble."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wellworn.cli import options, render
from wellworn.cli.edge import text_from
from wellworn.cli.options import CONNECT, EVERYDAY, command, flag, option
from wellworn.cli.target import Target, entry_id
from wellworn.core.plain import to_plain
from wellworn.core.values import Entry, Recall
from wellworn.core.wellformed import counted

if TYPE_CHECKING:
    from wellworn.memory import Memory

app = typer.Typer()


@command(app, "recall", 'recall "which async runtime does Ada like?" -k 3 --explain', panel=EVERYDAY)
def recall(
    target: Target,
    query: options.Query = None,
    k: Annotated[int, option("-k --k", "N", "How many hits.")] = 5,
    explain: Annotated[bool, flag("--explain", "Show the factors of each score.")] = False,
    context: Annotated[bool, flag("--context", "Print the block for a prompt instead.")] = False,
    max_tokens: Annotated[int, option("--max-tokens", "N", "The size of that block.")] = 1500,
    kind: options.Kinds = None,
    tag: options.Tags = None,
    layer: options.Layers = None,
    session_id: options.SessionId = None,
    since: options.Since = None,
    until: options.Until = None,
    as_of: options.AsOf = None,
    recursion: options.Recursion = "on",
    deadline: Annotated[
        float | None, option("--deadline", "SECONDS", "Answer by then, with what was found so far.")
    ] = None,
) -> None:
    """Find the memories that answer a question."""
    filters = options.given(
        kind=kind, tags=tag, layer=layer, session_id=session_id, since=since, until=until, as_of=as_of
    )
    with target.open() as memory:
        found = memory.recall(
            text_from(query, "QUERY"), k=k, **filters, **options.given(recursion=recursion, deadline_s=deadline)
        )
        newer = {hit.entry.id: replaced_by(memory, hit.entry.id) for hit in found if hit.outdated or as_of is None}
    block = found.context(max_tokens=max_tokens) if context else ""
    if target.json:
        document = to_plain(found)
        for hit in document["hits"]:
            hit["replaced_by"] = [entry.id for entry in newer.get(hit["entry"]["id"], [])]
        render.print_json({**document, **({"context": block} if context else {})})
    elif context:
        render.show(block or None)
    else:
        hits = render.hit_table(found.hits, newer=newer, explain=explain)
        render.show(hits, render.step_table(found.trace) if explain else None)
        _say_recall(found, target)


def replaced_by(memory: Memory, id: str) -> list[Entry]:
    """The visible entries that an entry was replaced by."""
    newer = [link.source for link in memory.links(id) if (link.type, link.target) == ("supersedes", id)]
    return [memory.get(one) for one in newer]


def _say_recall(found: Recall, target: Target) -> None:
    how = "" if found.route == "hybrid" else f", route {found.route}"
    entries = counted(found.searched, "entries")
    target.say(f"{len(found.hits)} of {entries} for {target}{how}, {1000 * found.cost.seconds:.1f} ms")
    if found.hits and found.confidence is not None:
        target.say(f"Confidence {found.confidence:.2f}: {render.likelihood(found.confidence)}.")
    if found.cut:
        target.say("The deadline cut the search short; with more time there may be more.")
    elif not found.searched:
        target.say("No entry matches; `wellworn list` shows what there is.")
    elif found.hits:
        target.say(f"Did the first one help? Say so: `wellworn outcome {found.id} --cited 0`")


@command(app, "show", "show 0198c0de-1 --history", panel=EVERYDAY)
def show(
    target: Target,
    id: options.EntryId,
    history: Annotated[bool, flag("--history", "Show every earlier version, too.")] = False,
) -> None:
    """Show one entry with its evidence and links."""
    with target.open() as memory:
        id = entry_id(memory, id)
        entry = memory.get(id)
        links = memory.links(id)
        versions = memory.history(id) if history else []
    document = {"entry": entry, "links": links, **({"history": versions} if history else {})}
    target.answer(document, render.pairs(_entry_pairs(entry)), render.link_table(links), render.version_table(versions))


command(app, "get", "get 0198c0de-1", hidden=True)(show)


def _entry_pairs(entry: Entry) -> dict[str, Any]:
    partition = entry.partition
    values = {name: value for name, value in vars(entry).items() if name != "partition"}
    return {**render.spoken(values), "layer": f"{partition.layer} {partition.layer_id} (tenant {partition.tenant})"}


@command(app, "list", "list --kind preference --limit 20", panel=EVERYDAY)
def list_(
    target: Target,
    kind: options.Kinds = None,
    tag: options.Tags = None,
    session_id: options.SessionId = None,
    state: Annotated[
        list[str] | None, option("--state", "STATE", "Only active, superseded, flagged or pruned; may be repeated.")
    ] = None,
    limit: options.Limit = 50,
) -> None:
    """List entries, oldest first."""
    with target.open() as memory:
        filters = options.given(kind=kind, tags=tag, session_id=session_id, state=state)
        entries = memory.entries(limit=limit, **filters)
    nothing = f"No entries for {target} in {target.place}."
    target.answer({"entries": entries}, render.entry_table(entries), nothing=nothing)


@command(app, "assemble", 'assemble "Who leads the team that owns billing?" --max-tokens 800', panel=CONNECT)
def assemble(
    target: Target,
    query: options.Query = None,
    max_tokens: Annotated[int, option("--max-tokens", "N", "The size of the block.")] = 1500,
    k: Annotated[int, option("-k --k", "N", "How many hits to choose from.")] = 40,
    as_of: options.AsOf = None,
) -> None:
    """Print the block for a prompt whose entries together say most about a question."""
    with target.open() as memory:
        found = memory.assemble(text_from(query, "QUERY"), max_tokens=max_tokens, k=k, as_of=as_of)
    if target.json:
        recalls = [{"id": one.id, "route": one.route} for one in found.recalls]
        render.print_json({**vars(found), "recalls": recalls})
        return
    render.show(found.text or None)
    reasons = Counter(one.why for one in found.left_out)
    left = ", ".join(f"{number} for {why}" for why, number in reasons.items()) or "none"
    entries = counted(len(found), "entries")
    target.say(f"{entries} in {found.tokens} of {found.max_tokens} tokens; left out: {left}")


@command(app, "reason", 'reason "Who leads the team that owns the billing service?"', panel=CONNECT)
def reason(
    target: Target,
    query: options.Query = None,
    k: Annotated[int, option("-k --k", "N", "How many hits to begin with.")] = 5,
    as_of: options.AsOf = None,
    llm: options.LlmName = None,
) -> None:
    """Show the chain of evidence for a question; with --llm also what a model concludes from it."""
    with target.open(llm=llm) as memory:
        found = memory.reason(text_from(query, "QUERY"), k=k, as_of=as_of)
    rows = [(step.operation, step.entry.id, step.reasoning, step.entry.text) for step in found.path]
    conclusion = found.conclusion if found.model or not rows else None
    target.answer(found, render.table(("operation", "entry", "why", "text"), rows), conclusion)
    if found.model:
        target.say(f"Concluded by {found.model} from {', '.join(found.cited)}.")
    elif found.problem:
        target.say(f"No model concluded anything: {found.problem}")
    target.say(f"{counted(len(rows), 'steps')}, confidence {found.confidence:.2f}")
