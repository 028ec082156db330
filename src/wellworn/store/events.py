"""The audit log, and the time that deleting by age may trust.

What was done to entries are records of kind `event`; who called a service for what are records of kind `access`, which may
be kept for a shorter time. They hold ids and numbers, never text, and are never changed.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import field
from datetime import datetime, timedelta

from wellworn.core.clock import EPOCH, from_micros, to_micros
from wellworn.core.dataclass import dataclass
from wellworn.core.values import altered
from wellworn.store.port import Record, RecordFilter, StoreReader, Tx

EVENT, ACCESS = "event", "access"
"""The kinds of record."""
ACTOR: ContextVar[str] = ContextVar("actor", default="")
"""Who acts, as a service knows it; events say it as `actor`. Empty: the program itself."""


@dataclass(frozen=True, kw_only=True)
class Event:
    """One line of the audit log."""

    at: datetime
    tenant: str
    action: str
    entry_id: str | None = None
    detail: dict[str, int | float | str] = field(default_factory=dict)


_LINE = Record(kind=EVENT, created_at=EPOCH, updated_at=EPOCH)


def audit(tx: Tx, *events: Event, kind: str = EVENT) -> None:
    """Append events to the logs of their tenants, with the one who acts."""
    actor = ACTOR.get()
    records = []
    for event in events:
        detail, at = {"actor": actor, **event.detail} if actor else event.detail, event.at
        body = {"entry": event.entry_id, "detail": detail} if detail else {"entry": event.entry_id}
        records.append(
            altered(_LINE, kind=kind, tenant=event.tenant, state=event.action, body=body, created_at=at, updated_at=at)
        )
    tx.put_records(records)


def events(reader: StoreReader, tenant: str | None, *, limit: int | None = None) -> list[Event]:
    """The audit log of a tenant (None: of all), newest first."""
    return [
        Event(
            at=record.created_at,
            tenant=record.tenant,
            action=record.state,
            entry_id=record.body.get("entry"),
            detail=record.body.get("detail", {}),
        )
        for record in reader.records(RecordFilter(tenant=tenant, kinds=[EVENT, ACCESS], limit=limit))
    ]


# -- the time that deleting by age may trust ---------------------------------------------------------------------------

CLOCK = "clock"
"""The kind of record that holds what was seen of the clock, one a tenant."""
JUMP = timedelta(days=1)


def trusted_now(tx: Tx, tenant: str, now: datetime) -> datetime:
    """The time by which things may be deleted for their age: never one that rests on a single jump of the clock.

    A step forward of more than a day since the clock was last looked at is a jump. It is believed when the clock is
    seen a day further on without having gone back. Until then, and while the clock is behind, the time stands still.
    The first look begins at the newest event.
    """
    at = to_micros(now)
    found = next(iter(tx.records(RecordFilter(tenant=tenant, kinds=[CLOCK], of_tenant=True, limit=1))), None)
    if found is None:
        newest = next((to_micros(one.at) for one in events(tx, tenant, limit=1)), 0)
        body = {"trusted": min(newest, at), "seen": newest, "jump": 0}
    else:
        body = found.body
    trusted, seen, jump = int(body["trusted"]), int(body["seen"]), int(body["jump"])
    day = JUMP // timedelta(microseconds=1)
    if jump and at - jump >= day:
        trusted, jump = max(trusted, jump), 0
    if at < seen or at - seen > day:
        jump = at if at > trusted else 0
    elif not jump:
        trusted = max(trusted, at)
    body = {"trusted": trusted, "seen": at, "jump": jump}
    if found is None or body != found.body:
        tx.put_records([Record(tenant=tenant, kind=CLOCK, key=CLOCK, body=body, created_at=now, updated_at=now)])
    return from_micros(trusted)
