"""The parts of a running service, and one request as its routes see it.

An `Idempotency-Key` gives the same answer again, also after a restart. The answer is kept as a record of the tenant for a
day. It names the entries whose text it holds, so that it goes when one of them is forgotten. A crash between a write and
its record leaves the write alone; sent again it is made again, which changes nothing: a text is not stored twice, an edit
is the same. So is a write that two servers of one store get at the same moment: both make it, and one answer is kept.
Turns would be said twice, so their record is written in the same transaction as they are (`Requests.note`).
"""

from __future__ import annotations

import hashlib
import inspect
import json
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from datetime import datetime, timedelta
from functools import partial
from threading import BoundedSemaphore, Lock
from typing import Any, TypeVar, get_type_hints

import msgspec
from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Send
from starlette.types import Scope as ASGIScope

from wellworn.core.clock import Clock
from wellworn.core.dataclass import dataclass
from wellworn.core.errors import AccessDenied, Conflict, InvalidInput, ServiceFailed, StoreError
from wellworn.core.locks import TakesTime, at_once
from wellworn.core.plain import to_plain
from wellworn.core.scope import MAX_NAME_CHARS, SHARED_LAYERS
from wellworn.core.values import LAYERS, Entry, Scope
from wellworn.ingest.change import as_edited
from wellworn.memory import Memory
from wellworn.server.access import Caller, Gate, OidcSettings, OidcVerifier
from wellworn.server.guard import ADMITTED_AT_ONCE, AUDITED, CALLER, Rules
from wellworn.server.metrics import Metrics
from wellworn.server.wire import PROBLEM, RETRY_AFTER_S, Problem
from wellworn.server.workers import Workers
from wellworn.store.events import ACCESS, ACTOR, Event, audit
from wellworn.store.port import Record, RecordFilter, Store, StoreReader, Tx

T = TypeVar("T")
_log = logging.getLogger("wellworn.server")
REQUEST = "request"
"""The kind of record."""
KEPT = timedelta(days=1)
MOST_KEY_CHARS = 256


@dataclass(frozen=True, kw_only=True)
class ServiceReply:
    """What a route answers: any value of ours, as JSON."""

    value: Any
    status: int = 200
    etag: str = ""
    names: tuple[str, ...] = ()
    """Entries whose text is in the value."""

    def response(self) -> Response:
        headers = {"etag": self.etag} if self.etag else None
        return Response(msgspec.json.encode(self.value), self.status, headers, "application/json")


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """One write that somebody wants once."""

    tenant: str
    key: str
    """Who asks, for what, and the name that they gave it."""
    fingerprint: str
    """Of the whole request."""


def wanted(tenant: str, actor: str, name: str, request: str, body: bytes) -> Wanted:
    """`name` is the Idempotency-Key; `request` is the method, path and query."""
    if not name.strip() or len(name) > MOST_KEY_CHARS:
        raise InvalidInput("Idempotency-Key", f"has {len(name)} characters", f"use 1 to {MOST_KEY_CHARS}")
    said = f"{request}\n".encode() + body
    return Wanted(
        tenant=tenant,
        key=hashlib.sha256(f"{actor}\n{name}".encode()).hexdigest(),
        fingerprint=hashlib.sha256(said).hexdigest(),
    )


def reply_of(value: Any) -> ServiceReply:  # any value of ours
    """The reply that a value is; of an entry with its tag."""
    if isinstance(value, Entry):
        return ServiceReply(value=value, etag=etag_of(value), names=(value.id,))
    return value if isinstance(value, ServiceReply) else ServiceReply(value=value)


Again = Callable[[dict[str, Any]], Any]
"""Makes an answer of what was noted."""


class Requests:
    """Remembers what was answered."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._lock = Lock()
        self._running: set[tuple[str, str]] = set()

    def once(self, request: Wanted | None, work: Callable[[], Any], again: Again | None = None) -> ServiceReply:
        """Do the work, which gives a value or a reply, or give the answer that it had. With `again` the work keeps its
        own record, by `note`; `again` makes the answer of that."""
        if request is None:
            return reply_of(work())
        name = (request.tenant, request.key)
        with self._lock:
            if name in self._running:
                raise _under_way()
            self._running.add(name)
        try:
            former = self._former(self._store, request)
            if former is not None:
                return ServiceReply(**former) if again is None else reply_of(again(former))
            reply = reply_of(work())
            if again is None:
                self._note_late(request, reply)
            return reply
        finally:
            with self._lock:
                self._running.discard(name)

    def _note_late(self, request: Wanted, reply: ServiceReply) -> None:
        body = {"value": to_plain(reply.value), "status": reply.status, "etag": reply.etag}
        try:
            with self._store.transact(tenant=request.tenant) as tx:
                self.note(tx, request, body, reply.names)
        except StoreError:  # the work is done: to say "try again" would make it twice
            _log.exception("the answer to a request with an Idempotency-Key could not be kept")

    def _former(self, reader: StoreReader, request: Wanted) -> dict[str, Any] | None:
        kind = RecordFilter(kinds=[REQUEST], tenant=request.tenant, of_tenant=True, keys=[request.key])
        for record in reader.records(kind):
            if record.created_at < self._clock() - KEPT:
                return None
            if record.state != request.fingerprint:
                raise Conflict("Idempotency-Key: it was used for another request (use a new one)", status=422)
            return record.body
        return None

    def note(self, tx: Tx, request: Wanted, body: dict[str, Any], names: tuple[str, ...] = ()) -> None:
        """Write down what a request came to, once in a transaction. If another server wrote down the same request since
        it was looked for, nothing of the transaction is written."""
        if self._former(tx, request) is not None:
            raise _under_way()
        now = self._clock()
        tx.drop_records(RecordFilter(kinds=[REQUEST], tenant=request.tenant, keys=[request.key]))
        record = Record(
            tenant=request.tenant,
            kind=REQUEST,
            key=request.key,
            state=request.fingerprint,
            body=body,
            names=names,
            created_at=now,
            updated_at=now,
        )
        tx.put_records([record])

    def prune(self) -> int:
        """Drop answers that are older than a day."""
        with self._store.transact() as tx:
            return tx.drop_records(RecordFilter(kinds=[REQUEST], before=self._clock() - KEPT))


def _under_way() -> Conflict:
    return Conflict("Idempotency-Key: the same request is under way (wait for its answer)", retry_after_s=1)


# -- the service -------------------------------------------------------------------------------------------------------

LOCAL = "local"
MOST_PENDING = 100_000
"""Calls that are kept for the audit log while the store cannot be written; the oldest go."""
MOST_LONG = 16
"""Long requests at once: less than half of the threads that answer requests."""

_ID = {"type": "string", "minLength": 1, "maxLength": MAX_NAME_CHARS}


def _parameter(name: str, place: str, schema: dict[str, Any], **more: str) -> dict[str, Any]:
    return {"name": name, "in": place, "schema": schema, **more}


_SCOPE = {"tenant": _parameter("tenant", "query", _ID, description="Refused if it is not that of the credential.")} | {
    layer: _parameter(layer, "query", {"type": "array", "items": _ID} if layer in SHARED_LAYERS else _ID)
    for layer in LAYERS
}
_ONCE = _parameter(
    "Idempotency-Key", "header", _ID, description="A write that is sent again with the same key is made once."
)
_PROBLEM = {
    "description": "What is wrong, and the remedy",
    "content": {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}
ERRORS = ("4XX", "5XX")
"""What every route may answer besides its own."""


def v1_routes() -> APIRouter:
    """A router for `/v1`; operations have the names of their functions."""
    responses: dict[int | str, dict[str, Any]] = {status: {} for status in ERRORS}
    return APIRouter(
        prefix="/v1", responses=responses, route_class=VerbRoute, generate_unique_id_function=lambda route: route.name
    )


class Trail:
    """Who called what, in the audit log. What a write changed is in the log by itself, in the same transaction and with
    the one who acts (`store.events.ACTOR`).

    Calls are collected and written once a second, off their way: a crash may lose those of the last second.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._pending: deque[Event] = deque(maxlen=MOST_PENDING)
        self._flushing = Lock()

    def add(self, access: Access, status: int) -> None:
        self._pending.append(access.event(self._clock(), status))

    def flush(self) -> None:
        with self._flushing:
            pending = [self._pending.popleft() for _ in range(len(self._pending))]
            if not pending:
                return
            try:
                with self._store.transact() as tx:
                    audit(tx, *pending, kind=ACCESS)
            except StoreError:
                self._pending.extendleft(reversed(pending))
                raise


class MemoryService:
    """What the routes work with."""

    def __init__(
        self,
        memory: Memory,
        *,
        rules: Rules,
        local: Scope | None,
        operator: str = "default",
        rate: float = 100.0,
        oidc: OidcSettings | None = None,
        redis: Any = None,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        """`local` is the scope of requests without a key; None: every request needs one. `operator` is the tenant of
        whoever runs the service: its keys may read the numbers of the whole service. `oidc` says whose tokens are taken
        beside keys. Servers with the same `redis` (URL or client) share the limits."""
        store, clock = memory.engine.store, memory.engine.clock
        self.memory = memory
        self.rules = rules
        owner = None if local is None else Caller(actor=LOCAL, tenant=local.tenant, role="admin", usual=local)
        tokens = None if oidc is None else OidcVerifier(oidc, ticks).caller
        self.gate = Gate(store, clock=clock, local=owner, rate=rate, ticks=ticks, tokens=tokens, redis=redis)
        self.requests = Requests(store, clock)
        self.trail = Trail(store, clock)
        self.operator = operator
        self.metrics = Metrics(memory.engine, ticks=ticks)
        self.workers = Workers()
        self.admitting = Workers(ADMITTED_AT_ONCE, "admit")
        self._long = BoundedSemaphore(MOST_LONG)
        self.ready = False

    @contextmanager
    def long(self) -> Iterator[None]:
        """What may take seconds. Few may run at once, so that others find a thread; more are sent away."""
        if not self._long.acquire(blocking=False):
            raise ServiceFailed(
                "the server has too many long requests under way (try again)", retry_after_s=RETRY_AFTER_S
            )
        try:
            yield
        finally:
            self._long.release()


@dataclass(frozen=True, kw_only=True)
class Call:
    """One request: who sent it, whose memory it is about, and whether it is sent again."""

    service: MemoryService
    caller: Caller
    memory: Memory
    scope: Scope
    named: bool = True
    """Whether the request names a layer."""
    wanted: Wanted | None
    access: Access

    def once(self, work: Callable[[], Any], again: Again | None = None, *, long: bool = False) -> Response:
        """Make a write, which may be `long`, or give the answer that the same request had."""
        with self.service.long() if long else nullcontext():
            return self.answer(self.service.requests.once(self.wanted, work, again))

    def answer(self, value: Any) -> Response:  # any value
        """Answer with a value, or with a reply."""
        reply = reply_of(value)
        self.access.count = size_of(reply.value)
        return reply.response()

    def require_named(self) -> None:
        """Refuse to remove all of somebody whom neither the request nor the key names."""
        if self.caller.bound is None and not self.named:
            raise InvalidInput("user", "is missing", "say whose data goes, as in ?user=ada")

    def require_store(self, what: str) -> None:
        """Refuse whoever is not entitled to the whole store."""
        tenants = {one.tenant for one in self.memory.engine.store.partitions()} - {self.scope.tenant}
        if self.caller.bound is not None or (tenants and self.caller.usual is None):
            raise AccessDenied(
                f"{what}: it looks at the whole store, which holds more (run `wellworn doctor` beside it)"
            )


@dataclass(kw_only=True)
class Access:
    """One call, for the audit log: who, what, whose memory, and how much of it. Never its text."""

    caller: Caller
    operation: str
    id: str = ""
    """What the address names."""
    scope: Scope | None = None
    count: int = 0
    status: int = 0
    """Of an error that is told within the answer; 0: that of the answer."""

    def event(self, at: datetime, status: int) -> Event:
        status = self.status or status
        detail: dict[str, int | float | str] = {"actor": self.caller.actor, "status": status, "count": self.count}
        if self.scope is not None:
            detail["scope"] = " ".join(f"{one.layer}={one.layer_id}" for one in self.scope.partitions())
        if self.id:
            detail["id"] = self.id
        return Event(at=at, tenant=self.caller.tenant, action=self.operation, detail=detail)


def accessed(request: Request, caller: Caller, door: str = "") -> Access:
    """The access of this request, which goes into the audit log when it is answered."""
    operation = f"{door}{request.scope['route'].name}"
    access = Access(caller=caller, operation=operation, id=str(request.path_params.get("id", ""))[:MAX_NAME_CHARS])
    request.scope.setdefault("state", {})[AUDITED] = access
    return access


_SIZED = """
hits path entries ids sessions turns versions links reflections events jobs keys spent tasks items count
""".split()  # noqa: SIM905


def size_of(value: Any) -> int:  # any answer, or the plain data of one that was given before
    """How many things an answer holds or was about."""
    held = value.get if isinstance(value, dict) else partial(getattr, value)
    found: Any = next((one for name in _SIZED if (one := held(name, None)) is not None), 1)
    return len(found) if isinstance(found, list | tuple) else int(found)


class Needs:
    """The dependency of a route: the call, of someone who may make it."""

    def __init__(self, role: str, *, once: bool = True, layer: bool = True, whole: bool = False) -> None:
        """`once`: a write with an idempotency key is made once, for which its body is read whole; otherwise one with such a key
        is refused. `layer`: the scope must name one; otherwise none is the whole tenant. `whole`: it is about the whole
        tenant, whatever the scope."""
        self.role, self.once, self.layer, self.whole = role, once, layer, whole

    async def __call__(self, request: Request) -> Call:
        """As FastAPI asks for it."""
        return self.call(request, await request.body() if self.reads(request) else b"")

    def reads(self, request: Request) -> bool:
        """Whether the call is about the whole body, whatever the route takes."""
        return self.once and request.method != "GET" and "idempotency-key" in request.headers

    def call(self, request: Request, body: bytes) -> Call:
        """The call that the request is; an error for anybody who may not make it."""
        # The scope is read here and not declared as parameters: FastAPI takes a third of a request's time for them.
        service: MemoryService = request.app.state.service
        caller: Caller = request.scope["state"][CALLER]
        access = accessed(request, caller)
        caller.require(self.role, whole=self.whole)
        layers, tenant = dict[str, Sequence[str]](), None
        if request.scope["query_string"]:
            query = request.query_params
            refuse_unknown(query, (field.alias for field in request.scope["route"].dependant.query_params))
            layers, tenant = {layer: query.getlist(layer) for layer in LAYERS if layer in query}, query.get("tenant")
        scope = access.scope = caller.scope(layers, tenant)
        if self.layer and not scope.partitions():
            scope.home()  # refuses it
        ACTOR.set(caller.actor)
        once, name = None, request.headers.get("idempotency-key")
        if name is not None and request.method != "GET":
            if not self.once:
                raise InvalidInput("Idempotency-Key", "this request cannot be made once", "send it without")
            line = f"{request.method} {request.url.path}?{request.url.query}"
            once = wanted(caller.tenant, caller.actor, name, line, body)
        memory = service.memory.for_scope(scope)
        return Call(
            service=service, caller=caller, memory=memory, scope=scope, named=bool(layers), wanted=once, access=access
        )


def often_at_once(endpoint: T) -> T:
    """Try this route in the event loop first, where it comes to an end or to `take_time`: a thread costs as much as what
    many answers need."""
    _OFTEN_AT_ONCE.append(endpoint)
    return endpoint


_OFTEN_AT_ONCE: list[Any] = []
MOST_AT_ONCE = 4_000
"""Bytes of a body that is read in the event loop."""


class VerbRoute(APIRoute):
    """A route whose function runs on a worker thread, and all that leads to it runs there, too, in one go.

    By FastAPI alone a short request takes twice as long. It still answers what is not plain: a body that is not the JSON of
    the schema, for its words about that; parameters that only this route has; functions that are coroutines.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **settings: Any) -> None:  # those of `APIRoute`
        super().__init__(path, endpoint, **settings)
        self._by_fastapi = self.app
        taken = inspect.signature(endpoint).parameters
        self._often_at_once = endpoint in _OFTEN_AT_ONCE
        self._needs = next(one.call for one in self.dependant.dependencies if isinstance(one.call, Needs))
        body, missing = taken.get("body"), inspect.Parameter.empty
        self._body_needed = body is not None and body.default is missing
        hints = get_type_hints(endpoint, include_extras=True)
        self._body = None if body is None else TypeAdapter[Any](hints["body"])
        own = taken.keys() - self.param_convertors.keys() - {"call", "body"}
        self._own = own | {name.replace("_", "-") for name in own}
        """Names of parameters in the address and of headers."""
        if not inspect.iscoroutinefunction(endpoint) and all(taken[name].default is not missing for name in own):
            self.app = self._answer

    async def _answer(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        if self._own and self._own & {*request.query_params, *request.headers}:
            await self._by_fastapi(scope, receive, send)
            return
        body = await _whole(receive) if self._body is not None or self._needs.reads(request) else None
        service: MemoryService = request.app.state.service
        answer, called = None, False
        if self._often_at_once and body is not None and len(body) <= MOST_AT_ONCE:
            with suppress(TakesTime), at_once():
                answer, called = self._called(request, body), True
        if not called:
            answer = await service.workers.run(self._called, request, body or b"")
        if answer is None:
            await self._by_fastapi(scope, receive if body is None else _again(body, receive), send)
        else:
            await answer(scope, receive, send)

    def _called(self, request: Request, body: bytes) -> Response | None:
        """The answer; None: FastAPI shall say what is wrong with the body."""
        given: dict[str, Any] = dict(request.path_params)
        if self._body is not None and (body or self._body_needed):
            if request.headers.get("content-type", "").partition(";")[0] != "application/json":
                return None
            try:
                given["body"] = json.loads(body)
            except (ValueError, RecursionError):
                return None
        call = self._needs.call(request, body)  # whoever may not make it hears so, and nothing about the body
        if self._body is not None and "body" in given:
            try:
                given["body"] = self._body.validate_python(given["body"])
            except ValidationError:
                return None
        answer: Response = self.endpoint(call=call, **given)
        return answer


async def _whole(receive: Receive) -> bytes:
    """The body of a request."""
    parts, more = [], True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(parts)


def _again(body: bytes, receive: Receive) -> Receive:
    """As it was received."""
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def received() -> Message:
        return messages.pop() if messages else await receive()

    return received


def refuse_unknown(given: Iterable[str], own: Iterable[str] = ()) -> None:
    """Refuse parameters that name no layer and are none of the request's own: who mistypes `user` means somebody else."""
    if unknown := {*given} - {*LAYERS, "tenant", *own}:
        raise InvalidInput(min(unknown), "is no parameter of this request", f"name a layer: {', '.join(LAYERS)}")


def add_scope(document: dict[str, Any], needed: Mapping[tuple[str, str], Needs]) -> None:
    """Describe in the schema what `Needs` reads, the errors of every route, and that answers leave no field out.

    `x-role` is the role that a route needs."""
    parts = document["components"]
    for schema in parts["schemas"].values():
        if schema.get("additionalProperties") is not False:  # not the body of a request
            schema["required"] = [*schema["properties"]]
    parts["parameters"] = {**_SCOPE, "once": _ONCE}
    parts["responses"] = {"problem": _PROBLEM}
    parts["schemas"]["Problem"] = TypeAdapter(Problem).json_schema()
    for path, methods in document["paths"].items():
        if path.startswith("/v1/"):
            for method, operation in methods.items():
                needs = needed[path, method]
                named = [*_SCOPE, *(["once"] if needs.once and method != "get" else [])]
                shared = [{"$ref": f"#/components/parameters/{name}"} for name in named]
                operation["parameters"] = [*operation.get("parameters", ()), *shared]
                operation["responses"] |= {key: {"$ref": "#/components/responses/problem"} for key in ERRORS}
                operation["x-role"] = needs.role


def etag_of(entry: Entry) -> str:
    """A tag that changes whenever the entry does, except for what it gathers by itself."""
    return f'"{hashlib.sha256(msgspec.json.encode(as_edited(entry))).hexdigest()[:32]}"'
