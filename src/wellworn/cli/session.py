"""`wellworn session`: raw dialogue, kept as ground truth. Verbs: add, end, list, show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from wellworn.cli import render
from wellworn.cli.options import At, LlmName
from wellworn.cli.stdin import json_lines, read_stdin, text_from
from wellworn.cli.target import Target, with_target
from wellworn.core.errors import InvalidInput, NotFound

app = typer.Typer(no_args_is_help=True, help="Raw dialogue: add turns, end a session, list them, show one.")

_FIELDS = ("role", "text", "at", "speaker")


@dataclass(frozen=True, kw_only=True)
class Said:
    """A turn from outside, and where it came from."""

    where: str
    role: str
    text: str
    at: str | None = None
    speaker: str | None = None


@app.command(
    "add", epilog='Example: wellworn session add user "I ran the charity race on Saturday" --session-id 2026-05-01'
)
@with_target
def add(
    target: Target,
    session_id: Annotated[str, typer.Option("--session-id", metavar="ID", help="The dialogue; made when new.")],
    role: Annotated[str | None, typer.Argument(metavar="ROLE", help="user, assistant, or the speaker's name.")] = None,
    text: Annotated[list[str] | None, typer.Argument(metavar="TEXT", help='"-" reads standard input.')] = None,
    at: At = None,
    speaker: Annotated[str | None, typer.Option("--speaker", help="The name, when ROLE is not one.")] = None,
) -> None:
    """Add a turn to a dialogue; it can be recalled at once.

    Without ROLE, reads a whole dialogue from standard input: one JSON object a line with role, text, at, speaker.
    """
    if role is None:
        said = [_said(number, line) for number, line in json_lines(read_stdin())]
    else:
        said = [Said(where="TEXT", role=role, text=text_from(text or []), at=at, speaker=speaker)]
    if not said:
        raise InvalidInput("standard input", "holds no turn", 'one {"role": …, "text": …} a line')
    with target.open(new=True) as memory, render.progress_bar("adding turns") as progress:
        session = memory.session(scope=target.scope, session_id=session_id)
        ids: list[str] = []
        for turn in said:
            try:
                ids.append(session.add(turn.role, turn.text, at=turn.at, speaker=turn.speaker))
            except InvalidInput as error:
                raise InvalidInput(turn.where, str(error), f"{len(ids)} turns before it were added") from error
            progress(len(ids), len(said))
    if target.json:
        render.print_json({"session_id": session_id, "ids": ids})
        return
    render.print_lines(ids)
    render.say(f"added {len(ids)} {'turn' if len(ids) == 1 else 'turns'} to session {session_id} of {target}")


@app.command("end", epilog="Example: wellworn session end 2026-05-01 --user ada")
@with_target
def end(
    target: Target,
    session_id: Annotated[str, typer.Argument(metavar="ID", help="The dialogue's id.")],
    llm: LlmName = None,
    later: Annotated[bool, typer.Option("--later", help="Leave the work to `wellworn jobs run`.")] = False,
) -> None:
    """End a dialogue: what was said becomes memories, which are printed."""
    with target.open(llm=llm, background=False) as memory:
        memory.session(scope=target.scope, session_id=session_id).end()
        done = [] if later else memory.reflect(scope=target.scope, session_id=session_id)
    if target.json:
        render.print_json({"session_id": session_id, "reflections": done})
        return
    for reflection in done:
        render.print_lines(render.visible(f"{one.action}: {one.text}") for one in reflection.memories)
    render.say(f"ended session {session_id} of {target}")


@app.command("list", epilog="Example: wellworn session list --user ada")
@with_target
def list_(target: Target) -> None:
    """List the dialogues of the scope's home layer, oldest first."""
    with target.open() as memory:
        ids = memory.sessions(scope=target.scope)
    if target.json:
        render.print_json({"sessions": ids})
    else:
        render.print_lines(render.visible(session_id) for session_id in ids)


@app.command("show", epilog="Example: wellworn session show 2026-05-01")
@with_target
def show(target: Target, session_id: Annotated[str, typer.Argument(metavar="ID", help="The dialogue's id.")]) -> None:
    """Print the turns of a dialogue, verbatim and in order."""
    with target.open() as memory:
        turns = memory.session(scope=target.scope, session_id=session_id).turns()
    if not turns:
        raise NotFound("session", session_id, "see `wellworn session list`")
    if target.json:
        render.print_json({"session_id": session_id, "turns": turns})
        return
    rows = [(turn.number, turn.at.isoformat(timespec="minutes"), turn.role, turn.text) for turn in turns]
    render.console().print(render.row_table(("turn", "when", "role", "text"), rows))


def _said(number: int, line: dict[str, Any]) -> Said:
    """A line of a dialogue, its names and types checked; the facade checks the values."""
    where = f"line {number}"
    unknown = sorted(set(line) - set(_FIELDS))
    if unknown or "role" not in line or "text" not in line:
        problem = f"has unknown fields {unknown}" if unknown else "has no role or no text"
        raise InvalidInput(where, problem, f"fields are {', '.join(_FIELDS)}")
    for name, value in line.items():
        if not isinstance(value, str) and not (value is None and name in ("at", "speaker")):
            raise InvalidInput(where, f"{name} must be text, not {type(value).__name__}")
    return Said(where=where, **line)
