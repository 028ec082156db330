"""What happens in the background: `wellworn learning`, what recalls have learned from outcomes, and `wellworn jobs`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from wellworn.cli import options, render
from wellworn.cli.edge import confirm, json_lines, read_stdin
from wellworn.cli.options import argument, command, flag, option
from wellworn.cli.target import Target
from wellworn.core.errors import InvalidInput
from wellworn.core.values import Job, LearningStatus
from wellworn.core.wellformed import counted

learning = typer.Typer(no_args_is_help=True, help="What was learned from outcomes: look at it, rebuild it, reset it.")


@command(learning, "status", "learning status --user ada")
def status(target: Target) -> None:
    """Show which ranking serves the user, why, and its weights."""
    with target.open() as memory:
        found = memory.learning.status()
    target.answer(found, *_status(found, target))


@command(learning, "replay", "learning replay --pairs labelled.jsonl")
def replay(
    target: Target,
    pairs: Annotated[
        str | None, option("--pairs", "PATH", 'Labelled queries to learn from first; "-" reads standard input.')
    ] = None,
) -> None:
    """Learn again from the tenant's log, and show where it leads; the same log gives the same weights.

    Pairs are JSON, one object per line: {"query": …, "ids": [ids of the entries that answer it]}. They replace earlier
    pairs.
    """
    given = None if pairs is None else _pairs(pairs)
    with target.open() as memory:
        found = memory.learning.relearn(pairs=given)
    target.answer(found, *_status(found, target))


@command(learning, "share", "learning share --off --tenant acme")
def share(
    target: Target, on: Annotated[bool, flag("--on/--off", "Whether the tenant's users learn from each other.")]
) -> None:
    """Choose whether a new user starts from what the tenant's other users taught."""
    with target.open() as memory:
        memory.learning.share(on)
    target.answer({"tenant": target.scope.tenant, "shares": on})
    target.say(f"Users of tenant {target.scope.tenant} {'learn' if on else 'do not learn'} from each other.")


@command(learning, "reset", "learning reset --tenant acme --yes")
def reset(target: Target, yes: options.Yes = False) -> None:
    """Drop what the tenant's users taught; earlier outcomes no longer count.

    Asks first on a terminal; elsewhere --yes is needed.
    """
    tenant = f"tenant {target.scope.tenant} in {target.place}"
    confirm("learning reset", f"Drop all that was learned for {tenant}?", no="Nothing was dropped.", yes=yes)
    with target.open() as memory:
        dropped = memory.learning.reset()
    target.answer({"dropped": dropped})
    target.say(f"Dropped {counted(dropped, 'learned states')} of {tenant}.")


def _pairs(path: str) -> list[tuple[str, list[str]]]:
    text = read_stdin() if path == "-" else Path(path).read_text(encoding="utf-8")
    found: list[tuple[str, list[str]]] = []
    for number, line in json_lines(text):
        query, ids = line.get("query"), line.get("ids")
        if not isinstance(query, str) or not isinstance(ids, list) or not all(isinstance(id, str) for id in ids):
            raise InvalidInput(f"line {number}", "is not a pair", 'as in {"query": "…", "ids": ["…"]}')
        found.append((query, ids))
    return found


def _status(found: LearningStatus, target: Target) -> list[object]:
    values = {name: value for name, value in vars(found).items() if name != "weights"}
    return [
        render.pairs(render.spoken({"for": str(target), **values})),
        render.table(("weight", "value"), [(name, f"{value:+.3f}") for name, value in found.weights.items()]),
    ]


POLL_S = 5.0
"""Between the looks of `--watch`."""
jobs = typer.Typer(no_args_is_help=True, help="Background work: list it, run it, retry it.")


@command(jobs, "list", "jobs list --state dead")
def list_jobs(
    target: Target,
    state: Annotated[str | None, option("--state", "STATE", "queued, running, done or dead.")] = None,
    limit: options.Limit = 50,
) -> None:
    """List the tenant's jobs, newest first."""
    with target.open() as memory:
        found = memory.jobs.list(limit=limit, **options.given(state=state))
    rows = [(job.id, job.kind, _what(job), job.state, job.attempts, job.due_at, job.error) for job in found]
    shown = render.table(("job", "kind", "what", "state", "tries", "due", "error"), rows)
    target.answer({"jobs": found}, shown, nothing="No jobs.")


def _what(job: Job) -> str:
    """What a job does, and how far it is where it does so part by part."""
    return f"{job.key}: {job.result['done']:,} of {job.result['total']:,}" if "total" in job.result else job.key


@command(jobs, "run", "jobs run --llm ollama:llama3.2")
def run(
    target: Target,
    llm: options.LlmName = None,
    summarizer: options.SummarizerName = None,
    watch: Annotated[bool, flag("--watch", "Keep running as a worker, until Ctrl-C.")] = False,
    all_tenants: Annotated[bool, flag("--all-tenants", "Of every tenant, with the same models.")] = False,
) -> None:
    """Run what is due for the tenant: end idle sessions, reflect, summarise, consolidate."""
    from wellworn.tasks import ReasoningBank

    tenants = "all" if all_tenants else [target.scope.tenant]
    with (
        target.open(whole=True, llm=llm, summarizer=summarizer, tenants=tenants) as memory,
        render.progress_bar("running jobs") as progress,
    ):
        ReasoningBank(memory)  # consolidations are jobs, too
        done = memory.jobs.run(progress=progress)
        while watch:
            time.sleep(POLL_S)
            done += memory.jobs.run(progress=progress)
    target.answer({"done": done})
    target.say(f"Ran {counted(done, 'jobs')}.")


@command(jobs, "retry", "jobs retry --all")
def retry(
    target: Target,
    id: Annotated[str | None, argument("JOB", "The job's id.")] = None,
    all_: Annotated[bool, flag("--all", "Every dead job of the tenant.")] = False,
) -> None:
    """Queue dead jobs again; `wellworn jobs run` then runs them."""
    if (id is None) == (not all_):
        raise InvalidInput("retry", "needs either JOB or --all", "see `wellworn jobs list --state dead`")
    with target.open() as memory:
        retried = memory.jobs.retry(id=id)
    target.answer({"retried": retried})
    target.say(f"Queued {counted(retried, 'jobs')} again.")
