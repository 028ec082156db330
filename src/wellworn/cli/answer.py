"""The other end of `ask`: a process that has a memory open runs the hooks of that memory for the user who started it.

A hook gets what it would get by itself, and only then: it comes from a process of the same user, names the same file, scope
and embedder, and has the same settings, the key among them. Any other is left to itself.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from wellworn.cli.agents import HookCall, current, model_of
from wellworn.cli.ask import MOST_BYTES, is_private, place_of, settings
from wellworn.cli.edge import DASH, read_object
from wellworn.cli.target import SHARED, Target
from wellworn.core.wellformed import visible

if TYPE_CHECKING:
    from wellworn.memory import Memory
    from wellworn.tasks import ReasoningBank

READ_S = 5.0
"""How long a request may take to come in."""
END_S = 1.0
"""How long hooks that are at work may hold up the end of the server."""


class NotForUs(Exception):
    """A request that the hook has to do itself."""


class Answering:
    """Answers the hooks of a memory, on threads of its own.

    Of several servers of a memory the first one answers. The others wait for its end, however it ends.
    """

    def __init__(self, target: Target, llm: str | None, *, every_scope: bool = False) -> None:
        self.target = target
        self.llm = llm
        self.every_scope = every_scope
        self.memory: Memory
        self.file: os.stat_result
        """The file that the memory was opened with; another one may take its place."""
        self.closed = False
        self._at_work: set[threading.Thread] = set()
        self._files: list[str] = []

    def start(self, opened: Callable[[], Memory]) -> None:
        """Listen once the memory is open. Where it does not open or no socket can be made, hooks do without."""
        if (place := place_of(self.target.db)) is not None:
            threading.Thread(target=self._listen, args=(place, opened), daemon=True).start()

    def close(self) -> None:
        """Take no more hooks, and let those that are at work end, but not for long."""
        self.closed = True
        files, self._files = self._files, []
        for file in files:
            with suppress(OSError):
                os.unlink(file)
        until = time.monotonic() + END_S
        for thread in [*self._at_work]:
            thread.join(max(0.0, until - time.monotonic()))

    def _listen(self, place: str, opened: Callable[[], Memory]) -> None:
        with suppress(Exception):
            self.memory, self.file = opened(), os.stat(self.target.db)
            with _held(f"{place}.lock"), socket.socket(socket.AF_UNIX) as listening:
                with suppress(FileNotFoundError):
                    os.unlink(place)  # of a server that was killed
                listening.bind(place)
                os.chmod(place, 0o600)
                self._files = [place, f"{place}.lock"]
                listening.listen()
                while not self.closed:
                    line, _ = listening.accept()
                    thread = threading.Thread(target=self._answer, args=(line,), daemon=True)
                    self._at_work.add(thread)
                    thread.start()

    def _answer(self, line: socket.socket) -> None:
        with line, suppress(Exception, SystemExit):  # whatever is wrong: without an answer the hook does it itself
            line.settimeout(READ_S)
            if of_this_user(line):
                with line.makefile("rb") as lines:
                    asked = json.loads(lines.readline(MOST_BYTES))
                call = ServedHook(self, line, asked)
                call.run()
                line.sendall(json.dumps([call.out, call.err]).encode())
        self._at_work.discard(threading.current_thread())


class ServedHook(HookCall):
    """A hook that another process asks for."""

    def __init__(self, server: Answering, line: socket.socket, asked: Mapping[str, Any]) -> None:
        self._server = server
        self._line = line
        self._asked = asked
        self.folder = asked["folder"]
        self.out = self.err = ""

    def run(self) -> None:
        from typer.main import get_command

        from wellworn.cli.connect import hooks

        if self._asked["settings"] != settings():
            raise NotForUs
        current.set(self)  # for this thread
        carried = self._asked["carried"]
        outer = {name: carried.get(one.env) or None for name, one in SHARED.items()} | {"db": self._asked["db"]}
        verb, *line = self._asked["line"]
        group: Any = get_command(hooks)  # what typer makes of it has no public type
        with group.commands[verb].make_context(verb, line, obj=outer, help_option_names=[]) as context:
            context.command.invoke(context)

    def begin(self, target: Target, llm: str | None) -> None:
        """Say that the work begins, unless the hook would do other work than this server."""
        server, mine = self._server, self._server.target
        same = (target.embedder, model_of(llm)) == (mine.embedder, model_of(server.llm))
        if server.closed or not same or not (server.every_scope or target.scope == mine.scope):
            raise NotForUs
        try:
            if not os.path.samestat(os.stat(os.path.join(self.folder, target.db)), server.file):
                raise NotForUs
            self._line.sendall(b"\n")
        except OSError:  # the file is gone, or the hook waits no longer and does it itself
            raise NotForUs from None

    def read(self, file: str) -> Mapping[str, Any]:
        return read_object(file, self._asked["piped"]) if file == DASH else super().read(file)

    def write(self, text: str) -> None:
        self.out += text

    def say(self, message: str) -> None:
        self.err += f"{visible(message)}\n"

    @contextmanager
    def bank(self, target: Target, llm: str | None) -> Iterator[ReasoningBank]:
        from wellworn.tasks import ReasoningBank

        if model_of(llm) == model_of(self._server.llm):
            yield ReasoningBank(self._server.memory.for_scope(target.scope), scope=target.scope)
        else:  # rules read what a prompt tells, also beside a model
            with super().bank(replace(target, db=self._server.target.db), llm) as bank:
                yield bank


def of_this_user(line: socket.socket) -> bool:
    """Whether the other end is a process of this user. Where no system tells, the folder alone keeps others out."""
    credentials = getattr(socket, "SO_PEERCRED", None)
    if credentials is None:
        return True
    form = struct.Struct("iII")  # process, user, group
    user: int = form.unpack(line.getsockopt(socket.SOL_SOCKET, credentials, form.size))[1]
    return user == os.geteuid()


@contextmanager
def _held(file: str) -> Iterator[None]:
    """Hold a lock that ends with this process, whatever ends it. Waits for whoever holds it."""
    import fcntl  # Windows has none

    folder = os.path.dirname(file)
    with suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    if not is_private(folder):
        raise PermissionError(folder)
    while True:
        number = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(number, fcntl.LOCK_EX)
            if os.fstat(number).st_nlink:  # its last holder removes it
                yield
                return
        finally:
            os.close(number)
