"""`wellworn hook` and `wellworn mcp`, as a person calls them. What they do is in `agents`."""

from __future__ import annotations

from typing import Annotated

import typer

from wellworn.cli import agents, options
from wellworn.cli.options import command
from wellworn.cli.target import Target

app = typer.Typer(no_args_is_help=True, help="For agents driven from a shell: before and after a task.")
server = typer.Typer()

TaskId = Annotated[
    str | None, typer.Option("--task-id", metavar="ID", help="The task; by default the session_id of the input.")
]
TaskDomain = Annotated[str, typer.Option("--domain", metavar="DOMAIN", help="The task's domain, as web.admin.")]


@command(app, "pre-task", "hook pre-task --task-id t1 --query 'create a user'")
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
    agents.pre_task(target, task_id=task_id, query=query, domain=domain, k=k)


@command(app, "post-task", "hook post-task --task-id t1 --trajectory-file work.json --success")
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
    given = {"trajectory_file": trajectory_file, "success": success, "exit_code": exit_code}
    agents.post_task(target, task_id=task_id, domain=domain, llm=llm, **given)


@command(app, "session-end", "hook session-end")
def session_end(target: Target, llm: options.LlmName = None) -> None:
    """End a session: what its prompts told becomes memories, also where the agent was interrupted before it stopped.

    Reads a JSON object with a session_id from standard input, as Claude Code gives it to SessionEnd hooks. A failing
    memory is a warning and exit code 0.
    """
    agents.session_end(target, llm)


@command(server, "mcp", "mcp --user ada", panel="Agents")
def mcp(target: Target, llm: options.LlmName = None) -> None:
    """Serve the memory over MCP, on standard input and output.

    Clients start it themselves: `wellworn connect claude-code` writes their settings. It ends when they close its input.
    """
    agents.serve_mcp(target, llm)
