"""`wellworn jobs`: durable background work. List it, run it, retry it."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from wellworn.cli import options, render
from wellworn.cli.options import command
from wellworn.cli.target import Target
from wellworn.core.errors import InvalidInput

POLL_S = 5.0
"""Between the looks of `--watch`."""
app = typer.Typer(no_args_is_help=True, help="Background work: list it, run it, retry it.")


@command(app, "list", "jobs list --state dead")
def list_(
    target: Target,
    state: Annotated[
        str | None, typer.Option("--state", metavar="STATE", help="queued, running, done or dead.")
    ] = None,
    limit: options.Limit = 50,
) -> None:
    """List the tenant's jobs, newest first."""
    with target.open() as memory:
        found = memory.jobs.list(limit=limit, **options.given(state=state))
    rows = [(job.id, job.kind, job.key, job.state, job.attempts, job.due_at, job.error) for job in found]
    target.answer({"jobs": found}, render.table(("job", "kind", "what", "state", "tries", "due", "error"), rows))
    if not found:
        target.say("No jobs.")


@command(app, "run", "jobs run --llm ollama:llama3.2")
def run(
    target: Target,
    llm: options.LlmName = None,
    summarizer: options.SummarizerName = None,
    watch: Annotated[bool, typer.Option("--watch", help="Keep running as a worker, until Ctrl-C.")] = False,
    all_tenants: Annotated[bool, typer.Option("--all-tenants", help="Of every tenant, with the same models.")] = False,
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
    target.say(f"Ran {render.count(done, 'job')}.")


@command(app, "retry", "jobs retry --all")
def retry(
    target: Target,
    id: Annotated[str | None, typer.Argument(metavar="JOB", help="The job's id.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every dead job of the tenant.")] = False,
) -> None:
    """Queue dead jobs again; `wellworn jobs run` then runs them."""
    if (id is None) == (not all_):
        raise InvalidInput("retry", "needs either JOB or --all", "see `wellworn jobs list --state dead`")
    with target.open() as memory:
        retried = memory.jobs.retry(id=id)
    target.answer({"retried": retried})
    target.say(f"Queued {render.count(retried, 'job')} again.")
