"""The parts of a running service, and one request as its routes see it."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Annotated, Any

import msgspec
from fastapi import Header, Query, Request, Response

from wellworn.core.values import LAYERS, Entry, Job, Partition, Scope
from wellworn.ingest.session import Watch
from wellworn.memory import Memory
from wellworn.server.access import Caller, Gate
from wellworn.server.guard import CALLER, Metrics, Rules
from wellworn.server.once import Again, Requests, ServiceReply, Wanted, wanted
from wellworn.store.events import ACTOR, Event, audit
from wellworn.store.port import Store, Tx

LOCAL = "local"
_MOST_PENDING = 500

OneId = Annotated[str | None, Query(max_length=256)]
SeveralIds = Annotated[list[str] | None, Query(max_length=64)]


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
        if pending:
            with self._store.transact() as tx:
                for event in pending:
                    audit(tx, event)


class MemoryService:
    """What the routes work with."""

    def __init__(
        self,
        memory: Memory,
        *,
        rules: Rules,
        local: Scope | None,
        rate: float = 100.0,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        """`local` is the scope of requests without a key; None: every request needs one."""
        store, clock = memory.engine.store, memory.engine.clock
        self.memory = memory
        self.rules = rules
        owner = None if local is None else Caller(actor=LOCAL, tenant=local.tenant, role="admin", usual=local)
        self.gate = Gate(store, clock=clock, local=owner, rate=rate, ticks=ticks)
        self.requests = Requests(store, clock)
        self.trail = Trail(store)
        self.metrics = Metrics()
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
        """Answer a read, which the audit log tells of unless the owner of the machine reads."""
        if self.caller.actor != LOCAL:
            now, who = self.memory.engine.clock(), {"actor": self.caller.actor, **detail}
            self.service.trail.read(
                Event(at=now, tenant=self.scope.tenant, action=action, entry_id=entry_id, detail={**who})
            )
        etag = etag_of(value) if isinstance(value, Entry) else ""
        return ServiceReply(value=value, etag=etag).response()


class Needs:
    """The dependency of a route: the call, of someone who may make it."""

    def __init__(self, role: str) -> None:
        self._role = role

    async def __call__(
        self,
        request: Request,
        tenant: Annotated[
            str | None, Query(max_length=256, description="Refused unless it is the tenant of the credential.")
        ] = None,
        agent: OneId = None,
        user: OneId = None,
        session: OneId = None,
        project: SeveralIds = None,
        team: SeveralIds = None,
        org: SeveralIds = None,
        company: SeveralIds = None,
        idempotency_key: Annotated[
            str | None, Header(max_length=256, description="A write with the same key is made once.")
        ] = None,
    ) -> Call:
        service: MemoryService = request.app.state.service
        caller: Caller = getattr(request.state, CALLER)
        caller.require(self._role)
        given: dict[str, str | Sequence[str] | None] = {
            "agent": agent,
            "user": user,
            "session": session,
            "project": project,
            "team": team,
            "org": org,
            "company": company,
        }
        layers: dict[str, Sequence[str]] = {
            layer: [value] if isinstance(value, str) else value
            for layer in LAYERS
            if (value := given[layer]) is not None
        }
        scope = caller.scope(layers, tenant)
        ACTOR.set("" if caller.actor == LOCAL else caller.actor)
        once = None
        if idempotency_key is not None and request.method != "GET":
            line = f"{request.method} {request.url.path}?{request.url.query}"
            once = wanted(caller.tenant, caller.actor, idempotency_key, line, await request.body())
        memory = service.memory.for_scope(scope)
        return Call(service=service, caller=caller, memory=memory, scope=scope, wanted=once)


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
