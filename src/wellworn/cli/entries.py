"""Commands on entries: remember, edit, forget, outcome, link, unlink, supersede; then those that read: recall, show, list,
assemble, reason."""

from __future__ import annotations

from collections import Counter
from io import StringIO
from typing import TYPE_CHECKING, Annotated

import typer

from wellworn.cli import options, render
from wellworn.cli.edge import confirm, read_stdin, text_from
from wellworn.cli.options import CONNECT, EVERYDAY, argument, command, flag, option
from wellworn.cli.target import Target, entry_id, entry_ids, recall_id
from wellworn.core.errors import InvalidInput, NotFound
from wellworn.core.plain import to_plain
from wellworn.core.values import LINK_TYPES, Recall
from wellworn.core.wellformed import counted

if TYPE_CHECKING:
    from wellworn.memory import Memory

app = typer.Typer()


@command(app, "remember", 'remember "Ada prefers tokio." --kind preference --tag rust', panel=EVERYDAY)
def remember(
    target: Target,
    text: options.Text = None,
    lines: Annotated[bool, flag("--lines", "Make one entry per line.")] = False,
    kind: options.Kind = None,
    tag: options.NewTags = None,
    title: options.Title = None,
    session_id: options.SessionId = None,
    layer: options.LayerName = None,
    at: options.At = None,
    trust: Annotated[str | None, option("--trust", "LEVEL", "trusted or untrusted.")] = None,
) -> None:
    """Remember a text and print the ids of its entries.

    Without TEXT it reads standard input. A long text becomes several entries. A text that is known already is
    strengthened, not stored twice.
    """
    given = text_from(text)
    texts = [line.rstrip("\n") for line in StringIO(given, None) if line.strip()] if lines else [given]
    if not any(one.strip() for one in texts):  # before a new file is made
        raise InvalidInput("TEXT", "is empty", "give it as an argument, or pipe it in")
    about = options.given(kind=kind, tags=tag, title=title, session_id=session_id, layer=layer, at=at, trust=trust)
    with target.open(new=True) as memory, render.progress_bar("remembering") as progress:
        ids = memory.remember_many(texts, progress=progress, **about)
    target.answer({"ids": ids}, *ids)
    target.say(f"Remembered {counted(len(ids), 'entries')} for {target} in {target.place}.")


@command(app, "edit", 'edit 0198c0de-1 --text "Ada prefers smol." --tag rust', panel=EVERYDAY)
def edit(
    target: Target,
    id: options.EntryId,
    text: Annotated[str | None, option("--text", "TEXT", '"-" reads standard input.')] = None,
    title: options.Title = None,
    tag: Annotated[list[str] | None, option("--tag", "TAG", "Replaces all tags; may be repeated.")] = None,
    no_tags: Annotated[bool, flag("--no-tags", "Remove all tags.")] = False,
    kind: options.Kind = None,
    state: Annotated[str | None, option("--state", "STATE", "active, superseded, flagged or pruned.")] = None,
) -> None:
    """Change an entry; `show --history` keeps the earlier version."""
    if tag and no_tags:
        raise InvalidInput("edit", "--tag and --no-tags were given", "give one of them")
    text = read_stdin() if text == "-" else text
    changes = options.given(text=text, title=title, tags=tag, kind=kind, state=state)
    if no_tags:
        changes["tags"] = []
    if not changes:
        raise InvalidInput("edit", "nothing to change", "give --text, --title, --tag or another option")
    with target.open() as memory:
        entry = memory.edit(entry_id(memory, id), **changes)
    target.answer(entry, render.entry_table([entry]))


@command(app, "forget", "forget --everything --user ada --yes", panel=EVERYDAY)
def forget(
    target: Target,
    ids: options.EntryIds = None,
    session_id: options.SessionId = None,
    everything: Annotated[bool, flag("--everything", "All of the user (or of the most specific layer named).")] = False,
    layer: options.LayerName = None,
    turns: Annotated[
        bool | None, flag("--turns/--no-turns", "Also raw turns; the default unless IDs are given.")
    ] = None,
    yes: options.Yes = False,
) -> None:
    """Remove entries for good and print a receipt.

    Give entry IDs, --session-id or --everything. Asks first on a terminal; elsewhere --yes is needed.
    """
    if [bool(ids), session_id is not None, everything].count(True) != 1:
        raise InvalidInput("forget", "needs one of IDs, --session-id, --everything", "say what to forget")
    home = (target.named if everything else target.scope).home(layer)
    where = f"{home.layer} {home.layer_id} (tenant {home.tenant})"
    with target.open() as memory:
        exact = entry_ids(memory, ids or [])
        older = [id for one in exact for id in _replaced_with(memory, one) if id not in exact]  # and each exists
        all_of = f"{'everything' if everything else f'session {session_id}'} of {where}"
        what = counted(len(exact), "entries") if ids else all_of
        confirm("forget", f"Forget {what} in {target.place} for good?", no="Nothing was forgotten.", yes=yes)
        chosen = options.given(ids=exact, session_id=session_id, layer=layer, turns=turns)
        receipt = memory.forget(everything=everything, **chosen)
    removed = {name.replace("_", " "): n for name, n in vars(receipt).items() if isinstance(n, int) and n}
    if not removed.keys() - {"scrubbed"}:
        what, name = ("session", session_id) if session_id is not None else ("data of", f"{home.layer} {home.layer_id}")
        raise NotFound(what, name, "nothing was forgotten")
    left = {f"kept: {name}": n for name, n in receipt.kept.items()}
    target.answer(receipt, render.pairs({"entries": receipt.entries, **removed, **left, "at": receipt.at}))
    if older:
        target.say(f"What it replaced is still kept; to remove that too: `wellworn forget {' '.join(older)}`")


def _replaced_with(memory: Memory, id: str) -> list[str]:
    """The outdated entries that an entry replaced."""
    older = [link.target for link in memory.links(id) if (link.type, link.source) == ("supersedes", id)]
    return [one for one in older if memory.get(one).state == "superseded"]


@command(app, "outcome", "outcome --last --cited 0,2", panel=EVERYDAY)
def outcome(
    target: Target,
    recall: Annotated[str | None, argument("RECALL", "The recall's id, or the beginning of it.")] = None,
    last: Annotated[bool, flag("--last", "The last recall of this user.")] = False,
    cited: Annotated[str | None, option("--cited", "N,N,…", "Places of the useful hits, from 0.")] = None,
    none: Annotated[bool, flag("--none", "No hit was useful.")] = False,
    used: Annotated[float | None, option("--used", "0..1", "How useful the hits were.")] = None,
    ignored: Annotated[bool, flag("--ignored", "Nobody looked at the hits.")] = False,
    refined: Annotated[str | None, option("--refined", "TEXT", "The query used instead.")] = None,
    success: Annotated[
        bool | None, flag("--success/--failure", "How the task ended that the hits were used for.")
    ] = None,
) -> None:
    """Report how a recall turned out, so that later recalls get better.

    Name the recall or give --last, and choose one of the other options. The same outcome counts once.
    """
    if none and cited is not None:
        raise InvalidInput("outcome", "--none and --cited were given", "give one of them")
    if (recall is None) == (not last):
        raise InvalidInput("outcome", "needs either RECALL or --last", "`wellworn recall` prints the id of each recall")
    places = [] if none else _places(cited)
    with target.open() as memory:
        id = recall_id(memory, recall)
        counted = memory.outcome(id, cited=places, used=used, ignored=ignored, refined=refined, success=success)
    target.answer({"recall_id": id, "counted": counted})
    target.say("Counted." if counted else "It was counted already.")


LinkTypeName = Annotated[str, argument("TYPE", f"One of {', '.join(LINK_TYPES)}.")]
Source = Annotated[str, argument("SOURCE", "The entry where the link starts.")]
Goal = Annotated[str, argument("TARGET", "The entry where it ends.")]


@command(app, "link", "link 0198c0de-1 supports 0198c0df-2", panel=CONNECT)
def link(target: Target, source: Source, type: LinkTypeName, goal: Goal) -> None:
    """Link two entries, read as "SOURCE TYPE TARGET"."""
    with target.open() as memory:
        start, end = entry_ids(memory, (source, goal))
        made = memory.link(start, end, **options.given(type=type))
    target.answer(made, render.link_table([made]))


@command(app, "unlink", "unlink 0198c0de-1 supports 0198c0df-2", panel=CONNECT)
def unlink(target: Target, source: Source, type: LinkTypeName, goal: Goal) -> None:
    """Remove a link. Without a "supersedes" link the older entry holds again."""
    with target.open() as memory:
        start, end = entry_ids(memory, (source, goal))
        ended = memory.get(end).state
        if not memory.unlink(start, end, **options.given(type=type)):
            raise NotFound("link", f"{source} {type} {goal}", f"see `wellworn show {goal}`")
        entry = memory.get(end)
    target.answer({"removed": True})
    target.say(f"Removed. This holds again: {entry.text}" if ended != entry.state else "Removed.")


@command(app, "supersede", "supersede 0198c0de-1 0198c0df-2 --at 2026-05-01", panel=CONNECT)
def supersede(
    target: Target,
    old: Annotated[str, argument("OLD", "The entry that no longer holds.")],
    new: Annotated[str, argument("NEW", "The entry that replaces it.")],
    at: options.At = None,
    wrong: Annotated[bool, flag("--wrong", "The old one was never true.")] = False,
) -> None:
    """Replace an entry with another; the old one is still found for times before.

    With --wrong the old one is not found for any time.
    """
    with target.open() as memory:
        before, after = entry_ids(memory, (old, new))
        entry = memory.supersede(before, after, at=at, wrong=wrong)
    target.answer(entry, render.entry_table([entry]))
    target.say(f"To take it back: `wellworn unlink {after} supersedes {before}`")


def _places(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInput("--cited", f"{text!r} is not a list of places", "as in 0,2; --none if none was") from None


# -- reading -----------------------------------------------------------------------------------------------------------


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
        shown = [hit.entry.id for hit in found if hit.outdated or as_of is None]
        newer = {id: memory.engine.changer.replacements(id, scope=target.scope) for id in shown}
    logged = not memory.engine.learner.log.failed
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
        _say_recall(found, target, logged=logged)


def _say_recall(found: Recall, target: Target, *, logged: bool) -> None:
    how = "" if found.route == "hybrid" else f", route {found.route}"
    entries = counted(found.searched, "entries")
    target.say(f"{len(found.hits)} of {entries} for {target}{how}, {1000 * found.cost.seconds:.1f} ms")
    if found.hits and found.confidence is not None:
        target.say(f"Confidence {found.confidence:.2f}: {render.likelihood(found.confidence)}.")
    if found.cut:
        target.say("The deadline cut the search short; with more time there may be more.")
    elif not found.searched:
        target.say("No entry matches; `wellworn list` shows what there is.")
    elif found.hits and logged:
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
    partition = entry.partition
    values = render.spoken({name: value for name, value in vars(entry).items() if name != "partition"})
    values["layer"] = f"{partition.layer} {partition.layer_id} (tenant {partition.tenant})"
    document = {"entry": entry, "links": links, **({"history": versions} if history else {})}
    target.answer(document, render.pairs(values), render.link_table(links), render.version_table(versions))


command(app, "get", "get 0198c0de-1", hidden=True)(show)


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
        more = len(entries) == limit and bool(memory.entries(limit=1, offset=limit, **filters))
    nothing = f"No entries for {target} in {target.place}."
    target.answer({"entries": entries, "more": more}, render.entry_table(entries), nothing=nothing)
    if more:
        target.say(f"These are the oldest {limit}; --limit {limit * 10} shows more.")


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
