"""`wellworn reflect`, `wellworn jobs` and `wellworn cost`: sessions become memories; the work; what models cost."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from wellworn.cli import options, render
from wellworn.cli.target import Target, with_target
from wellworn.core.errors import InvalidInput
from wellworn.core.values import Job

if TYPE_CHECKING:
    from wellworn.reflection.report import Reflection

verbs = typer.Typer()
jobs = typer.Typer(no_args_is_help=True, help="Work in the background: list it, run it, give it another try.")


@verbs.command("reflect", epilog="Example: wellworn reflect --dry-run --user ada")
@with_target
def reflect(
    target: Target,
    session_id: options.SessionId = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be written, and write nothing.")] = False,
    again: Annotated[bool, typer.Option("--again", help="Also what was reflected on before.")] = False,
    llm: options.LlmName = None,
) -> None:
    """Turn what was said into memories: one session, or every session not read yet.

    Each memory names the turns that say it. What is known already is folded in; what has changed is superseded.
    """
    with target.open(llm=llm, background=False) as memory, render.progress_bar("reflecting") as progress:
        done = memory.reflect(
            scope=target.scope, session_id=session_id, dry_run=dry_run, again=again, progress=progress
        )
    if target.json:
        render.print_json({"reflections": done})
        return
    out = render.console()
    for reflection in done:
        out.print(_table(reflection))
        _say(reflection)
    if not done:
        render.say(f"nothing new to reflect on for {target}")


def _table(reflection: Reflection) -> object:
    rows = [
        (
            written.action,
            ", ".join(str(number) for number in written.turns),
            f"{written.text}\n  was: {written.old_text}"
            if written.old_text != written.text and written.old_text
            else written.text,
        )
        for written in reflection.memories
    ]
    return render.row_table((reflection.session_id, "turns", "memory"), rows)


def _say(reflection: Reflection) -> None:
    would = "would write" if reflection.dry_run else "wrote"
    counts = ", ".join(f"{n} {action}" for action, n in reflection.counts().items()) or "nothing"
    render.say(f"{reflection.session_id}: {would} {counts} (by {reflection.by})")
    if reflection.dropped:
        dropped = ", ".join(f"{n} {reason}" for reason, n in reflection.dropped.items())
        render.say(f"{reflection.session_id}: dropped {dropped}")
    if reflection.fallback:
        render.say(f"{reflection.session_id}: rules answered instead of the model: {reflection.fallback}")


@jobs.command("list", epilog="Example: wellworn jobs list --state dead")
@with_target
def list_(
    target: Target,
    state: Annotated[
        str | None, typer.Option("--state", metavar="STATE", help="queued, running, done or dead.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most so many.")] = 50,
) -> None:
    """List the tenant's jobs, newest first."""
    with target.open(background=False) as memory:
        found = memory.jobs.list(scope=target.scope, state=state, limit=limit)  # type: ignore[arg-type]
    if target.json:
        render.print_json({"jobs": found})
    else:
        render.console().print(_job_table(found))


def _job_table(found: Iterable[Job]) -> object:
    columns = ("job", "kind", "what", "state", "tries", "due", "why")
    return render.row_table(
        columns,
        [
            (job.id, job.kind, job.key, job.state, job.attempts, job.due_at.isoformat(timespec="minutes"), job.error)
            for job in found
        ],
    )


@jobs.command("retry", epilog="Example: wellworn jobs retry --all")
@with_target
def retry(
    target: Target,
    id: Annotated[str | None, typer.Argument(metavar="JOB", help="The job's id.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every dead job of the tenant.")] = False,
) -> None:
    """Queue dead jobs again; `wellworn jobs run` then tries them."""
    if (id is None) == (not all_):
        raise InvalidInput("retry", "not exactly one of JOB and --all", "say which job, or --all")
    with target.open(background=False) as memory:
        retried = memory.jobs.retry(scope=target.scope, id=id)
    if target.json:
        render.print_json({"retried": retried})
    else:
        render.say(f"queued {retried} {'job' if retried == 1 else 'jobs'} again")


@jobs.command("run", epilog="Example: wellworn jobs run --llm ollama:llama3.2")
@with_target
def run(
    target: Target,
    llm: options.LlmName = None,
    summarizer: options.SummarizerName = None,
    idle_minutes: Annotated[
        float, typer.Option("--idle-minutes", min=0, help="End sessions that had no turn for so long.")
    ] = 30.0,
    watch: Annotated[bool, typer.Option("--watch", help="Go on for ever, as a worker; Ctrl-C ends it.")] = False,
    poll: Annotated[float, typer.Option("--poll", min=0.1, help="Seconds between looks with --watch.")] = 5.0,
) -> None:
    """Run what is due for every tenant: end idle sessions, reflect, summarise, consolidate."""
    import time

    from wellworn.reflection.settings import ReflectionSettings
    from wellworn.tasks import ReasoningBank

    settings = ReflectionSettings(idle_minutes=idle_minutes)
    with (
        target.open(llm=llm, summarizer=summarizer, reflection=settings, background=False) as memory,
        render.progress_bar("running jobs") as progress,
    ):
        ReasoningBank(memory)  # consolidations are jobs, too
        done = memory.jobs.run(progress=progress)
        while watch:
            time.sleep(poll)
            done += memory.jobs.run(progress=progress)
    if target.json:
        render.print_json({"done": done})
    else:
        render.say(f"ran {done} {'job' if done == 1 else 'jobs'}")


@verbs.command("cost", epilog="Example: wellworn cost --by day --since 2026-05-01")
@with_target
def cost(
    target: Target,
    by: Annotated[
        list[str] | None,
        typer.Option("--by", metavar="WHAT", help="tenant, purpose, model or day; repeat it. Default purpose, model."),
    ] = None,
    since: options.Since = None,
) -> None:
    """Print what language models were asked and what it cost, for the tenant."""
    groups = by or ["purpose", "model"]
    with target.open(background=False) as memory:
        found = memory.admin.costs(scope=target.scope, since=since, by=groups)
    if target.json:
        render.print_json({"by": groups, "spent": found})
        return
    columns = (*groups, "calls", "failed", "tokens in", "tokens out", "USD", "seconds")
    rows = [
        (
            *spent.key,
            spent.calls,
            spent.failed,
            spent.input_tokens,
            spent.output_tokens,
            f"{spent.usd:.4f}",
            f"{spent.seconds:.1f}",
        )
        for spent in found
    ]
    render.console().print(render.row_table(columns, rows))
    if not found:
        render.say(f"no model was asked for tenant {target.scope.tenant}")
