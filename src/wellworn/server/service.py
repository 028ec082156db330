"""The parts of a running service, and one request as its routes see it."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from threading import BoundedSemaphore, Lock
from typing import Any

import msgspec
from fastapi import Request, Response
from pydantic import TypeAdapter

from wellworn.core.clock import Clock
from wellworn.core.dataclass import dataclass
from wellworn.core.errors import AccessDenied, ServiceFailed, StoreError
from wellworn.core.scope import MAX_NAME_CHARS, SHARED_LAYERS
from wellworn.core.values import LAYERS, Entry, Job, Partition, Scope
from wellworn.ingest.session import Watch
from wellworn.memory import Memory
from wellworn.server.access import Caller, Gate
from wellworn.server.guard import AUDITED, CALLER, Rules
from wellworn.server.metrics import Metrics
from wellworn.server.oidc import OidcSettings, OidcVerifier
from wellworn.server.once import Again, Requests, ServiceReply, Wanted, wanted
from wellworn.server.wire import PROBLEM, RETRY_AFTER_S, Problem
from wellworn.store.events import ACCESS, ACTOR, Event, audit
from wellworn.store.port import Store, Tx

LOCAL = "local"
MOST_PENDING = 100_000
"""Calls that are kept for the audit log while the store cannot be written; the oldest go."""
MOST_LONG = 16
"""Long requests at once: less than half of the threads that answer requests."""

_ID = {"type": "string", "minLength": 1, "maxLength": MAX_NAME_CHARS}
_SCOPE: dict[str, dict[str, Any]] = {
    "tenant": {
        "name": "tenant",
        "in": "query",
        "schema": _ID,
        "description": "Refused if it is not that of the credential.",
    },
    **{
        layer: {
            "name": layer,
            "in": "query",
            "schema": {"type": "array", "items": _ID} if layer in SHARED_LAYERS else _ID,
        }
        for layer in LAYERS
    },
}
_ONCE = {
    "name": "Idempotency-Key",
    "in": "header",
    "schema": _ID,
    "description": "A write that is sent again with the same key is made once.",
}
_PROBLEM = {
    "description": "What is wrong, and the remedy",
    "content": {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}
ERRORS = ("4XX", "5XX")
"""What every route may answer besides its own."""


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
        self._long = BoundedSemaphore(MOST_LONG)
        self.work: set[asyncio.Task[Any]] = set()
        """Imports under way: they end before the service does."""
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
    wanted: Wanted | None
    access: Access

    def once(self, work: Callable[[], ServiceReply], again: Again | None = None) -> Response:
        """Make a write, or give the answer that the same request had."""
        return self.answer(self.service.requests.once(self.wanted, work, again))

    def read(self, value: Any) -> Response:  # any value
        """Answer with a value."""
        return self.answer(ServiceReply(value=value, etag=etag_of(value) if isinstance(value, Entry) else ""))

    def answer(self, reply: ServiceReply) -> Response:
        self.access.count = size_of(reply.value)
        return reply.response()

    def require_tenant(self, what: str) -> None:
        """Refuse a key that is bound to a part of its tenant."""
        if self.caller.bound is not None:
            raise AccessDenied(f"{what} is that of the whole tenant, and the key is bound to a part of it")

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

    def event(self, at: datetime, status: int) -> Event:
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
    setattr(request.state, AUDITED, access)
    return access


_SIZED = (
    *[
        "hits",
        "path",
        "entries",
        "ids",
        "sessions",
        "turns",
        "versions",
        "links",
        "reflections",
        "events",
        "jobs",
        "keys",
        "spent",
        "count",
    ],
)


def size_of(value: Any) -> int:  # any answer, or the plain data of one that was given before
    """How many things an answer holds or was about."""
    held = value if isinstance(value, dict) else {name: getattr(value, name, None) for name in _SIZED}
    found: Any = next((held[name] for name in _SIZED if held.get(name) is not None), 1)
    return len(found) if isinstance(found, list | tuple) else int(found)


class Needs:
    """The dependency of a route: the call, of someone who may make it."""

    def __init__(self, role: str, *, once: bool = True) -> None:
        """`once`: a write with an idempotency key is made once. Its body is read whole for that."""
        self.role = role
        self.once = once

    async def __call__(self, request: Request) -> Call:
        # The scope is read here and not declared as parameters: FastAPI takes a third of a request's time for them.
        service: MemoryService = request.app.state.service
        caller: Caller = getattr(request.state, CALLER)
        access = accessed(request, caller)
        caller.require(self.role)
        query = request.query_params
        layers: dict[str, Sequence[str]] = {layer: query.getlist(layer) for layer in LAYERS if layer in query}
        scope = access.scope = caller.scope(layers, query.get("tenant"))
        ACTOR.set(caller.actor)
        once, name = None, request.headers.get("idempotency-key")
        if name is not None and self.once and request.method != "GET":
            line = f"{request.method} {request.url.path}?{request.url.query}"
            once = wanted(caller.tenant, caller.actor, name, line, await request.body())
        memory = service.memory.for_scope(scope)
        return Call(service=service, caller=caller, memory=memory, scope=scope, wanted=once, access=access)


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


class NotingWatch(Watch):
    """Writes down a request in the transaction that adds its turns."""

    def __init__(self, watch: Watch, note: Callable[[Tx, int], None]) -> None:
        self._watch = watch
        self._note = note

    def added(self, tx: Tx, partition: Partition, session_id: str, turns: int) -> bool:
        self._note(tx, turns)
        return self._watch.added(tx, partition, session_id, turns)

    def ended(self, tx: Tx, partition: Partition, session_id: str) -> str | None:
        return self._watch.ended(tx, partition, session_id)

    def committed(self) -> None:
        self._watch.committed()

    def job(self, partition: Partition, key: str, *, wait_s: float) -> Job | None:
        return self._watch.job(partition, key, wait_s=wait_s)


def etag_of(entry: Entry) -> str:
    """A tag that changes whenever the entry does."""
    return f'"{hashlib.sha256(msgspec.json.encode(entry)).hexdigest()[:32]}"'
