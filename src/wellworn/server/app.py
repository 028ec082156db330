"""The service put together: routes, MCP, guard, error documents, health, and an orderly start and end.

`/mcp` is MCP over streamable HTTP for the same callers, keys and limits; query parameters name the scope, as in
`/mcp?user=ada`. No session is kept, so that a key that was revoked is refused with the next request. The SDK takes as
long to load as everything else together, so it loads with the first request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from functools import partial
from importlib.metadata import version
from typing import Any
from urllib.parse import parse_qs

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from wellworn.core.errors import AccessDenied, EmbeddingFailed, ScopeError, StoreError, WellwornError
from wellworn.core.locks import patience
from wellworn.core.values import LAYERS
from wellworn.core.wellformed import not_a_number
from wellworn.memory import Memory
from wellworn.server.access import Caller
from wellworn.server.care import care
from wellworn.server.guard import AUDITED, CALLER, REQUEST_ID, SECURITY_HEADERS, RequestGuard, log_fault, refusal
from wellworn.server.page import add_page
from wellworn.server.routes import v1
from wellworn.server.service import Access, MemoryService, Needs, add_scope, refuse_unknown
from wellworn.server.wire import problem, problem_of, status_of
from wellworn.store.events import ACTOR

MCP_PATH = "/mcp"
LONG_TOOLS = ("memory_reason", "session_end", "task_finish")
_CALL: ContextVar[tuple[Access, Memory]] = ContextVar("call")


class McpDoor:
    """The MCP server of a service, as an ASGI application of one route."""

    def __init__(self, service: MemoryService) -> None:
        self._service = service
        self._starting = asyncio.Lock()
        self._running: asyncio.Task[None] | None = None
        self._inner: Any = None  # the SDK's ASGI application
        self.route = Route(MCP_PATH, endpoint=self, methods=["POST"], include_in_schema=False)
        """Only POST: a GET would hold a stream open on which nothing is ever sent, since no session is kept."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["route"] = self.route  # for metrics and logs; FastAPI sets it for its own routes only
        caller: Caller = scope["state"][CALLER]
        access = scope["state"][AUDITED] = Access(caller=caller, operation="mcp")
        given = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        refuse_unknown(given)
        tenant = given.get("tenant", [None])[0]
        wanted = access.scope = caller.scope({layer: given[layer] for layer in LAYERS if layer in given}, tenant)
        async with self._starting:
            if self._inner is None:
                await self._start()
        _CALL.set((access, self._service.memory.for_scope(wanted)))
        ACTOR.set(caller.actor)
        await self._inner(scope, receive, send)

    async def _start(self) -> None:
        server, security = await asyncio.to_thread(self._load)
        app = server.streamable_http_app(
            streamable_http_path=MCP_PATH, stateless_http=True, json_response=True, transport_security=security
        )
        ready = asyncio.Event()

        async def run() -> None:
            async with server.session_manager.run():
                ready.set()
                await asyncio.Event().wait()  # until `stop`

        self._running = asyncio.create_task(run())
        begun = asyncio.create_task(ready.wait())
        await asyncio.wait({begun, self._running}, return_when=asyncio.FIRST_COMPLETED)
        if self._running.done():
            begun.cancel()
            await self._running  # raises what kept it from starting
        self._inner = next(route.endpoint for route in app.routes if isinstance(route, Route))

    def _load(self) -> tuple[Any, Any]:  # their types would load the SDK
        """The SDK's server and its settings. Host and Origin were checked before it is reached. Its own spans quote errors."""
        from mcp.server.transport_security import TransportSecuritySettings

        from wellworn.doors.mcp import build_server

        security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        server = build_server(self._opened, watch=self._watched)
        server.middleware[:] = [one for one in server.middleware if type(one).__name__ != "OpenTelemetryMiddleware"]
        return server, security

    async def stop(self) -> None:
        """Without waiting for ever: a tool that waits for a model cannot be stopped."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait({self._running}, timeout=1)

    def _opened(self, access: str) -> Memory:
        """The memory of whoever sent the request that is being answered."""
        called, memory = _CALL.get()
        if access == "write":
            called.caller.require("writer")
        if memory.scope is not None and not memory.scope.partitions():
            raise ScopeError("scope", "names no layer", f"name one in the address, as in {MCP_PATH}?user=ada")
        return memory

    @contextmanager
    def _watched(self, tool: str) -> Iterator[Callable[[int], None]]:
        """Bound the long ones, and tell the audit log which was called, and how much it gave or the status of its error."""
        access, _ = _CALL.get()
        access.operation = f"mcp:{tool}"
        try:
            with self._service.long() if tool in LONG_TOOLS else nullcontext():
                yield partial(setattr, access, "count")
        except Exception as error:
            log_fault(error)
            access.status = status_of(error) if isinstance(error, WellwornError) else 500
            raise


# -- the application ---------------------------------------------------------------------------------------------------

KEEP_UP_S = 1.0
PRUNE_EVERY = 3600
CLOSE_S, READY_S = 5.0, 2.0
"""How long the end, and `/readyz`, wait for a store that does not answer."""
_log = logging.getLogger("wellworn.server")


class ServiceApp(FastAPI):
    """FastAPI with the parameters in its schema that we read ourselves."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            needs = {
                (route.path_format, method.lower()): needed.call
                for route in [*v1.routes, *care.routes]
                if isinstance(route, APIRoute)
                for needed in route.dependant.dependencies
                if isinstance(needed.call, Needs)
                for method in route.methods or ()
            }
            add_scope(super().openapi(), needs)  # which keeps it
        return super().openapi()


def build_app(service: MemoryService) -> FastAPI:
    """The service as an ASGI application. It closes the memory when it ends."""
    app = ServiceApp(
        title="wellworn",
        version=version("wellworn"),
        summary="Memory for AI agents that gets better with use",
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan,
        generate_unique_id_function=lambda route: route.name,
        telemetry={"tracing": False, "logs": False},  # addresses have names and search words, errors have texts
    )
    app.state.service = service
    app.router.routes += [*v1.routes, *care.routes]  # as `include_router`, which looks at them anew for each request
    add_page(app)
    app.add_api_route("/healthz", _health, methods=["GET"], tags=["health"])
    app.add_api_route("/readyz", _ready, methods=["GET"], tags=["health"], responses={503: {"description": "Not yet"}})
    app.add_api_route("/metrics", _metrics, methods=["GET"], tags=["health"], response_class=Response)
    app.state.mcp = McpDoor(service)
    app.router.routes.append(app.state.mcp.route)
    app.add_exception_handler(WellwornError, _wellworn_error)
    app.add_exception_handler(RequestValidationError, _bad_request)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(ClientDisconnect, _left)
    app.add_exception_handler(Exception, _unexpected)
    app.add_middleware(
        RequestGuard,
        rules=service.rules,
        gate=service.gate,
        metrics=service.metrics,
        audit=service.trail.add,
        admitting=service.admitting,
    )
    if service.rules.origins:
        app.add_middleware(
            CORSMiddleware, allow_origins=[*service.rules.origins], allow_methods=["*"], allow_headers=["*"]
        )
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    service: MemoryService = app.state.service
    await asyncio.to_thread(_warm_up, service)
    chores = asyncio.create_task(_chores(service))
    service.metrics.start()
    service.ready = True
    try:
        yield
    finally:
        service.ready = False
        service.metrics.stop()
        await app.state.mcp.stop()
        chores.cancel()
        with suppress(asyncio.CancelledError):
            await chores
        for threads in (service.admitting, service.workers):
            threads.stop()
        await asyncio.to_thread(_close, service)


def _warm_up(service: MemoryService) -> None:
    """Load what the first request would wait for."""
    engine = service.memory.engine
    service.requests.prune()
    if engine.embedder is not None:
        try:
            engine.embedder.embed(["ready"])
        except EmbeddingFailed as error:
            _log.warning("the embedder does not answer, so recalls search by words: %s", error)
    engine.background.wake()


async def _chores(service: MemoryService) -> None:
    seconds = 0
    while True:
        await asyncio.sleep(KEEP_UP_S)
        seconds += 1
        try:
            with patience(CLOSE_S):  # the end of the service may wait for it
                await asyncio.to_thread(service.trail.flush)
            if seconds % PRUNE_EVERY == 0:
                await asyncio.to_thread(service.requests.prune)
        except StoreError:
            _log.exception("the audit trail could not be written")


def _close(service: MemoryService) -> None:
    waits: AbstractContextManager[None] = nullcontext()
    try:
        with patience(CLOSE_S):
            service.trail.flush()
    except StoreError:
        waits = patience(CLOSE_S)  # it will hardly take what else there is to write
    with waits:
        service.memory.close()


# -- health ------------------------------------------------------------------------------------------------------------


async def _health() -> dict[str, str]:
    """The process is alive."""
    return {"status": "ok"}


async def _ready(request: Request) -> Response:
    """The store answers, and the service is neither starting nor ending."""
    service: MemoryService = request.app.state.service
    try:
        with patience(READY_S):
            await asyncio.to_thread(service.memory.engine.check_open)  # routes may hold all of their own threads
        ready = service.ready
    except StoreError:
        ready = False
    return JSONResponse({"status": "ready" if ready else "not ready"}, 200 if ready else 503)


def _metrics(request: Request) -> Response:
    """Numbers for Prometheus."""
    caller: Caller = getattr(request.state, CALLER)
    service: MemoryService = request.app.state.service
    if caller.usual is None and (caller.tenant != service.operator or caller.bound is not None):
        raise AccessDenied(
            f"metrics: they are of the whole service (use a key of tenant {service.operator!r} that is bound to nobody)"
        )
    return Response(service.metrics.exposed(), media_type=CONTENT_TYPE_LATEST)


# -- errors ------------------------------------------------------------------------------------------------------------


async def _wellworn_error(_request: Request, error: Exception) -> Response:
    if not isinstance(error, WellwornError):
        raise error
    log_fault(error)
    return refusal(problem_of(error))


async def _bad_request(request: Request, error: Exception) -> Response:
    """A body or parameter of another shape than the schema's."""
    first: dict[str, Any] = error.errors()[0] if isinstance(error, RequestValidationError) else {}
    remedy = "see /openapi.json"
    if first.get("type") == "json_invalid":
        field, message = "body", "is not JSON"
    elif isinstance(first.get("input"), bytes) and "json" not in request.headers.get("content-type", ""):
        field, message, remedy = "body", "is not sent as JSON", "send the header content-type: application/json"
    else:
        place = [str(part) for part in first.get("loc", ())[1:] if part not in ("one", "many")]
        field, message = ".".join(place) or "body", str(first.get("msg", "is not readable"))
        message = not_a_number(first) or f"{message[:1].lower()}{message[1:]}"
    document = problem(422, f"{field}: {message} ({remedy})", "InvalidInput")
    return refusal({**document, "field": field, "problem": message, "remedy": remedy})


async def _http_error(request: Request, error: Exception) -> Response:
    status, detail = (error.status_code, error.detail) if isinstance(error, HTTPException) else (500, "")
    detail = f"there is no {request.url.path!r:.200} here (see /openapi.json)" if status == 404 else detail
    kind = "NotFound" if status == 404 else "InvalidInput" if status < 500 else "WellwornError"
    answer = refusal(problem(status, str(detail), kind))
    answer.headers.update(getattr(error, "headers", None) or {})
    return answer


async def _left(_request: Request, _error: Exception) -> Response:
    return refusal(problem(400, "body: the caller left before it ended", "InvalidInput"))


async def _unexpected(request: Request, error: Exception) -> Response:
    route = getattr(request.scope.get("route"), "path", "none")
    _log.error("%s %s failed", request.method, route, exc_info=error)
    answer = refusal(problem(500, "the server failed; its log says why", "WellwornError"))
    answer.headers.update({**SECURITY_HEADERS, "x-request-id": REQUEST_ID.get()})  # it is made outside of the guard
    return answer
