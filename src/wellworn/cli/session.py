"""`wellworn session`, raw dialogue kept as ground truth; `wellworn reflect`, which turns it into memories; and `wellworn
chat`, a conversation in the terminal, whose work is done by `integrations.conversation`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wellworn.cli import options, render
from wellworn.cli.edge import decoded, json_lines, read_stdin, text_from
from wellworn.cli.options import EVERYDAY, argument, command, flag, option
from wellworn.cli.target import Target
from wellworn.core.dataclass import dataclass
from wellworn.core.errors import InvalidInput, NotFound, WellwornError
from wellworn.core.plain import from_plain
from wellworn.core.wellformed import counted

if TYPE_CHECKING:
    from wellworn.reflection import Reflection


app = typer.Typer(no_args_is_help=True, help="Dialogues: add turns, end, list, show.")
verbs = typer.Typer()

SessionArgument = Annotated[str | None, argument("ID", "The dialogue's id.")]
SessionOption = Annotated[str | None, option("--session-id", "ID", "The same, as other commands take it.")]


@dataclass(frozen=True, kw_only=True)
class GivenTurn:
    """A turn from outside; the facade checks the values."""

    role: str
    text: str
    at: str | None = None
    speaker: str | None = None


@command(app, "add", 'session add user "I ran the charity race on Saturday" --session-id 2026-05-01')
def add(
    target: Target,
    session_id: Annotated[str, option("--session-id", "ID", "The dialogue; made if it is new.")],
    role: Annotated[str | None, argument("ROLE", "user, assistant, or the speaker's name.")] = None,
    text: options.Text = None,
    at: options.At = None,
    speaker: Annotated[str | None, option("--speaker", "NAME", "The name behind a ROLE.")] = None,
) -> None:
    """Add a turn to a dialogue; it can be recalled at once.

    Without ROLE it reads a dialogue from standard input: one JSON object per line with role, text, at, speaker.
    """
    if role is None:
        turns = {f"line {number}": _given_turn(f"line {number}", line) for number, line in json_lines(read_stdin())}
    else:
        turns = {"TEXT": GivenTurn(role=role, text=text_from(text), at=at, speaker=speaker)}
    if not turns:
        raise InvalidInput("standard input", "holds no turn", 'write one {"role": …, "text": …} per line')
    with target.open(new=True) as memory, render.progress_bar("adding turns") as progress:
        session = memory.session(session_id=session_id)
        ids: list[str] = []
        for where, turn in turns.items():
            try:
                ids.append(session.add(**vars(turn)))
            except InvalidInput as error:
                raise InvalidInput(where, str(error), f"{len(ids)} turns before it were added") from error
            progress(len(ids), len(turns))
    target.answer({"session_id": session_id, "ids": ids}, *ids)
    target.say(f"Added {counted(len(ids), 'turns')} to session {session_id} of {target}.")


@command(app, "end", "session end 2026-05-01 --user ada")
def end(
    target: Target,
    id: SessionArgument = None,
    session_id: SessionOption = None,
    llm: options.LlmName = None,
    later: Annotated[bool, flag("--later", "Leave the work to `wellworn jobs run`.")] = False,
) -> None:
    """End a dialogue: what was said becomes memories, which are printed."""
    session_id = _one_of(id, session_id)
    with target.open(llm=llm) as memory:
        memory.session(session_id=session_id).end()
        done = [] if later else memory.reflect(session_id=session_id)
    memories = [f"{one.action}: {one.text}" for reflection in done for one in reflection.memories]
    target.answer({"session_id": session_id, "reflections": done}, *memories)
    target.say(f"Ended session {session_id} of {target}.")


@command(app, "list", "session list --user ada")
def list_(target: Target) -> None:
    """List the dialogues of the user, oldest first."""
    with target.open() as memory:
        store = memory.engine.store
        heads = store.sessions(target.scope.home())
        said = store.last_said(target.scope.home())
    rows = [(head.id, head.turns, said.get(head.id)) for head in heads]
    shown = render.table(("session", "turns", "last"), rows)
    target.answer({"sessions": [head.id for head in heads]}, shown, nothing=f"No sessions for {target}.")


@command(app, "show", "session show 2026-05-01")
def show(target: Target, id: SessionArgument = None, session_id: SessionOption = None) -> None:
    """Show the turns of a dialogue, verbatim and in order."""
    session_id = _one_of(id, session_id)
    with target.open() as memory:
        turns = memory.session(session_id=session_id).turns()
    if not turns:
        raise NotFound("session", session_id, "see `wellworn session list`")
    rows = [(turn.number, turn.at, turn.role, turn.text) for turn in turns]
    target.answer({"session_id": session_id, "turns": turns}, render.table(("turn", "when", "role", "text"), rows))


def _one_of(id: str | None, session_id: str | None) -> str:
    given = [one for one in (id, session_id) if one is not None]
    if len(given) != 1:
        problem = "is named twice" if given else "is missing"
        raise InvalidInput("session", problem, "give its id once, as `wellworn session list` shows it")
    return given[0]


@command(verbs, "reflect", "reflect --user ada", panel=EVERYDAY)
def reflect(
    target: Target,
    session_id: options.SessionId = None,
    again: Annotated[bool, flag("--again", "Also what was reflected on before.")] = False,
    llm: options.LlmName = None,
) -> None:
    """Turn dialogues into memories: one session, or every session that is new.

    Each memory names the turns it rests on. What is known already is merged; what has changed is superseded.
    """
    with target.open(llm=llm) as memory, render.progress_bar("reflecting") as progress:
        done = memory.reflect(session_id=session_id, again=again, progress=progress)
    target.answer({"reflections": done}, *[_written(reflection) for reflection in done])
    for reflection in done:
        _say_reflection(reflection, target)
    if not done:
        target.say(f"Nothing new to reflect on for {target}.")


def _written(reflection: Reflection) -> object:
    before = [f"\n  was: {one.old_text}" if one.old_text not in ("", one.text) else "" for one in reflection.memories]
    rows = [(m.action, m.turns, m.text + was) for m, was in zip(reflection.memories, before, strict=True)]
    return render.table((reflection.session_id, "turns", "memory"), rows)


def _say_reflection(reflection: Reflection, target: Target) -> None:
    counts = ", ".join(f"{n} {action}" for action, n in reflection.counts().items()) or "nothing"
    target.say(f"{reflection.session_id}: wrote {counts} (by {reflection.by})")
    if reflection.dropped:
        dropped = ", ".join(f"{n} {reason}" for reason, n in reflection.dropped.items())
        target.say(f"{reflection.session_id}: rejected {dropped}")
    if reflection.fallback:
        target.say(f"{reflection.session_id}: rules answered instead of the model: {reflection.fallback}")


def _given_turn(where: str, line: dict[str, Any]) -> GivenTurn:
    """A line of a dialogue with its names and types checked."""
    names = [each.name for each in fields(GivenTurn)]
    if unknown := sorted(set(line) - set(names)):
        raise InvalidInput(where, f"has unknown fields {unknown}", f"fields are {', '.join(names)}")
    try:
        return from_plain(GivenTurn, line)
    except ValueError as error:
        raise InvalidInput(where, str(error), f"fields are {', '.join(names)}") from None


YOU = "you> "
LEAVE = ("/quit", "/exit", "/bye", "quit", "exit")


@command(verbs, "chat", "chat --llm ollama:llama3.2 --user ada", panel=EVERYDAY)
def chat(
    target: Target,
    llm: options.LlmName = None,
    session_id: options.SessionId = None,
    k: Annotated[int, option("-k", "N", "Memories to recall per message.", min=1, max=50)] = 5,
) -> None:
    """Chat in the terminal, with memory.

    /help lists what can be typed; /quit ends the conversation, which then becomes memories. Reads standard input, so a
    dialogue can be piped in; it is printed with the answers. Without --llm it answers from memory alone.
    """
    from wellworn.integrations.conversation import Conversation
    from wellworn.integrations.loop import MemoryMiddleware

    id = session_id or datetime.now(UTC).strftime("chat-%Y%m%dT%H%M%S")
    with target.open(new=True, llm=llm) as memory:
        middleware = MemoryMiddleware(memory, session_id=id, max_results=k)
        model = memory.admin.model(session_id=id)
        who = f"model {model.name}" if model else "no model, so I answer from memory alone"
        render.say(f"Hello! ({who}; /help for help, /quit to leave)")
        tell = render.say if target.json else render.show
        talk = Conversation(memory, middleware, model, tell=tell)
        turns = talk.run(_messages(tell))
        try:
            kept = talk.end() if turns else []
        except WellwornError as error:
            kept, model_option = talk.kept, "" if llm is None else f" --llm {shlex.quote(llm)}"
            target.say(f"Not reflected on yet ({error}); `wellworn jobs run{model_option}` tries again.")
    target.answer({"session_id": id, "turns": turns, "reflections": kept})
    texts = {one.id: one.text for reflection in kept for one in reflection.memories}
    if texts:
        target.say("\n".join(["I will remember:", *(f"- {text}" for text in texts.values())]))


def _messages(tell: Callable[[str], None]) -> Iterator[str]:
    """The messages of the person, up to the end; what is piped in is told, so that a log can be read."""
    typed = sys.stdin.isatty()
    while True:
        line = _typed() if typed else decoded(sys.stdin.buffer.readline())
        if not line or line.strip().lower() in LEAVE:
            return
        if line.strip():
            if not typed:
                tell(YOU + line.strip())
            yield line.strip()


def _typed() -> str:
    """A line from the terminal; if the answers go there too, with editing and the lines before."""
    if not sys.stdout.isatty():
        sys.stderr.write(YOU)
        sys.stderr.flush()
        return sys.stdin.readline()
    with suppress(ImportError):  # Windows has none, and edits lines itself
        import readline  # noqa: F401
    try:
        return input(YOU) + "\n"
    except EOFError:
        return ""
