"""MCP over streamable HTTP at `/mcp`, for the same callers, keys and limits as the other routes.

Query parameters name the scope, as in `/mcp?user=ada`. Each request stands alone: no session is kept, so that a key that
was revoked is refused with the next request. The SDK takes as long to load as everything else together, so it loads with
the first request.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Any
from urllib.parse import parse_qs

from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from wellworn.core.values import LAYERS
from wellworn.memory import Memory
from wellworn.server.access import Caller
from wellworn.server.guard import AUDITED, CALLER
from wellworn.server.service import Access, MemoryService
from wellworn.store.events import ACTOR

MCP_PATH = "/mcp"
_CALL: ContextVar[tuple[Access, Memory]] = ContextVar("call")


class McpDoor:
    """The MCP server of a service, as an ASGI application of one route."""

    def __init__(self, service: MemoryService) -> None:
        self._service = service
        self._starting = asyncio.Lock()
        self._stopping = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._inner: Any = None  # the SDK's ASGI application

    def route(self) -> BaseRoute:
        """Only POST: a GET would hold a stream open on which nothing is ever sent, since no session is kept."""
        return Route(MCP_PATH, endpoint=self, methods=["POST"], include_in_schema=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller: Caller = scope["state"][CALLER]
        access = scope["state"][AUDITED] = Access(caller=caller, operation="mcp")
        given = parse_qs(scope["query_string"].decode("latin-1"))
        tenant = given.get("tenant", [None])[0]
        wanted = access.scope = caller.scope({layer: given[layer] for layer in LAYERS if layer in given}, tenant)
        async with self._starting:
            if self._inner is None:
                await self._start()
        _CALL.set((access, self._service.memory.for_scope(wanted)))
        ACTOR.set(caller.actor)
        await self._inner(scope, receive, send)

    async def _start(self) -> None:
        server = await asyncio.to_thread(self._load)
        app = server.streamable_http_app(
            streamable_http_path=MCP_PATH,
            stateless_http=True,
            json_response=True,
            transport_security=_checked_already(),
        )
        ready = asyncio.Event()

        async def run() -> None:
            async with server.session_manager.run():
                ready.set()
                await self._stopping.wait()

        self._running = asyncio.create_task(run())
        begun = asyncio.create_task(ready.wait())
        await asyncio.wait({begun, self._running}, return_when=asyncio.FIRST_COMPLETED)
        if self._running.done():
            begun.cancel()
            await self._running  # raises what kept it from starting
        self._inner = next(route.endpoint for route in app.routes if isinstance(route, Route))

    def _load(self) -> Any:  # the SDK's server; its types would load it
        from wellworn.doors.mcp import build_server

        return build_server(self._opened, noted=_noted)

    async def stop(self) -> None:
        self._stopping.set()
        if self._running is not None:
            await self._running

    def _opened(self, access: str) -> Memory:
        """The memory of whoever sent the request that is being answered."""
        called, memory = _CALL.get()
        if access == "write":
            called.caller.require("writer")
        return memory


def _noted(tool: str, count: int) -> None:
    """Tell the audit log which tool was called, and how much it gave."""
    access, _ = _CALL.get()
    access.operation, access.count = f"mcp:{tool}", count


def _checked_already() -> Any:
    """Host and Origin were checked before the SDK is reached."""
    from mcp.server.transport_security import TransportSecuritySettings

    return TransportSecuritySettings(enable_dns_rebinding_protection=False)
