"""The parts of a running service, and one request as its routes see it."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import msgspec
from fastapi import Request, Response
from pydantic import TypeAdapter

from wellworn.core.errors import AccessDenied, StoreError
from wellworn.core.scope import MAX_NAME_CHARS, SHARED_LAYERS
from wellworn.core.values import LAYERS, Entry, Job, Partition, Scope
from wellworn.ingest.session import Watch
from wellworn.memory import Memory
from wellworn.server.access import Caller, Gate
from wellworn.server.guard import CALLER, Rules
from wellworn.server.metrics import Metrics
from wellworn.server.once import Again, Requests, ServiceReply, Wanted, wanted
from wellworn.server.wire import PROBLEM, Problem
from wellworn.store.events import ACTOR, Event, audit
from wellworn.store.port import Store, Tx

LOCAL = "local"
_MOST_PENDING = 500

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
    """Who read what, in the audit log. Writes are in it by themselves, with the one who acts (`store.events.ACTOR`).

    Reads are collected and written once a second, so that a crash may lose those of the last second.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = Lock()
        self._pending: list[Event] = []

    def read(self, event: Event) -> None:
        with self._lock:
            self._pending.append(event)
            full = len(self._pending) >= _MOST_PENDING
        if full:
            self.flush()

    def flush(self) -> None:
        with self._lock:
            pending, self._pending = self._pending, []
        if not pending:
            return
        try:
            with self._store.transact() as tx:
                for event in pending:
                    audit(tx, event)
        except StoreError:
            with self._lock:
                self._pending = [*pending, *self._pending]
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
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        """`local` is the scope of requests without a key; None: every request needs one. `operator` is the tenant of
        whoever runs the service: its keys may read the numbers of the whole service."""
        store, clock = memory.engine.store, memory.engine.clock
        self.memory = memory
        self.rules = rules
        owner = None if local is None else Caller(actor=LOCAL, tenant=local.tenant, role="admin", usual=local)
        self.gate = Gate(store, clock=clock, local=owner, rate=rate, ticks=ticks)
        self.requests = Requests(store, clock)
        self.trail = Trail(store)
        self.operator = operator
        self.metrics = Metrics(memory.engine, ticks=ticks)
        self.work: set[asyncio.Task[Any]] = set()
        """Imports under way: they end before the service does."""
        self.ready = False


@dataclass(frozen=True, kw_only=True)
class Call:
    """One request: who sent it, whose memory it is about, and whether it is sent again."""

    service: MemoryService
    caller: Caller
    memory: Memory
    scope: Scope
    wanted: Wanted | None

    def once(self, work: Callable[[], ServiceReply], again: Again | None = None) -> Response:
        """Make a write, or give the answer that the same request had."""
        return self.service.requests.once(self.wanted, work, again).response()

    def read(self, action: str, value: Any, *, entry_id: str | None = None, **detail: str) -> Response:  # any value
        """Answer a read, and note it."""
        self.note(action, entry_id=entry_id, **detail)
        etag = etag_of(value) if isinstance(value, Entry) else ""
        return ServiceReply(value=value, etag=etag).response()

    def note(self, action: str, *, entry_id: str | None = None, **detail: str) -> None:
        """Tell the audit log of a read, unless the owner of the machine reads."""
        if self.caller.actor != LOCAL:
            now, who = self.memory.engine.clock(), {"actor": self.caller.actor, **detail}
            self.service.trail.read(
                Event(at=now, tenant=self.scope.tenant, action=action, entry_id=entry_id, detail={**who})
            )

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


class Needs:
    """The dependency of a route: the call, of someone who may make it."""

    def __init__(self, role: str) -> None:
        self._role = role

    async def __call__(self, request: Request) -> Call:
        # The scope is read here and not declared as parameters: FastAPI takes a third of a request's time for them.
        service: MemoryService = request.app.state.service
        caller: Caller = getattr(request.state, CALLER)
        caller.require(self._role)
        query = request.query_params
        layers: dict[str, Sequence[str]] = {layer: query.getlist(layer) for layer in LAYERS if layer in query}
        scope = caller.scope(layers, query.get("tenant"))
        ACTOR.set("" if caller.actor == LOCAL else caller.actor)
        once, name = None, request.headers.get("idempotency-key")
        if name is not None and request.method != "GET":
            line = f"{request.method} {request.url.path}?{request.url.query}"
            once = wanted(caller.tenant, caller.actor, name, line, await request.body())
        memory = service.memory.for_scope(scope)
        return Call(service=service, caller=caller, memory=memory, scope=scope, wanted=once)


def add_scope(document: dict[str, Any]) -> None:
    """Describe in the schema what `Needs` reads, the errors of every route, and that answers leave no field out."""
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
                named = [*_SCOPE, *([] if method == "get" else ["once"])]
                shared = [{"$ref": f"#/components/parameters/{name}"} for name in named]
                operation["parameters"] = [*operation.get("parameters", ()), *shared]
                operation["responses"] |= {key: {"$ref": "#/components/responses/problem"} for key in ERRORS}


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
