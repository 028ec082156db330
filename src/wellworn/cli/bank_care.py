"""`wellworn bank consolidate|runs|review|share|revoke|learn-from`: look after what agents learned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from wellworn.cli import options, render
from wellworn.cli.ask import confirm
from wellworn.cli.target import Target, with_target
from wellworn.core.errors import InvalidInput

if TYPE_CHECKING:
    from wellworn.tasks.consolidate import Consolidation
    from wellworn.tasks.review import Review
    from wellworn.tasks.sharing import Share

verbs = typer.Typer()

PartitionLayer = Annotated[
    str | None, typer.Option("--layer", metavar="LAYER", help="Whose entries; default the agent, else the home layer.")
]
WithAgents = Annotated[
    list[str] | None, typer.Option("--with", metavar="AGENT", help="An agent of the tenant, by name; repeat it.")
]
ToLayer = Annotated[str | None, typer.Option("--to", metavar="LAYER", help="team, org or company of the scope.")]


@verbs.command("consolidate", epilog="Example: wellworn bank consolidate --agent solver --dry-run")
@with_target
def consolidate(
    target: Target,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and do nothing.")] = False,
    layer: PartitionLayer = None,
) -> None:
    """Merge duplicates, resolve contradictions or put them up for review, decay, prune, promote.

    Doing it twice changes nothing the second time. Entries as they stood stay in their history.
    """
    from wellworn.tasks import ReasoningBank

    with target.open(background=False) as memory, render.progress_bar("consolidating") as progress:
        run = ReasoningBank(memory, scope=target.scope).consolidate(layer=layer, dry_run=dry_run, progress=progress)
    if target.json:
        render.print_json(run)
        return
    rows = [(each.action, each.id, each.other, each.why) for each in run.decisions]
    if rows:
        render.console().print(render.row_table(("done" if not dry_run else "would do", "entry", "other", "why"), rows))
    would = "would make" if dry_run else "made"
    render.say(f"looked at {run.entries} entries in {run.seconds:.2f} s and {would} {_counts(run)}")
    if not dry_run:
        render.say(f"run {run.id}")


@verbs.command("runs", epilog="Example: wellworn bank runs --agent solver")
@with_target
def runs(
    target: Target,
    layer: PartitionLayer = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most so many.")] = 20,
) -> None:
    """List consolidations, newest first."""
    from wellworn.tasks import ReasoningBank

    with target.open(background=False) as memory:
        found = ReasoningBank(memory, scope=target.scope).consolidation.runs(layer=layer, limit=limit)
    if target.json:
        render.print_json({"runs": found})
        return
    rows = [(run.id, run.at.isoformat(timespec="minutes"), run.state, run.entries, _counts(run)) for run in found]
    if not rows:
        render.say(f"no consolidation yet for {target}; wellworn bank consolidate makes one")
        return
    render.console().print(render.row_table(("run", "when", "state", "entries", "did"), rows))


@verbs.command("review", epilog="Example: wellworn bank review KEY --decide keep_one --keep ID")
@with_target
def review(
    target: Target,
    key: Annotated[str | None, typer.Argument(metavar="KEY", help="The question; all open ones without it.")] = None,
    decide: Annotated[
        str | None,
        typer.Option(
            "--decide", metavar="DECISION", help="keep_both, keep_one, merge, delete; or correct, partial, incorrect."
        ),
    ] = None,
    keep: Annotated[str | None, typer.Option("--keep", metavar="ID", help="The entry that stays.")] = None,
    text: Annotated[str | None, typer.Option("--text", metavar="TEXT", help="Better words.")] = None,
    delete: Annotated[
        list[str] | None, typer.Option("--delete", metavar="ID", help="What goes; default all. Repeat it.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Also questions that were decided.")] = False,
    layer: PartitionLayer = None,
    yes: options.Yes = False,
) -> None:
    """List questions for people, or decide one: entries that contradict each other, and doubtful ones.

    Deleting asks first on a terminal; elsewhere --yes is needed.
    """
    from wellworn.tasks import ReasoningBank

    if (key is None) != (decide is None):
        raise InvalidInput("review", "needs KEY and --decide together", "give both, or neither to list the questions")
    if decide == "delete":
        confirm("bank review", "Delete for good?", no="nothing was deleted", yes=yes)
    with target.open(background=False) as memory:
        reviews = ReasoningBank(memory, scope=target.scope).reviews
        if key is None or decide is None:
            found = reviews.questions(layer=layer, open_only=not every)
        else:
            decided = reviews.decide(key, decide, layer=layer, keep=keep, text=text, ids=delete)
            found = [] if decided is None else [decided]
    if target.json:
        render.print_json({"reviews": found})
    elif key is not None:
        render.say(f"decided: {decide}")
    else:
        _print_reviews(found)


@verbs.command("share", epilog="Example: wellworn bank share ID --agent solver --team ops --to team")
@with_target
def share(
    target: Target,
    ids: Annotated[list[str], typer.Argument(metavar="ID…", help="Promoted strategies or guardrails.")],
    to: ToLayer = None,
    with_: WithAgents = None,
) -> None:
    """Copy promoted entries to a team, org or company, or to named agents: scrubbed, and without their evidence."""
    from wellworn.tasks import ReasoningBank

    with target.open(background=False) as memory:
        shares = ReasoningBank(memory, scope=target.scope).sharing.share(ids, layer=to, agents=with_ or [])
    _print_shares(shares, target)


@verbs.command("revoke", epilog="Example: wellworn bank revoke ID --agent solver")
@with_target
def revoke(
    target: Target,
    id: Annotated[str, typer.Argument(metavar="ID", help="The entry that was shared.")],
    to: ToLayer = None,
    with_: WithAgents = None,
) -> None:
    """Take back what was shared of an entry: everywhere, or from one layer or some agents."""
    from wellworn.tasks import ReasoningBank

    with target.open(background=False) as memory:
        ended = ReasoningBank(memory, scope=target.scope).sharing.revoke(id, layer=to, agents=with_ or [])
    if target.json:
        render.print_json({"revoked": ended})
    else:
        render.say(f"{len(ended)} {'copy' if len(ended) == 1 else 'copies'} no longer hold")


@verbs.command("learn-from", epilog="Example: wellworn bank learn-from solver --agent second")
@with_target
def learn_from(
    target: Target,
    peer: Annotated[str, typer.Argument(metavar="AGENT", help="The agent of the tenant to learn from.")],
    min_confidence: Annotated[
        float, typer.Option("--min-confidence", metavar="0..1", help="Only what it is this sure of.")
    ] = 0.8,
    min_usage: Annotated[int, typer.Option("--min-usage", min=0, help="Only what it used this often.")] = 10,
) -> None:
    """Copy what another agent is sure of and has used to the scope's agent."""
    from wellworn.core.values import Scope
    from wellworn.tasks import ReasoningBank

    other = Scope(tenant=target.scope.tenant, agent=peer)
    with target.open(background=False) as memory:
        shares = ReasoningBank(memory, scope=target.scope).sharing.learn_from_peer(
            other, min_confidence=min_confidence, min_usage=min_usage
        )
    if not shares and not target.json:
        render.say(
            f"agent {peer} has nothing that is this sure and was used this often; see --min-confidence, --min-usage"
        )
        return
    _print_shares(shares, target)


def _counts(run: Consolidation) -> str:
    return ", ".join(f"{number} {action}" for action, number in run.counts.items() if number) or "no change"


def _print_reviews(found: list[Review]) -> None:
    out = render.console()
    for case in found:
        out.print(render.pair_table({"key": case.key, "why": case.reason, "state": case.state, "": case.question}))
        out.print(render.entry_table(case.entries))
    if not found:
        render.say("no open questions")


def _print_shares(shares: list[Share], target: Target) -> None:
    if target.json:
        render.print_json({"shares": shares})
        return
    rows = [(each.id, f"{each.to.layer} {each.to.layer_id}", each.copy_id or "", each.refused) for each in shares]
    render.console().print(render.row_table(("entry", "to", "copy", "refused because it"), rows))
