"""The audit log: events as records of kind `event`. They hold ids and numbers, never text, and are never changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from wellworn.store.port import Record, RecordFilter, StoreReader, Tx

EVENT = "event"
"""The kind of record."""


@dataclass(frozen=True, kw_only=True)
class Event:
    """One line of the audit log."""

    at: datetime
    tenant: str
    action: str
    entry_id: str | None = None
    detail: dict[str, int | float | str] = field(default_factory=dict)


def audit(tx: Tx, event: Event) -> None:
    """Append an event to the log of its tenant."""
    body = {"entry": event.entry_id, "detail": event.detail} if event.detail else {"entry": event.entry_id}
    record = Record(
        tenant=event.tenant, kind=EVENT, state=event.action, body=body, created_at=event.at, updated_at=event.at
    )
    tx.put_records([record])


def events(reader: StoreReader, tenant: str, *, limit: int | None = None) -> list[Event]:
    """The audit log of a tenant, newest first."""
    return [
        Event(
            at=record.created_at,
            tenant=tenant,
            action=record.state,
            entry_id=record.body.get("entry"),
            detail=record.body.get("detail", {}),
        )
        for record in reader.records(RecordFilter(tenant=tenant, kinds=[EVENT], limit=limit))
    ]
