"""`wellworn mcp`: the memory as an MCP server on standard input and output, for clients that start it themselves."""

from __future__ import annotations

import gc
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import typer

from wellworn.cli import options
from wellworn.cli.edge import can_ask
from wellworn.cli.target import Target, command

if TYPE_CHECKING:
    from wellworn.memory import Memory

app = typer.Typer()


class OpenedLater:
    """The memory of a target, opened on another thread while the client shakes hands.

    A memory that does not open is tried again with the next call: the server stays, each call says what is wrong.
    """

    def __init__(self, target: Target, llm: str | None) -> None:
        self._target = target
        self._llm = llm
        self._lock = threading.Lock()
        self._memory: Memory | None = None

    def __call__(self, _access: str) -> Memory:
        with self._lock:
            if self._memory is None:
                self._memory = self._target.open(new=True, background=True, llm=self._llm)
            return self._memory

    def start(self) -> None:
        threading.Thread(target=self._warm, daemon=True).start()

    def _warm(self) -> None:
        """Load what the first search needs; it is none itself, so nothing is logged."""
        with suppress(Exception):  # the first call reports it
            memory = self("read")
            memory.engine.searcher.examine("what is remembered?", scope=self._target.scope)

    def close(self) -> None:
        with self._lock:
            if self._memory is not None:
                self._memory.close()


@command(app, "mcp", "mcp --user ada", panel="Agents")
def mcp(target: Target, llm: options.LlmName = None) -> None:
    """Serve the memory over MCP, on standard input and output.

    Clients start it themselves: `wellworn connect claude-code` writes their settings. It ends when they close its input.
    """
    if can_ask():
        target.say("Waiting for an MCP client on standard input; `wellworn connect` sets one up.")
    gc.disable()  # what imports make is no garbage; looking for some takes a seventh of the start
    from wellworn.doors.mcp import build_server

    memory = OpenedLater(target, llm)
    memory.start()
    server = build_server(memory)
    gc.enable()
    gc.freeze()
    try:
        server.run()
    finally:
        memory.close()
