"""An item and the entries it is kept as, computed over values: no reading, no writing.

An item is one entry per piece of text it is to be found by, or one that is never recalled. All carry the item's id as
their session, so that the item is selected as a whole, and their number as the turn, so that two items may say the
same. The first has the item's id for its own, the value as its evidence and the key in its metadata.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from wellworn.core.errors import InvalidInput
from wellworn.core.tokens import count_tokens
from wellworn.core.values import Entry, Partition
from wellworn.core.wellformed import well_formed
from wellworn.ingest.hashing import hash_of, thread_of
from wellworn.integrations.items.value import decode

MAX_KEY_CHARS = 4_096
LONGEST_TTL_MINUTES = 1_000_000_000.0
_UNNAMED = "-"


@dataclass(frozen=True, kw_only=True)
class Item:
    """A value under a key, as it is kept."""

    partition: Partition
    key: str
    value: dict[str, Any]  # any JSON object: the caller's own
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None
    ttl_minutes: float | None
    pieces: int
    indexed: bool
    """Whether a search by words or meaning can find it."""

    @property
    def id(self) -> str:
        return item_id(self.partition, self.key)


@dataclass(frozen=True, kw_only=True)
class Put:
    """A value to keep under a key, or with None a key to empty."""

    partition: Partition
    key: str
    value: Mapping[str, Any] | None
    texts: Sequence[Sequence[str]] = field(default=())
    """What it is found by: runs of texts, each one's neighbours those beside it in its run."""
    ttl_minutes: float | None = None


def item_id(partition: Partition, key: str) -> str:
    """The id that follows from where an item is and what it is called: a UUID, as every entry's."""
    return piece_id("\x1f".join((partition.tenant, partition.layer, partition.layer_id, key)), 0)


def piece_id(name: str, number: int) -> str:
    digest = hashlib.blake2b(f"{number}\x1f{name}".encode(), digest_size=16, person=b"wellworn item").digest()
    return str(uuid.UUID(bytes=digest, version=5))


def checked_key(key: object) -> str:
    if not isinstance(key, str):
        raise InvalidInput("key", f"must be text, not {type(key).__name__}")
    if len(key) > MAX_KEY_CHARS:
        raise InvalidInput("key", f"has {len(key):,} characters", f"use at most {MAX_KEY_CHARS:,}")
    if well_formed(key) != key:
        raise InvalidInput("key", f"{key!r:.60} holds half a character", "decode the source as UTF-8")
    return key


def checked_ttl(minutes: object) -> float | None:
    if minutes is None:
        return None
    if isinstance(minutes, bool) or not isinstance(minutes, int | float) or not 0 < minutes <= LONGEST_TTL_MINUTES:
        raise InvalidInput("ttl", f"{minutes!r:.60} is not a number of minutes", "use one above 0, or None for no end")
    return float(minutes)


def end_of(now: datetime, ttl_minutes: float | None) -> datetime | None:
    """When an item read or written now expires; never at once, and not beyond the end of the calendar."""
    if ttl_minutes is None:
        return None
    try:
        return now + max(timedelta(minutes=ttl_minutes), timedelta(microseconds=1))
    except OverflowError:
        return None


def entries_of(put: Put, evidence: str, now: datetime, *, at: datetime, source: str) -> list[Entry]:
    """The entries of a value that is given as JSON; `at` says which of several is the newest."""
    runs = [[text for text in map(_readable, run) if text.strip()] for run in put.texts]
    placed = _placed([run for run in runs if run])
    own_id = item_id(put.partition, put.key)
    texts = [text for _, text in placed] or [_readable(put.key).strip() or _UNNAMED]
    entries = [
        replace(_entry(put, own_id, number, text, now), at=at, source=source) for number, text in enumerate(texts)
    ]
    entries[0] = replace(
        entries[0],
        evidence=evidence,
        state="active" if placed else "pruned",
        metadata={"key": put.key, "pieces": len(texts), "ttl_minutes": put.ttl_minutes},
    )
    if len(placed) < 2:
        return entries
    thread = thread_of("item", own_id)
    return [
        replace(entry, thread=thread, position=position) for entry, (position, _) in zip(entries, placed, strict=True)
    ]


def _placed(runs: Sequence[Sequence[str]]) -> list[tuple[int, str]]:
    """Texts with their positions: one apart within a run, further apart between runs."""
    placed: list[tuple[int, str]] = []
    for run in runs:
        start = placed[-1][0] + 10 if placed else 0  # beyond the reach of any neighbourhood
        placed += [(start + number, text) for number, text in enumerate(run)]
    return placed


def _entry(put: Put, own_id: str, number: int, text: str, now: datetime) -> Entry:
    return Entry(
        id=own_id if number == 0 else piece_id(own_id, number),
        partition=put.partition,
        kind="episode",
        text=text,
        evidence=text,
        session_id=own_id,
        turn_refs=[number],
        token_count=count_tokens(text),
        content_hash=hash_of(text, kind="episode", session_id=own_id, turn_refs=[number]),
        at=now,
        created_at=now,
        updated_at=now,
        valid_from=now,
        valid_to=end_of(now, put.ttl_minutes),
    )


def _readable(text: str) -> str:
    """Text that an entry may have; only the index sees it, the value is kept as it is."""
    return well_formed(text).replace("\x00", " ")


def item_of(entry: Entry) -> Item | None:
    """The item whose first entry this is; None when it is no item's."""
    key = entry.metadata.get("key")
    if entry.turn_refs != [0] or not isinstance(key, str) or entry.id != item_id(entry.partition, key):
        return None
    return Item(
        partition=entry.partition,
        key=key,
        value=decode(entry.evidence),
        created_at=entry.created_at,
        updated_at=entry.updated_at,
        expires_at=entry.valid_to,
        ttl_minutes=entry.metadata["ttl_minutes"],
        pieces=entry.metadata["pieces"],
        indexed=entry.state != "pruned",
    )


def is_valid(entry: Entry, now: datetime) -> bool:
    return entry.valid_to is None or now < entry.valid_to
