"""A real server: uvicorn on a thread, on a port that the system gives."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from wellworn import Client, Memory, Scope
from wellworn.cli.serve import listen
from wellworn.server.access import OidcSettings
from wellworn.server.app import build_app
from wellworn.server.guard import LOOPBACK, Rules
from wellworn.server.keys import create_key
from wellworn.server.service import MemoryService

ME = Scope(user="me")
STOP_S = 30.0
WAIT_S = 300.0
"""How long a test waits for an answer or a thread at most."""


class QuickServer(uvicorn.Server):
    """Ends at once: uvicorn looks only ten times a second whether it shall."""

    async def main_loop(self) -> None:
        await self.on_tick(0)
        while not self.should_exit:
            await asyncio.sleep(0.01)


@dataclass
class Running:
    """A server and how to call it."""

    url: str
    service: MemoryService
    opened: ExitStack
    """Closes what was opened before the server ends."""

    def http(self, key: str | None = None) -> httpx.Client:
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        return self.opened.enter_context(httpx.Client(base_url=self.url, headers=headers, timeout=WAIT_S))

    def client(self, key: str | None = None) -> Client:
        return self.opened.enter_context(Client(self.url, key=key))

    def key(self, *, tenant: str = "default", role: str = "admin", **layers: list[str]) -> str:
        store = self.service.memory.engine.store
        return create_key(store, tenant=tenant, role=role, now=datetime.now(UTC), layers=layers)[1]


@contextmanager
def serving(
    location: str | Path = ":memory:",
    *,
    local: Scope | None = ME,
    rules: Rules | None = None,
    rate: float = 10_000.0,
    ticks: Callable[[], float] = time.monotonic,
    oidc: OidcSettings | None = None,
    redis: Any = None,
    drain_s: int | None = None,
    **settings: Any,  # settings of Memory
) -> Iterator[Running]:
    memory = Memory(location, **{"embedder": "hash", "tenants": "all", **settings})
    service = MemoryService(
        memory, rules=rules or Rules(hosts=LOOPBACK), local=local, rate=rate, ticks=ticks, oidc=oidc, redis=redis
    )
    config = uvicorn.Config(
        build_app(service),
        log_level="critical" if drain_s == 0 else "error",
        access_log=False,
        proxy_headers=False,
        timeout_graceful_shutdown=drain_s,
    )
    listening = listen("127.0.0.1", 0)
    server = QuickServer(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        ends = time.monotonic() + WAIT_S
        while not server.started and thread.is_alive() and time.monotonic() < ends:
            time.sleep(0.01)
        assert server.started
        with ExitStack() as opened:
            yield Running(f"http://127.0.0.1:{listening.getsockname()[1]}", service, opened)
    finally:
        server.should_exit = True
        thread.join(STOP_S)
        if thread.is_alive():  # a client holds a stream open: name the test instead of waiting for ever
            server.force_exit = True
            thread.join(STOP_S)
            listening.close()
            raise AssertionError("the server did not end: a request is still under way")
        listening.close()


@pytest.fixture
def server() -> Iterator[Running]:
    with serving() as running:
        yield running
