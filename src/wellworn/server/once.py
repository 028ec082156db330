"""Writes that are made once: an `Idempotency-Key` gives the same answer again, also after a restart.

The answer is kept as a record of the tenant for a day. It names the entries whose text it holds, so that it goes when one
of them is forgotten. A crash between a write and its record leaves the write alone; sent again it is made again, which
changes nothing: a text is not stored twice, an edit is the same. Turns would be said twice, so their record is written
in the same transaction as they are (`Requests.note`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import timedelta
from threading import Lock
from typing import Any

import msgspec
from fastapi import Response

from wellworn.core.clock import Clock
from wellworn.core.dataclass import dataclass
from wellworn.core.errors import Conflict, InvalidInput
from wellworn.core.plain import to_plain
from wellworn.store.port import Record, RecordFilter, Store, Tx

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


Again = Callable[[dict[str, Any]], ServiceReply]
"""Makes an answer of what was noted."""


class Requests:
    """Remembers what was answered."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._lock = Lock()
        self._running: set[tuple[str, str]] = set()

    def once(
        self, request: Wanted | None, work: Callable[[], ServiceReply], again: Again | None = None
    ) -> ServiceReply:
        """Do the work, or give the answer that it had. With `again` the work keeps its own record, by `note`; `again`
        makes the answer of that."""
        if request is None:
            return work()
        name = (request.tenant, request.key)
        with self._lock:
            if name in self._running:
                raise Conflict("Idempotency-Key: the same request is under way (wait for its answer)", retry_after_s=1)
            self._running.add(name)
        try:
            former = self._former(request)
            if former is not None:
                return _stored(former) if again is None else again(former)
            reply = work()
            if again is None:
                with self._store.transact(tenant=request.tenant) as tx:
                    body = {"value": to_plain(reply.value), "status": reply.status, "etag": reply.etag}
                    self.note(tx, request, body, reply.names)
            return reply
        finally:
            with self._lock:
                self._running.discard(name)

    def _former(self, request: Wanted) -> dict[str, Any] | None:
        kind = RecordFilter(kinds=[REQUEST], tenant=request.tenant, of_tenant=True, keys=[request.key])
        for record in self._store.records(kind):
            if record.created_at < self._clock() - KEPT:
                return None
            if record.state != request.fingerprint:
                raise Conflict("Idempotency-Key: it was used for another request (use a new one)", status=422)
            return record.body
        return None

    def note(self, tx: Tx, request: Wanted, body: dict[str, Any], names: tuple[str, ...] = ()) -> None:
        """Write down what a request came to."""
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


def _stored(body: dict[str, Any]) -> ServiceReply:
    return ServiceReply(value=body["value"], status=body["status"], etag=body["etag"])
