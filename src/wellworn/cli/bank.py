"""`wellworn bank`: what was learned from tasks; found, shown, judged, and a demonstration."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wellworn.cli import bank_care, options, render
from wellworn.cli.guard import guarded
from wellworn.cli.stdin import DASH, read_stdin
from wellworn.cli.target import JsonFlag, Target, with_target
from wellworn.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from wellworn.core.values import Entry
    from wellworn.tasks.items import Stage

app = typer.Typer(no_args_is_help=True, help="What agents learned from their tasks: strategies and guardrails.")
app.add_typer(bank_care.verbs)

Domain = Annotated[
    str | None,
    typer.Option("--domain", metavar="DOMAIN", help="Only of this domain, as web.admin; web.* for all below web."),
]
ItemKind = Annotated[str | None, typer.Option("--kind", metavar="KIND", help="strategy or guardrail.")]

BEGIN = "it begins with ReasoningBank.run_task or wellworn hook post-task; --agent says whose it is"


@app.command("status", epilog="Example: wellworn bank status --agent reviewer")
@with_target
def status(target: Target) -> None:
    """Print how much was learned, how often it was used, and how tasks went."""
    from wellworn.tasks import ReasoningBank

    with target.open(background=False) as memory:
        stats = ReasoningBank(memory, scope=target.scope).stats()
    if target.json:
        render.print_json({**vars(stats), "success_rate": stats.success_rate})
        return
    rate = "" if stats.success_rate is None else f"{stats.success_rate:.0%}"
    pairs = {
        "items": f"{stats.items} ({_counts(stats.by_kind)})",
        "domains": _counts(stats.by_domain),
        "stages": _counts(stats.by_stage),
        "mean confidence": f"{stats.mean_confidence:.2f}",
        "uses": stats.uses,
        "tasks": f"{stats.tasks} ({_counts(stats.by_state)})",
        "runs of several attempts": stats.runs,
        "successes": f"{stats.successes} of {stats.successes + stats.failures} {rate}".rstrip(),
    }
    render.console().print(render.pair_table(pairs))
    if not stats.items and not stats.tasks:
        render.say(f"nothing was learned yet for {target}; {BEGIN}")


@app.command("list", epilog="Example: wellworn bank list --domain 'web.*' --sort usage")
@with_target
def list_(
    target: Target,
    domain: Domain = None,
    kind: ItemKind = None,
    sort: Annotated[
        str, typer.Option("--sort", metavar="ORDER", help="confidence, usage or created; the largest first.")
    ] = "confidence",
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most so many.")] = 20,
) -> None:
    """List strategies and guardrails."""
    from wellworn.tasks import ReasoningBank

    with target.open(background=False) as memory:
        bank = ReasoningBank(memory, scope=target.scope)
        found = bank.items(domain=domain, kind=kind, sort=sort, limit=limit)
        stage = bank.consolidation.stages()
    if target.json:
        render.print_json({"items": found})
    elif found:
        render.console().print(_item_table(found, stage))
    elif domain or kind:
        render.say(f"nothing of that domain and kind for {target}; wellworn bank status names the domains")
    else:
        render.say(f"nothing was learned yet for {target}; {BEGIN}")


@app.command("show", epilog="Example: wellworn bank show ID")
@with_target
def show(target: Target, id: options.EntryId) -> None:
    """Print one strategy or guardrail: what it says, what it rests on, how it did."""
    from wellworn.tasks import ReasoningBank
    from wellworn.tasks.items import origin_of

    with target.open(background=False) as memory:
        bank = ReasoningBank(memory, scope=target.scope)
        entry = bank.item(id)
        stage = bank.consolidation.stages()(entry)
    origin = origin_of(entry)
    if target.json:
        render.print_json({"item": entry, "origin": origin, "stage": stage})
        return
    pairs = {
        "id": entry.id,
        "kind": entry.kind,
        "title": entry.title,
        "text": entry.text,
        "evidence": entry.evidence,
        "domain": "" if origin is None else origin.domain,
        "stage": stage,
        "state": entry.state,
        "confidence": f"{entry.confidence:.2f}",
        "used": f"{entry.usage_count} times, {entry.success_count} successes, {entry.failure_count} failures",
        "learned from": "" if origin is None else f"task {origin.task} ({origin.outcome}), by {origin.by}",
        "learned again": entry.repeats,
        "created": entry.created_at,
    }
    render.console().print(render.pair_table(pairs))


@app.command("retrieve", epilog="Example: wellworn bank retrieve 'create a user' --domain web.admin")
@with_target
def retrieve(
    target: Target,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="The task.")],
    domain: Domain = None,
    k: Annotated[int, typer.Option("--k", min=1, help="How many.")] = 1,
    kind: ItemKind = None,
    min_confidence: Annotated[
        float, typer.Option("--min-confidence", metavar="0..1", help="Leave out what is less sure.")
    ] = 0.3,
    explain: Annotated[bool, typer.Option("--explain", help="Every factor of the score.")] = False,
) -> None:
    """Find what helps with a task."""
    from wellworn.tasks import ReasoningBank

    with target.open(background=False) as memory:
        bank = ReasoningBank(memory, scope=target.scope)
        recall = bank.retrieve(query, domain=domain, k=k, kind=kind, min_confidence=min_confidence)
    if target.json:
        render.print_json(recall)
        return
    if recall.hits:
        render.console().print(render.hit_table(recall.hits, explain=explain))
    else:
        render.say(f"nothing helps with that for {target}; wellworn bank list shows what was learned")


@app.command("judge", epilog="Example: wellworn bank judge trajectory.json")
@with_target
def judge(
    target: Target,
    file: Annotated[str, typer.Argument(metavar="FILE", help='A trajectory as JSON; "-" reads standard input.')] = DASH,
    items: Annotated[bool, typer.Option("--items", help="Also show what it would teach.")] = False,
    llm: options.LlmName = None,
) -> None:
    """Say whether work succeeded, and why. Nothing is kept."""
    from wellworn.tasks import ReasoningBank

    given = _trajectory(file)
    with target.open(new=True, llm=llm, background=False) as memory:
        bank = ReasoningBank(memory, scope=target.scope)
        verdict = bank.judge(given)
        found = bank.distill(given, verdict).items if items else []
    if target.json:
        render.print_json({"verdict": verdict, **({"items": found} if items else {})})
        return
    pairs = {"verdict": verdict.outcome, "confidence": f"{verdict.confidence:.2f}", "by": verdict.by}
    render.console().print(render.pair_table({**pairs, "reasons": "\n".join(verdict.reasons)}))
    if items:
        rows = [(item.kind, f"{item.title}\n{item.text}") for item in found]
        render.console().print(render.row_table(("kind", "item"), rows))
    if verdict.fallback:
        render.say(f"rules answered instead of the model: {verdict.fallback}")


@app.command("demo", epilog="Example: wellworn bank demo")
@guarded
def demo(json: JsonFlag = False) -> None:
    """Watch an agent learn a service's conventions from its own failures, with and without the bank.

    Needs no key and no network; leaves nothing behind.
    """
    from wellworn.cli.demo.bank import tell_bank

    shown = tell_bank()
    if json:
        render.print_json(shown)
        return
    rows = [
        (each["number"], each["task"], _mark(each["without"]), _mark(each["with"]), each["given"])
        for each in shown["tasks"]
    ]
    columns = ("#", "task", "without", "with bank", "what the bank gave")
    out = render.console()
    out.print(render.row_table(columns, rows))
    out.print(
        render.row_table(
            ("learned", "confidence", "used"),
            [(item["text"], f"{item['confidence']:.2f}", item["used"]) for item in shown["items"]],
        )
    )
    render.say(f"without the bank {shown['without']} of {shown['count']} succeeded, with it {shown['with']}")


def _mark(success: bool) -> str:
    return "success" if success else "failure"


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{n} {name}" for name, n in counts.items()) or "none"


def _item_table(found: list[Entry], stage: Callable[[Entry], Stage]) -> Any:  # a table
    from wellworn.tasks.items import domain_of

    rows = [
        (
            entry.kind,
            domain_of(entry.tags),
            f"{entry.confidence:.2f}",
            entry.usage_count,
            stage(entry),
            f"{entry.text}\n{entry.id}",
        )
        for entry in found
    ]
    return render.row_table(("kind", "domain", "sure", "used", "stage", "item"), rows)


def _trajectory(file: str) -> Any:  # any JSON value
    import json

    text = read_stdin() if file == DASH else Path(file).read_text(encoding="utf-8-sig")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        where = "standard input" if file == DASH else file
        raise InvalidInput(
            where,
            "is empty" if not text.strip() else "is not JSON",
            'as in {"query": …, "steps": [{"tool": …, "args": {}}]}',
        ) from None
