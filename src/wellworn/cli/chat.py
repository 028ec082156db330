"""`wellworn chat`: a conversation in the terminal that is remembered.

Reads lines and prints sentences. The rest is the work of `integrations.conversation` and the loop middleware.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated

import typer

from wellworn.cli import options, render
from wellworn.cli.options import EVERYDAY, command
from wellworn.cli.target import Target
from wellworn.core.errors import WellwornError

app = typer.Typer()

LEAVE = ("/quit", "/exit", "/bye", "quit", "exit")


@command(app, "chat", "chat --llm ollama:llama3.2 --user ada", panel=EVERYDAY)
def chat(
    target: Target,
    llm: options.LlmName = None,
    session_id: options.SessionId = None,
    k: Annotated[int, typer.Option("-k", metavar="N", min=1, max=50, help="Memories to recall per message.")] = 5,
) -> None:
    """Chat in the terminal, with memory.

    /help lists what can be typed; /quit ends the conversation, which then becomes memories. Reads standard input, so a
    dialogue can be piped in. Without --llm it answers from memory alone.
    """
    from wellworn.integrations.conversation import Conversation
    from wellworn.integrations.loop import MemoryMiddleware

    id = session_id or datetime.now(UTC).strftime("chat-%Y%m%dT%H%M%S")
    with target.open(new=True, llm=llm) as memory:
        middleware = MemoryMiddleware(memory, session_id=id, max_results=k)
        model = memory.admin.model(session_id=id)
        who = f"model {model.name}" if model else "no model, so I answer from memory alone"
        render.say(f"Hello! ({who}; /help for help, /quit to leave)")
        talk = Conversation(memory, middleware, model, tell=render.say if target.json else render.show)
        turns = talk.run(_messages())
        try:
            kept = talk.end() if turns else []
        except WellwornError as error:
            kept, model_option = talk.kept, "" if llm is None else f" --llm {shlex.quote(llm)}"
            target.say(f"Not reflected on yet ({error}); `wellworn jobs run{model_option}` tries again.")
    target.answer({"session_id": id, "turns": turns, "reflections": kept})
    texts = {one.id: one.text for reflection in kept for one in reflection.memories}
    if texts:
        target.say("\n".join(["I will remember:", *(f"- {text}" for text in texts.values())]))


def _messages() -> Iterator[str]:
    """The messages of the person, up to the end."""
    while True:
        if sys.stdin.isatty():
            sys.stderr.write("you> ")
            sys.stderr.flush()
        line = sys.stdin.readline()
        if not line or line.strip().lower() in LEAVE:
            return
        if line.strip():
            yield line.strip()
