"""What stands before every route: Host and Origin, keys, sizes, how much at once, security headers, metrics, logs.

Written as plain ASGI, so that a request that is refused costs next to nothing. Logs are lines of JSON, each with the id
of the request that it belongs to. None holds memory text: of an error it has the type and where it came from, not its
words; of a request the route, not the path or the query.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import secrets
import time
import traceback
from collections.abc import Callable, Collection, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import PurePath
from typing import Any
from urllib.parse import urlsplit

import msgspec
from fastapi import HTTPException, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import AccessDenied, ServiceFailed, StoreError, WellwornError
from wellworn.core.lazy import regex
from wellworn.core.locks import patience
from wellworn.server.access import Gate
from wellworn.server.metrics import Metrics
from wellworn.server.wire import PROBLEM, RETRY_AFTER_S, problem, problem_of
from wellworn.server.workers import Workers

REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")
"""Of the request that is being answered; sent back as `x-request-id`."""
ACCESS = "wellworn.access"
FIELDS = ("method", "route", "status", "ms", "actor")
"""What an access line has beside the usual."""
_GIVEN = regex(r"[A-Za-z0-9._-]{1,64}")
_STARTED, _numbers = secrets.token_hex(6), itertools.count(1)
"""Of the ids that requests get here: what this process has, and what each has."""


def log_as_json() -> None:
    """Write the logs of this process to standard error as JSON."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("wellworn").setLevel(logging.INFO)


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record),
        }
        if REQUEST_ID.get():
            line["request_id"] = REQUEST_ID.get()
        line |= {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            frames = traceback.extract_tb(error.__traceback__)
            line["error"] = type(error).__name__
            line["trace"] = [f"{PurePath(one.filename).name}:{one.lineno} {one.name}" for one in frames]
        return msgspec.json.encode(line).decode()


def _message(record: logging.LogRecord) -> str:
    """The message; an error that it is about is told by its type, because its words may be anybody's."""
    if not isinstance(record.args, tuple):
        return record.getMessage()
    told = tuple(type(one).__name__ if isinstance(one, BaseException) else one for one in record.args)
    return str(record.msg) % told if told else str(record.msg)


# -- what a request must look like -------------------------------------------------------------------------------------

LOOPBACK = ("localhost", "127.0.0.1", "::1")
MOST_BODY = 4_000_000
MOST_IMPORT = 64_000_000
IMPORT_PATH = "/v1/import"
MOST_LOAD = 4_000_000_000
"""An export that is loaded; it goes to the disk, not into memory."""
LOAD_PATH = "/v1/load"
MOST_FORM = 64_000
MOST_SIGN_IN = 4_000
"""Of a visitor whom nobody knows."""
BODY_S = 30.0
BODY_BYTES_A_SECOND = 20_000
"""How long a body may take: so many seconds, and what it would take at this rate."""
OPEN = ("/healthz", "/readyz", "/openapi.json")
"""Answered without a key, and however busy the server is."""
PAGE = "/ui/"
"""Where the page is, beside `/`. It finds out itself who visits, to send them to its sign-in."""
SIGN_IN = f"{PAGE}sign-in"
TEXT_FORMS = ("/edit", "/outdate", "/review")
"""Where texts are edited, which may be long."""
CALLER, AUDITED = "caller", "audited"
"""Where a request's state holds who sent it, and what the audit log will say of it."""
SECURITY_HEADERS = {
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""Set where a route does not set its own."""
_SECURITY_HEADERS = [(name.encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]
_access = logging.getLogger(ACCESS)
_log = logging.getLogger("wellworn.server")
ADMITTED_AT_ONCE, ADMIT_S = 64, 2.0
"""Callers whose keys are looked up at once, and how long that may take: a database may be away."""
_METHODS = ("GET", "POST", "PATCH", "DELETE")


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What a request must look like."""

    hosts: Collection[str] | None
    """Names that the Host header may have; None: any."""
    origins: Collection[str] = ()
    """Other origins whose pages may call."""
    most_at_once: int = 64
    turn_s: float = 0.5
    """How long a request waits for its turn before it is sent away. That also slows whoever tries again at once: without
    it, sending away took the time of those who are served."""

    def check(self, headers: dict[str, str]) -> None:
        """Refuse a request that a page of somebody else may have made a browser send."""
        host = headers.get("host", "")
        if self.hosts is not None and _name(host) not in self.hosts:
            raise AccessDenied(f"host: {host!r:.80} is not this server (use {' or '.join(self.hosts)})", status=421)
        origin = headers.get("origin")
        if origin is not None:
            if origin not in self.origins and urlsplit(origin).netloc.lower() != host.lower():
                raise AccessDenied(f"origin: {origin!r:.80} may not call this server")
        # A cookie goes along from other ports of this machine too; following a link is no harm.
        elif (
            self.hosts is not None or ("cookie" in headers and headers.get("sec-fetch-mode") != "navigate")
        ) and headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise AccessDenied("origin: a page of another site may not call this server")


@lru_cache(64)
def _name(host: str) -> str:
    """A Host header without its port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


class RequestGuard:
    """The outermost layer of the service."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        rules: Rules,
        gate: Gate,
        metrics: Metrics,
        audit: Callable[[Any, int], None],
        admitting: Workers,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        """`audit` is told of each answered access and its status. Keys are looked up by `admitting`."""
        self._app = app
        self._audit = audit
        self._rules = rules
        self._gate = gate
        self._metrics = metrics
        self._ticks = ticks
        self._turns = asyncio.Semaphore(rules.most_at_once)
        self._running = 0
        metrics.running.set_function(lambda: self._running)
        self._admitting = admitting

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return

        def write_down() -> None:
            """Once, before the answer's last part: whoever has an answer also finds the call in the log."""
            access = scope.get("state", {}).pop(AUDITED, None)
            if access is not None:
                self._audit(access, answer.status)

        begun, answer = self._ticks(), _Answer(send, write_down)
        if scope["method"] == "HEAD":  # answered as GET; the web server leaves out the body
            scope = {**scope, "method": "GET"}
        try:
            await self._within_limits(scope, receive, answer)
        except WellwornError as error:
            log_fault(error)
            await refusal(problem_of(error))(scope, receive, answer)
        except asyncio.CancelledError:  # it took longer than the end of the service waits
            if answer.begun:
                raise
            ends = ServiceFailed(
                "the server is stopping; a write may still be made (look, or try again)", retry_after_s=RETRY_AFTER_S
            )
            await refusal(problem_of(ends))(scope, receive, answer)
        finally:
            write_down()  # of an answer that broke off
            route = getattr(scope.get("route"), "path", "none")
            method = scope["method"] if scope["method"] in _METHODS else "other"  # or callers could make up any number
            seconds = self._ticks() - begun
            self._metrics.answered(method, route, answer.status, seconds)
            if _access.isEnabledFor(logging.INFO):
                actor = getattr(scope.get("state", {}).get(CALLER), "actor", "")
                told = {"method": method, "route": route, "status": answer.status, "actor": actor}
                _access.info("request", extra={**told, "ms": round(1000 * seconds, 1)})

    def _admit(self, *shown: Any) -> Any:  # as `Gate.admit` takes and returns them
        with patience(ADMIT_S):
            return self._gate.admit(*shown)

    async def _within_limits(self, scope: Scope, receive: Receive, answer: _Answer) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        given = headers.get("x-request-id", "")  # by a proxy or client
        REQUEST_ID.set(given if _GIVEN.fullmatch(given) else f"{_STARTED}{next(_numbers):08x}")
        self._rules.check(headers)
        if scope["path"] in OPEN:
            await self._app(scope, receive, answer)
            return
        if scope["path"] != "/" and not scope["path"].startswith(PAGE):
            shown = (headers, (scope.get("client") or ("", 0))[0], scope["http_version"])
            if "authorization" in headers:
                admitted = await self._admitting.run(self._admit, *shown)
            else:
                admitted = self._gate.admit(*shown)
            scope.setdefault("state", {})[CALLER] = admitted
        most = _most_bytes(scope["path"])
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length[:20]) > most:
            await refusal(problem(413, _too_large(most), "InvalidInput"))(scope, receive, answer)
            return
        if self._turns.locked():
            try:
                async with asyncio.timeout(self._rules.turn_s):
                    await self._turns.acquire()
            except TimeoutError:
                raise ServiceFailed("the server has too much to do (try again)", retry_after_s=RETRY_AFTER_S) from None
        else:
            await self._turns.acquire()
        self._running += 1
        body = _Body(receive, most, self._turns)
        try:
            await self._app(scope, body, answer)
        finally:
            if body.has_turn:
                self._turns.release()
            self._running -= 1


class _Answer:
    """Sends an answer with the security headers, and knows its status."""

    def __init__(self, send: Send, before_last: Callable[[], None]) -> None:
        self._send = send
        self._before_last = before_last
        self.begun = False
        self.status = 500

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun, self.status = True, message["status"]
            headers = [*message["headers"], (b"x-request-id", REQUEST_ID.get().encode())]
            own = dict(headers)
            message["headers"] = headers + [one for one in _SECURITY_HEADERS if one[0] not in own]
        elif not message.get("more_body", False):
            self._before_last()
        await self._send(message)


class _Body:
    """Receives a body, and refuses one that is too large even when it did not say so, or that does not come. Whoever waits
    for it gives up the turn meanwhile: senders decide how long that takes."""

    def __init__(self, receive: Receive, most: int, turns: asyncio.Semaphore) -> None:
        self._receive = receive
        self._most = most
        self._turns = turns
        self._seen = 0
        self._waited_s = 0.0
        self._complete = False
        self.has_turn = True

    async def __call__(self) -> Message:
        if self._complete:  # what comes is only whether the caller has left
            return await self._receive()
        self._turns.release()
        self.has_turn = False
        begun, patience_s = time.monotonic(), BODY_S + self._seen / BODY_BYTES_A_SECOND - self._waited_s
        try:
            async with asyncio.timeout(patience_s):
                message = await self._receive()
        except TimeoutError:
            raise HTTPException(408, "body: it comes too slowly (send it again)") from None
        self._waited_s += time.monotonic() - begun
        await self._turns.acquire()
        self.has_turn = True
        self._complete = not message.get("more_body", False)
        self._seen += len(message.get("body", b""))
        if self._seen > self._most:
            raise HTTPException(413, _too_large(self._most))
        return message


def _most_bytes(path: str) -> int:
    """How large a body may be."""
    usual = MOST_FORM if path.startswith(PAGE) and not path.endswith(TEXT_FORMS) else MOST_BODY
    return {IMPORT_PATH: MOST_IMPORT, LOAD_PATH: MOST_LOAD, SIGN_IN: MOST_SIGN_IN}.get(path, usual)


def _too_large(most: int) -> str:
    other = f", or use {IMPORT_PATH}" if most == MOST_BODY else ""
    return f"body: is larger than {most:,} bytes (send it in parts{other})"


def log_fault(error: BaseException) -> None:
    """Write down that the store failed. Other errors of ours are the caller's, or are logged where they happen."""
    if isinstance(error, StoreError):
        _log.error("the store failed", exc_info=error)


def refusal(document: Mapping[str, object]) -> Response:
    """A problem document as a response."""
    status = int(str(document["status"]))
    headers = {}
    if status == 401:
        headers["www-authenticate"] = "Bearer"
    if status == 408:
        headers["connection"] = "close"
    if status in (429, 503) or "retry_after_s" in document:
        headers["retry-after"] = str(document.get("retry_after_s") or RETRY_AFTER_S)
    return Response(json.dumps(document), status, headers, PROBLEM)
