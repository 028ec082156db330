"""`wellworn hook`: learning from tasks for agents that are driven from a shell.

A hook runs in somebody else's loop: whatever goes wrong here is a warning on standard error and exit code 0. Reads the
transcripts of Claude Code; what it does not understand of them is left out, because the format is not ours.
"""

from __future__ import annotations

import functools
import logging
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wellworn.cli import options, render
from wellworn.cli.edge import DASH
from wellworn.cli.target import Target, command
from wellworn.cli.tasks import opened, read_object
from wellworn.core.errors import InvalidInput, NotFound
from wellworn.core.fence import MIN_CONFIDENCE, fenced_block
from wellworn.core.values import Hit, Kind, Turn, fence_item

if TYPE_CHECKING:
    from wellworn.memory import Memory
    from wellworn.tasks import ReasoningBank, TaskResult, Trajectory

app = typer.Typer(no_args_is_help=True, help="For agents driven from a shell: before and after a task.")

TaskId = Annotated[
    str | None, typer.Option("--task-id", metavar="ID", help="The task; by default the session_id of the input.")
]
SHOWN = ("task_id", "id", "state", "verdict", "entry_ids", "fault")
SAY = "give --success, --failure or --exit-code, or a step with ok, error or exit_code"
MAX_PROMPT_CHARS = 20_000
KNOWN = 3
KNOWN_KINDS: tuple[Kind, ...] = ("fact", "preference", "pattern", "note", "summary")
"""What is shown beside strategies and guardrails; earlier prompts by themselves are not."""
TaskDomain = Annotated[str, typer.Option("--domain", metavar="DOMAIN", help="The task's domain, as web.admin.")]


def harmless(command: Callable[..., None]) -> Callable[..., None]:
    """Turn every error of a command into a warning: a failing memory never stops the agent around it."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:  # as the command takes them
        logging.getLogger("wellworn").addHandler(logging.NullHandler())
        try:
            command(*args, **kwargs)
        except (KeyboardInterrupt, typer.Exit):
            raise
        except Exception as error:  # the outermost loop is the agent's own
            message = " ".join(str(error).split())
            typer.echo(f"wellworn: continuing without memory: {type(error).__name__}: {message}", err=True)

    return run


@command(app, "pre-task", "hook pre-task --task-id t1 --query 'create a user'")
@harmless
def pre_task(
    target: Target,
    task_id: TaskId = None,
    query: Annotated[
        str | None, typer.Option("--query", metavar="TEXT", help="The task; by default the prompt of the input.")
    ] = None,
    domain: TaskDomain = "",
    k: Annotated[int, typer.Option("--k", min=1, help="How many items.")] = 1,
) -> None:
    """Print what helps with a task, as a block for its prompt, and record that the task has begun.

    Without --query it reads a JSON object from standard input, as Claude Code gives it to UserPromptSubmit hooks: then it
    also prints what is known that bears on the prompt, and keeps a prompt that tells something. Prints nothing if nothing
    helps. A failing memory is a warning and exit code 0.
    """
    given = {} if query is not None else read_object(DASH)
    asked = (query if query is not None else _word(given, "prompt", "query"))[:MAX_PROMPT_CHARS]
    name = task_id or _word(given, "session_id", "task_id") or "task"
    if not asked.strip():
        raise InvalidInput("--query", "is missing", 'give it, or pipe in {"prompt": …}')
    with opened(target, new=True) as bank:
        bank.abandon(name, why="another task was begun under its name")
        agent = target.scope.agent or ""
        work = bank.begin(task_id=name, query=asked, agent_id=agent, domain=domain, k=k)
        hits = [*work.hits, *(_known(bank.memory, asked, given) if "prompt" in given else ())]
    if target.json:
        render.print_json({"task_id": name, "id": work.task.id if work.task else "", "hits": hits})
    elif hits:
        items = [fence_item(hit.entry, outdated=hit.outdated) for hit in hits]
        sys.stdout.write(fenced_block(items, max_tokens=1500) + "\n")


def _known(memory: Memory, prompt: str, given: Mapping[str, Any]) -> list[Hit]:
    """What is known that bears on a prompt. A prompt that tells something is kept; most only ask for work."""
    from wellworn.reflection.rules import extract

    known = memory.recall(prompt, k=KNOWN, kind=KNOWN_KINDS, min_confidence=MIN_CONFIDENCE).hits
    session = _word(given, "session_id")
    said = Turn(session_id=session, number=0, role="user", text=prompt, at=memory.engine.clock())
    if session and extract([said])[0]:
        memory.session(session).add("user", prompt)
    return known


@command(app, "post-task", "hook post-task --task-id t1 --trajectory-file work.json --success")
@harmless
def post_task(
    target: Target,
    task_id: TaskId = None,
    trajectory_file: Annotated[
        str | None,
        typer.Option("--trajectory-file", metavar="PATH", help='The work as JSON; "-" reads standard input.'),
    ] = None,
    success: Annotated[
        bool | None, typer.Option("--success/--failure", help="How it went; judged if not given.")
    ] = None,
    exit_code: Annotated[
        int | None, typer.Option("--exit-code", metavar="N", help="The exit code of the agent's process.")
    ] = None,
    domain: TaskDomain = "",
    llm: options.LlmName = None,
) -> None:
    """Judge a task that pre-task began, store what it teaches, and update the items it was given.

    Without --trajectory-file it reads a JSON object from standard input: a trajectory, or what Claude Code gives to
    Stop hooks, whose transcript is read; then what the user said in the prompts becomes memories, too. A failing memory
    is a warning and exit code 0.
    """
    given = read_object(trajectory_file or DASH)
    name = task_id or _word(given, "session_id", "task_id") or "task"
    work = _work(given)
    work = work if exit_code is None else replace(work, exit_code=exit_code)
    work = work if success is None else replace(work, verdict=success)
    with opened(target, new=True, llm=llm) as bank:
        if session := _word(given, "session_id"):
            with suppress(NotFound):  # no prompt was kept
                bank.memory.reflect(session)
        out = _finish(bank, name, work, agent=target.scope.agent or "", domain=domain, model=bool(llm))
        bank.run_due()
    if target.json:
        render.print_json(out and {name: getattr(out, name) for name in SHOWN})
    elif out is not None:
        render.say(f"{name}: {out.verdict.outcome}, {len(out.entry_ids)} items learned")
    else:
        render.say(f"{name}: nothing says how it went, so nothing was learned; {SAY}")


def _finish(
    bank: ReasoningBank, name: str, work: Trajectory, *, agent: str, domain: str, model: bool
) -> TaskResult | None:
    """Finish the task that was begun, or else record the work by itself; None if nothing says how it went.

    The judge counts work without a sign as failed. Without a model such failures would teach nothing.
    """
    from wellworn.tasks.judge import judge as judged

    if not model and not judged(work).teaches:
        bank.abandon(name, why="nothing says how it went")
        return None
    try:
        return bank.finish(name, work)
    except NotFound:
        if not work.query.strip():
            remedy = 'begin it with wellworn hook pre-task, or pipe in the work with its "query"'
            raise NotFound("task under way", name, remedy) from None
        return bank.record(work, task_id=name, agent_id=agent, domain=domain)


def _word(given: Mapping[str, Any], *names: str) -> str:
    return next((str(given[name]) for name in names if isinstance(given.get(name), str)), "")


def _work(given: Mapping[str, Any]) -> Trajectory:
    from wellworn.cli.transcripts import read_transcript
    from wellworn.tasks import trajectory_of

    if isinstance(given.get("transcript_path"), str):
        return read_transcript(Path(given["transcript_path"]).expanduser())
    return trajectory_of({name: value for name, value in given.items() if name not in ("task_id", "session_id")})
