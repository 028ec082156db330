"""`wellworn tasks`: what agents learned from their tasks. Find it, judge work, consolidate, review, share."""

from __future__ import annotations

from typing import Annotated

import typer

from wellworn.cli import options, render
from wellworn.cli.edge import DASH, SHAPES, read_object
from wellworn.cli.options import argument, command, flag, option
from wellworn.cli.target import Target, entry_id, entry_ids, opened
from wellworn.core.errors import InvalidInput
from wellworn.core.wellformed import counted

app = typer.Typer(no_args_is_help=True, help="What agents learned from their tasks: strategies and guardrails.")

Domain = Annotated[str | None, option("--domain", "DOMAIN", "Only this domain, as web.admin; web.* for all of web.")]
ItemKind = Annotated[str | None, option("--kind", "KIND", "strategy or guardrail.")]
WithAgents = Annotated[list[str] | None, option("--with", "AGENT", "An agent of the tenant; may be repeated.")]
ToLayer = Annotated[str | None, option("--to", "LAYER", "team, org or company of the scope.")]

BEGIN = "Record a task with `wellworn hook post-task`; --agent names the agent."


@command(app, "status", "tasks status --agent reviewer")
def status(target: Target) -> None:
    """Show how much was learned, how often it was used, and how tasks went."""
    with opened(target) as bank:
        stats = bank.stats()
    rate = stats.success_rate
    values = {**vars(stats), "success_rate": None if rate is None else f"{rate:.0%}"}
    target.answer({**vars(stats), "success_rate": rate}, render.pairs(render.spoken(values)))
    if not stats.items and not stats.tasks:
        target.say(f"Nothing was learned yet for {target}. {BEGIN}")


@command(app, "list", "tasks list --domain 'web.*'")
def list_(target: Target, domain: Domain = None, kind: ItemKind = None, limit: options.Limit = 20) -> None:
    """List strategies and guardrails, the surest first."""
    from wellworn.tasks.items import domain_of, stage_of

    with opened(target) as bank:
        found = bank.items(domain=domain, kind=kind, limit=limit)
    about = [(item.kind, domain_of(item.tags), f"{item.confidence:.2f}", item.usage_count) for item in found]
    rows = [(*one, stage_of(item), f"{item.text}\n{item.id}") for one, item in zip(about, found, strict=True)]
    target.answer({"items": found}, render.table(("kind", "domain", "confidence", "used", "stage", "item"), rows))
    if not found:
        filtered = "No such item; `wellworn tasks status` names the domains."
        target.say(filtered if domain or kind else f"Nothing was learned yet for {target}. {BEGIN}")


@command(app, "retrieve", "tasks retrieve 'create a user' --domain web.admin")
def retrieve(
    target: Target,
    query: Annotated[str, argument("QUERY", "The task.")],
    domain: Domain = None,
    k: Annotated[int, option("-k --k", "N", "How many.", min=1)] = 1,
    kind: ItemKind = None,
    explain: Annotated[bool, flag("--explain", "Show the factors of each score.")] = False,
) -> None:
    """Find what helps with a task."""
    with opened(target) as bank:
        recall = bank.retrieve(query, domain=domain, k=k, kind=kind)
    nothing = "Nothing helps with that; `wellworn tasks list` shows what was learned."
    target.answer(recall, render.hit_table(recall.hits, explain=explain), nothing=nothing)


@command(app, "judge", "tasks judge trajectory.json")
def judge(
    target: Target,
    file: Annotated[str, argument("FILE", 'A trajectory as JSON; "-" reads standard input.')] = DASH,
    items: Annotated[bool, flag("--items", "Also show what it would teach.")] = False,
    llm: options.LlmName = None,
) -> None:
    """Judge whether work succeeded, and why; nothing is stored."""
    given = read_object(file)
    if not given:
        raise InvalidInput("standard input" if file == DASH else file, "is empty", SHAPES)
    with opened(target, new=True, llm=llm) as bank:
        verdict = bank.judge(given)
        found = bank.distill(given, verdict).items if items else []
    values = {
        "verdict": verdict.outcome,
        "confidence": f"{verdict.confidence:.2f}",
        "by": verdict.by,
        "reasons": "\n".join(verdict.reasons),
    }
    rows = [(item.kind, f"{item.title}\n{item.text}") for item in found]
    document = {"verdict": verdict, **({"items": found} if items else {})}
    target.answer(document, render.pairs(values), render.table(("kind", "item"), rows))
    if verdict.fallback:
        target.say(f"Rules answered instead of the model: {verdict.fallback}")


@command(app, "consolidate", "tasks consolidate --agent solver")
def consolidate(target: Target) -> None:
    """Merge duplicates, resolve contradictions or ask for review, decay, prune, promote."""
    with opened(target) as bank:
        run = bank.consolidate()
    rows = [(each.action, each.id, each.other, each.why) for each in run.steps]
    target.answer(run, render.table(("done", "entry", "other", "why"), rows))
    changes = ", ".join(f"{number} {action}" for action, number in run.counts.items()) or "no change"
    target.say(f"Looked at {counted(run.entries, 'entries')} and made {changes}.")


@command(app, "review", "tasks review KEY --decide keep_one --keep ID")
def review(
    target: Target,
    key: Annotated[str | None, argument("KEY", "The question, or the id of an item; all open ones without it.")] = None,
    decide: Annotated[
        str | None, option("--decide", "DECISION", "keep_both or keep_one; correct, partial or incorrect.")
    ] = None,
    keep: Annotated[str | None, option("--keep", "ID", "The entry that stays.")] = None,
    text: Annotated[str | None, option("--text", "TEXT", "A better text.")] = None,
) -> None:
    """List questions that need a person, or decide one: contradictions and doubtful entries."""
    if (key is None) != (decide is None):
        raise InvalidInput("review", "needs KEY and --decide together", "give both, or neither to list the questions")
    with opened(target) as bank:
        if key is not None and decide is not None:
            bank.reviews.decide(key if ":" in key else entry_id(bank.memory, key), decide, keep=keep, text=text)
        found = [] if key else bank.reviews.questions()
    parts: list[object] = []
    for case in found:
        parts += [render.pairs({"key": case.key, "question": case.question}), render.entry_table(case.entries)]
    target.answer({"reviews": [{**vars(case), "key": case.key, "question": case.question} for case in found]}, *parts)
    if not found:
        target.say(f"Decided: {decide}." if key else "No open questions.")


@command(app, "tasks", "tasks tasks --state reinforced")
def tasks(
    target: Target,
    state: Annotated[str | None, option("--state", "STATE", "Only attempts in this state, as reinforced.")] = None,
    limit: options.Limit = 20,
) -> None:
    """List attempts at tasks, newest first: what was asked, how it went, what it taught."""
    with opened(target) as bank:
        found = bank.tasks(state=state, limit=limit)
    about = [(task.created_at, task.task_id, task.state, task.verdict and task.verdict.outcome) for task in found]
    rows = [(*one, len(task.entry_ids), task.query) for one, task in zip(about, found, strict=True)]
    shown = render.table(("when", "task", "state", "verdict", "items", "query"), rows)
    target.answer({"tasks": found}, shown, nothing=f"No tasks for {target}. {BEGIN}")


@command(app, "resume", "tasks resume --agent solver")
def resume(
    target: Target,
    idle_minutes: Annotated[float, option("--idle-minutes", "N", "Only attempts idle for so long.", min=0)] = 60.0,
) -> None:
    """Finish attempts that a crash interrupted, and abandon those whose work is lost."""
    with opened(target) as bank:
        ended = bank.resume(idle_s=60 * idle_minutes)
    rows = [(task.task_id, task.state, len(task.entry_ids), task.why) for task in ended]
    shown = render.table(("task", "state", "items", "why"), rows)
    target.answer({"resumed": ended}, shown, nothing="Nothing was interrupted.")


@command(app, "share", "tasks share 0198c0de-1 --agent solver --team ops --to team")
def share(
    target: Target,
    ids: Annotated[list[str], argument("ID…", "Promoted strategies or guardrails.")],
    to: ToLayer = None,
    with_: WithAgents = None,
) -> None:
    """Copy promoted entries to a team, org or company, or to other agents: scrubbed, without their evidence."""
    with opened(target) as bank:
        shares = bank.sharing.share(entry_ids(bank.memory, ids), layer=to, agents=with_ or [])
    rows = [(each.id, f"{each.to.layer} {each.to.layer_id}", each.copy_id, each.refused) for each in shares]
    target.answer({"shares": shares}, render.table(("entry", "to", "copy", "refused because"), rows))


@command(app, "revoke", "tasks revoke 0198c0de-1 --agent solver")
def revoke(target: Target, id: options.EntryId) -> None:
    """Take back what was shared of an entry."""
    with opened(target) as bank:
        ended = bank.sharing.revoke(entry_id(bank.memory, id))
    target.answer({"revoked": ended})
    target.say(f"Revoked {counted(len(ended), 'copies')}.")
