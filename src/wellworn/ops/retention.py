"""How long things are kept, and erasing a person with a receipt that can be checked later.

A policy belongs to a tenant: days by kind of entry, and days for logged recalls that nobody reported an outcome of.
Recalls with outcomes stay, since learning is replayed from them; events and model calls hold no text and stay too.

An erasure forgets everything of a person's layer, what was derived from it and copied elsewhere, and learns the tenant's
shared numbers again without them. Backups made before are removed by the next `backup create`. The receipt is signed
(HMAC-SHA256) with a key that is given, or one that the store keeps for the tenant.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from typing import Any

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import InvalidInput, NotFound
from wellworn.core.plain import from_plain, to_plain
from wellworn.core.values import KINDS, Entry, Receipt, Scope
from wellworn.ingest.forget import Forgetter
from wellworn.ops.backup import ERASE, folder_of
from wellworn.ops.files import clean_up, sweep
from wellworn.store.events import ACCESS, JUMP, Event, audit, trusted_now
from wellworn.store.port import Record, RecordFilter, Store
from wellworn.store.sqlite import SqliteStore

Relearn = Callable[[str], None]
"""Learns the log of a tenant again."""
RETENTION, RECEIPT_KEY, ERASING = "retention", "receipt_key", "erasing"
"""Kinds of records of a tenant."""


@dataclass(frozen=True, kw_only=True)
class RetentionPolicy:
    """How many days a tenant keeps things; what is not named is kept."""

    kinds: dict[str, float] = field(default_factory=dict)
    """Days by kind of entry, from when it happened, or was last said in a turn that is kept."""
    recalls: float | None = None
    """Days of logged recalls without an outcome."""
    calls: float | None = None
    """Days of calls of the service in the audit log."""


@dataclass(frozen=True, kw_only=True)
class Expired:
    """What was removed because its time was over."""

    entries: int = 0
    recalls: int = 0
    calls: int = 0
    counted_from: datetime | None = None
    """From when ages were counted, if not from now: the clock had moved on by more than a day since it was last seen, and
    nothing is deleted for a single jump of it."""


@dataclass(frozen=True, kw_only=True)
class SignedReceipt:
    """What an erasure removed, and a signature over it."""

    receipt: dict[str, Any]
    signature: str


def retention_of(store: Store, tenant: str) -> RetentionPolicy:
    """The policy of a tenant; without one, everything is kept."""
    found = store.records(RecordFilter(kinds=[RETENTION], tenant=tenant, of_tenant=True, keys=[RETENTION]))
    return from_plain(RetentionPolicy, found[0].body) if found else RetentionPolicy()


def set_retention(store: Store, tenant: str, policy: RetentionPolicy, now: datetime) -> None:
    """Keep a policy for a tenant, in the place of the one before."""
    body = to_plain(checked_policy(policy))
    with store.transact() as tx:
        tx.put_records(
            [Record(tenant=tenant, kind=RETENTION, key=RETENTION, body=body, created_at=now, updated_at=now)]
        )


def checked_policy(policy: RetentionPolicy) -> RetentionPolicy:
    if not isinstance(policy, RetentionPolicy) or not isinstance(policy.kinds, dict):
        raise InvalidInput("policy", "is not a RetentionPolicy", "as in RetentionPolicy(kinds={'note': 90})")
    unknown = sorted(str(kind) for kind in policy.kinds.keys() - {*KINDS})
    if unknown:
        raise InvalidInput("kinds", f"{unknown[0]!r} is not a kind of entry", f"use {', '.join(KINDS)}")
    days = [*policy.kinds.values(), *(one for one in (policy.recalls, policy.calls) if one is not None)]
    if any(isinstance(one, bool) or not isinstance(one, int | float) or not 0 < one < 100_000 for one in days):
        raise InvalidInput("days", f"{days} are not all above 0 and below 100,000", "leave a kind out to keep it")
    return policy


def expire(
    store: Store,
    forgetter: Forgetter,
    tenant: str,
    now: datetime,
    *,
    policy: RetentionPolicy | None = None,
    dry_run: bool = False,
) -> Expired:
    """Forget the tenant's entries, and drop its logged recalls, whose time is over by a policy, or by its own.

    With `dry_run` nothing is removed, only counted.
    """

    def removed(wanted: RecordFilter) -> int:
        if dry_run:
            return len(store.records(wanted))
        with store.transact() as tx:
            return tx.drop_records(wanted)

    policy, entries, recalls, calls = policy or retention_of(store, tenant), 0, 0, 0
    with store.transact() as tx:
        trusted = trusted_now(tx, tenant, now)
    counted_from, now = trusted if now - trusted > JUMP else None, min(now, trusted)
    for partition in store.partitions(tenant) if policy.kinds else ():
        for page in [*store.pages([partition])]:
            days = {entry.id: policy.kinds[entry.kind] for _, entry in page if entry.kind in policy.kinds}
            said = _last_said(store, [entry for _, entry in page if entry.id in days])
            old = [id for id, at in said.items() if now - at > timedelta(days=days[id])]
            if dry_run:
                entries += len(old)
            elif old:
                about: dict[str, Any] = {"session_id": None, "everything": False, "layer": None, "turns": True}
                entries += forgetter.forget(scope=partition.scope, ids=old, expired=True, **about).entries
    if policy.recalls is not None:
        before = now - timedelta(days=policy.recalls)
        told = {one.body.get("recall") for one in store.records(RecordFilter(kinds=["outcome"], tenant=tenant))}
        logged = store.records(RecordFilter(kinds=["recall"], tenant=tenant, before=before))
        keys = [one.key for one in logged if one.key not in told]
        for start in range(0, len(keys), 500):
            recalls += removed(RecordFilter(kinds=["recall"], tenant=tenant, keys=keys[start : start + 500]))
    if policy.calls is not None:
        before = now - timedelta(days=policy.calls)
        calls = removed(RecordFilter(kinds=[ACCESS], tenant=tenant, before=before))
    return Expired(entries=entries, recalls=recalls, calls=calls, counted_from=counted_from)


def _last_said(store: Store, entries: Sequence[Entry]) -> dict[str, datetime]:
    """When each happened, or the latest of the turns that it rests on, as far as they are kept."""
    found = {entry.id: entry.at for entry in entries}
    links = [link for link in store.links([*found], types=["derived_from"]) if link.source in found] if found else []
    turns = store.get(None, [link.target for link in links])
    for link in links:
        if link.target in turns:
            found[link.source] = max(found[link.source], turns[link.target].at)
    return found


def erase(
    store: Store, forgetter: Forgetter, relearn: Relearn, scope: Scope, now: datetime, *, key: bytes | None = None
) -> SignedReceipt:
    """Forget everything of the scope's home layer, and sign what was done. `NotFound` when there is nothing of it.

    A record says that it is under way, so that one that was cut short can be done again to its end.
    """
    home = scope.home()
    name = f"{home.layer}:{home.layer_id}"
    under_way = RecordFilter(kinds=[ERASING], tenant=scope.tenant, of_tenant=True, keys=[name])
    if store.heads([home]) == [None] and not store.records(under_way):
        raise NotFound("data of", f"{home.layer} {home.layer_id}", "nothing was erased; check the name")
    with store.transact() as tx:
        tx.add_record(Record(tenant=scope.tenant, kind=ERASING, key=name, created_at=now, updated_at=now))
    forgotten: Receipt = forgetter.forget(
        scope=scope, ids=None, session_id=None, everything=True, layer=None, turns=None
    )
    relearn(scope.tenant)
    with store.transact() as tx:
        audit(tx, Event(at=forgotten.at, tenant=scope.tenant, action=ERASE, detail={"entries": forgotten.entries}))
        tx.drop_records(under_way)
    store.scrub()
    clean_up(store)
    if isinstance(store, SqliteStore):
        sweep(folder_of(store.path))
    about = {name: value for name, value in to_plain(forgotten).items() if name != "ids"}
    about |= {"ids": len(forgotten.ids), "person": {"tenant": home.tenant, "layer": home.layer, "id": home.layer_id}}
    about["backups"] = "older backups are removed by the next `wellworn backup create`"
    return SignedReceipt(receipt=about, signature=_signature(about, key or _key_of(store, scope.tenant, forgotten.at)))


def receipt_holds(signed: SignedReceipt, *, store: Store | None = None, key: bytes | None = None) -> bool:
    """Whether a receipt is as it was signed, with a key, or with the one that the store keeps for its tenant."""
    if key is None and store is not None:
        key = _stored_key(store, str(signed.receipt.get("person", {}).get("tenant", "")))
    return key is not None and hmac.compare_digest(_signature(signed.receipt, key), signed.signature)


def _signature(about: Mapping[str, Any], key: bytes) -> str:
    text = json.dumps(about, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def _stored_key(store: Store, tenant: str) -> bytes | None:
    wanted = RecordFilter(kinds=[RECEIPT_KEY], tenant=tenant, of_tenant=True, keys=[RECEIPT_KEY])
    return found[0].blob if (found := store.records(wanted)) else None


def _key_of(store: Store, tenant: str, now: datetime) -> bytes:
    with store.transact() as tx:
        made = Record(
            tenant=tenant, kind=RECEIPT_KEY, key=RECEIPT_KEY, blob=os.urandom(32), created_at=now, updated_at=now
        )
        tx.add_record(made)  # unless there is one
    found = _stored_key(store, tenant)
    return found or b""
