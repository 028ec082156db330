"""An export over HTTP leaves nothing on the disk, however its answer ends."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from server.conftest import ME
from wellworn import Memory
from wellworn.ops import lines
from wellworn.server.app import build_app
from wellworn.server.guard import LOOPBACK, Rules
from wellworn.server.service import MemoryService

MANY = 40
WORD = "quince"
ASKED = {
    "type": "http",
    "asgi": {"version": "3.0"},
    "http_version": "1.1",
    "method": "GET",
    "scheme": "http",
    "path": "/v1/export",
    "raw_path": b"/v1/export",
    "query_string": b"",
    "root_path": "",
    "headers": [(b"host", b"localhost")],
    "client": ("127.0.0.1", 1),
    "server": ("localhost", 80),
}


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files lie."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


@pytest.fixture
def service(tmp_path: Path, temporary: Path) -> Iterator[MemoryService]:
    with Memory(tmp_path / "memory.db", embedder="hash", background=False) as memory:
        memory.for_scope(ME).remember_many([f"Jar {n} of {WORD} jelly: " + f"{n} spoons. " * 500 for n in range(MANY)])
        yield MemoryService(memory, rules=Rules(hosts=LOOPBACK), local=ME)


def left_in(folder: Path) -> list[str]:
    """What lies there, and what of it has lost its name and is still open."""
    names = [one.name for one in folder.rglob("*")]
    if sys.platform == "linux":
        for handle in os.listdir("/proc/self/fd"):
            with suppress(OSError):
                leads_to = os.readlink(f"/proc/self/fd/{handle}")
                names += [leads_to] * leads_to.startswith(str(folder))
    return names


class Caller:
    """Takes a number of pieces of an answer, then goes in some way."""

    def __init__(self, app: Any, how: str, takes: int) -> None:
        self._app, self._how, self._takes = app, how, takes
        self._asked = False
        self.got: list[bytes] = []
        self.gone: asyncio.Event

    async def receive(self) -> dict[str, Any]:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            assert message["status"] == 200
        elif message.get("body"):
            self.got.append(message["body"])
        if len(self.got) < self._takes or self._how == "stays":
            return
        self.gone.set()
        if self._how == "breaks the connection":
            raise OSError("the other end is gone")
        if self._how == "brings the server to an end":
            raise asyncio.CancelledError
        await asyncio.Event().wait()  # reads no more

    async def call(self) -> bytes:
        self.gone = asyncio.Event()
        with suppress(Exception, asyncio.CancelledError):
            await self._app(dict(ASKED, state={}), self.receive, self.send)
        return b"".join(self.got)


@pytest.mark.parametrize("how", ["hangs up", "breaks the connection", "brings the server to an end"])
@pytest.mark.parametrize("takes", [0, 1, 3])
def test_a_broken_download_leaves_nothing(service: MemoryService, temporary: Path, how: str, takes: int) -> None:
    app = build_app(service)
    gc.disable()  # nothing waits for it
    try:
        for _ in range(3):
            got = asyncio.run(Caller(app, how, takes).call())
            assert (WORD.encode() in got) == (takes > 0)
            assert left_in(temporary) == []
    finally:
        gc.enable()


def test_an_export_has_no_name_while_it_is_made_and_sent(
    service: MemoryService, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is killed then leaves nothing."""
    seen, log_lines = [], lines.log_lines

    def watched(*given: Any) -> Any:
        seen.append([*temporary.rglob("*")])
        return log_lines(*given)

    monkeypatch.setattr(lines, "log_lines", watched)
    whole = asyncio.run(Caller(build_app(service), "stays", 1).call())
    assert seen == [[]]
    assert all(f"Jar {n} of {WORD}".encode() in whole for n in range(MANY))
    assert whole.rstrip().rpartition(b"\n")[2].startswith(b'{"type":"end"')
    assert left_in(temporary) == []
