"""API keys: made, listed, revoked, rotated, and looked up.

A key is `ww_<id>_<secret>`. The store keeps the id and a hash of the secret, never the secret: a secret has 256 random
bits, so a plain hash of it cannot be guessed back. A key belongs to one tenant, and to fixed ids on layers if it names
any. Keys are records of the tenant; a key that was revoked elsewhere is refused at once.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime, timedelta
from typing import Literal, get_args

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import InvalidInput, NotFound
from wellworn.core.plain import from_plain, to_plain
from wellworn.core.values import LAYERS, Scope
from wellworn.ingest.validate import checked_line
from wellworn.store.events import Event, audit
from wellworn.store.port import Record, RecordFilter, Store, StoreReader, Tx

API_KEY = "api_key"
"""The kind of record."""
Role = Literal["reader", "writer", "admin"]
ROLES: tuple[str, ...] = get_args(Role)
"""Each may do what those before it may."""
PREFIX = "ww"
_NO_DIGEST = "0" * 64


@dataclass(frozen=True, kw_only=True)
class ApiKey:
    """A key as the store keeps it: whose memory it opens, and how far."""

    id: str
    tenant: str
    role: Role
    name: str = ""
    layers: dict[str, list[str]] = field(default_factory=dict)
    """Ids per layer that it is bound to; empty: the whole tenant."""
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    rotated_to: str = ""
    """The id of the key in its place."""
    digest: str

    def active(self, now: datetime) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)

    @property
    def scope(self) -> Scope | None:
        """The scope it is bound to; None: any of its tenant."""
        return scope_of(self.tenant, self.layers) if self.layers else None


def scope_of(tenant: str, layers: Mapping[str, Sequence[str]]) -> Scope:
    """A scope of ids per layer; a layer with one id that people do not share is that id."""
    named = {layer: ids[0] if len(ids) == 1 else list(ids) for layer in LAYERS if (ids := layers.get(layer))}
    return Scope(tenant=tenant, **named)  # type: ignore[arg-type]  # Scope checks which layers may name several


def create_key(
    store: Store,
    *,
    tenant: str,
    role: str,
    now: datetime,
    name: str = "",
    layers: Mapping[str, Sequence[str]] | None = None,
    expires_at: datetime | None = None,
) -> tuple[ApiKey, str]:
    """A new key and its text, which nobody can read again."""
    name = checked_line("name", name)
    chosen = next((one for one in get_args(Role) if one == role), None)
    if chosen is None:
        raise InvalidInput("role", f"{role!r:.60} is not a role", f"use one of {', '.join(ROLES)}")
    if expires_at is not None and expires_at <= now:
        raise InvalidInput("expires", f"{expires_at.isoformat()} has passed", "give a later time")
    unknown = sorted({*(layers or {})} - {*LAYERS})
    if unknown:
        raise InvalidInput("layers", f"{unknown[0]!r:.60} is not a layer", f"use {', '.join(LAYERS)}")
    bound = {layer: list(ids) for layer, ids in (layers or {}).items() if ids}
    scope_of(tenant, bound)
    secret = secrets.token_urlsafe(32)
    key = ApiKey(
        id=secrets.token_hex(8),
        tenant=tenant,
        role=chosen,
        name=name,
        layers=bound,
        created_at=now,
        expires_at=expires_at,
        digest=_digest(secret),
    )
    with store.transact() as tx:
        _put(tx, key, now, "create_key")
    return key, f"{PREFIX}_{key.id}_{secret}"


def list_keys(reader: StoreReader, tenant: str | None = None) -> list[ApiKey]:
    """Keys of a tenant, or of all, newest first."""
    return [key for record in reader.records(RecordFilter(kinds=[API_KEY], tenant=tenant)) if (key := _key_of(record))]


def revoke_key(store: Store, id: str, *, now: datetime, tenant: str | None = None) -> ApiKey:
    """Refuse the key (of this tenant, or of any) from now on. Where no tenant is given, the beginning of the id will do."""
    with store.transact() as tx:
        key = _named(tx, id, tenant)
        if key.revoked_at is None:
            key = replace(key, revoked_at=now)
            _put(tx, key, now, "revoke_key")
    return key


def rotate_key(
    store: Store, id: str, *, now: datetime, grace: timedelta, tenant: str | None = None
) -> tuple[ApiKey, str]:
    """A new key in the place of another, which is refused when the grace has passed."""
    secret = secrets.token_urlsafe(32)
    with store.transact() as tx:
        old = _named(tx, id, tenant)
        if not old.active(now):
            raise InvalidInput("key", f"{old.id} is expired or revoked", "create a new one")
        if old.rotated_to:  # it ends with its grace, which is no lifetime for another
            raise InvalidInput("key", f"{old.id} was rotated", f"rotate {old.rotated_to}, which is in its place")
        end = now + grace
        ends = end if old.expires_at is None else min(end, old.expires_at)
        lasts = None if old.expires_at is None else now + (old.expires_at - old.created_at)
        new = replace(old, id=secrets.token_hex(8), created_at=now, expires_at=lasts, digest=_digest(secret))
        _put(tx, new, now, "create_key")
        _put(tx, replace(old, expires_at=ends, rotated_to=new.id), now, "rotate_key")
    return new, f"{PREFIX}_{new.id}_{secret}"


def id_in(token: str) -> str:
    """The id that the text of a key names; empty when it is no key."""
    prefix, _, rest = token.partition("_")
    id, _, secret = rest.partition("_")
    return id if prefix == PREFIX and secret and id.isascii() and id.isalnum() and len(id) <= 64 else ""


def find_key(reader: StoreReader, id: str) -> ApiKey | None:
    """The key of this id, whatever its state."""
    found = reader.records(RecordFilter(kinds=[API_KEY], keys=[id])) if id else []
    return _key_of(found[0]) if found else None


def opens(key: ApiKey | None, token: str, now: datetime) -> bool:
    """Whether the text is that of the key, and the key is active. It takes as long for a key that does not exist."""
    given = _digest(token.partition("_")[2].partition("_")[2])
    same = hmac.compare_digest(given.encode(), (_NO_DIGEST if key is None else key.digest).encode())
    return same and key is not None and key.active(now)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _named(reader: StoreReader, id: str, tenant: str | None) -> ApiKey:
    found = [
        key for key in list_keys(reader, tenant) if key.id == id or (tenant is None and id and key.id.startswith(id))
    ]
    if not found:
        raise NotFound("key", id, "see `wellworn keys list`")
    if len(found) > 1:
        raise InvalidInput("key", f"{id!r} is the beginning of {len(found)} ids", "give more of it")
    return found[0]


def _put(tx: Tx, key: ApiKey, now: datetime, action: str) -> None:
    record = Record(
        tenant=key.tenant, kind=API_KEY, key=key.id, body=to_plain(key), created_at=key.created_at, updated_at=now
    )
    tx.put_records([record])
    audit(tx, Event(at=now, tenant=key.tenant, action=action, detail={"key": key.id}))


def _key_of(record: Record) -> ApiKey | None:
    """The key in a record; None when somebody damaged it: it opens nothing then."""
    try:
        key = from_plain(ApiKey, record.body)
    except ValueError:
        return None
    return key if key.id == record.key and key.tenant == record.tenant else None
