"""Entries, turns, links and records with sensible defaults, for tests of stores and what uses them.

Everything is computed from the arguments: no clock, no randomness. Give an id, and name what matters to the test.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import numpy as np

from wellworn.core.values import Entry, Layer, Link, LinkType, Partition, Turn
from wellworn.core.wellformed import count_tokens
from wellworn.ingest.terms import record_of
from wellworn.store.port import (
    EmbeddingModel,
    IndexRecord,
    NewEntry,
    Record,
    RecordFilter,
    Selection,
    Store,
    Tx,
    Vector,
)

NOON = datetime(2024, 5, 1, 12, 0, tzinfo=UTC)
"""When everything happens, unless told otherwise."""
MODEL = EmbeddingModel(name="made-up", width=4)
OTHER_MODEL = EmbeddingModel(name="made-up-wide", width=6)


def minutes_later(minutes: float) -> datetime:
    """That long after `NOON`."""
    return NOON + timedelta(minutes=minutes)


def make_partition(layer_id: str = "ada", *, tenant: str = "acme", layer: Layer = "user") -> Partition:
    return Partition(tenant=tenant, layer=layer, layer_id=layer_id)


def make_entry(id: str, **given: Any) -> Entry:  # any field of Entry
    """An entry of that id; its text defaults to a sentence of its own, its times to `NOON`."""
    text = given.get("text", f"the text of {id}")
    at = given.get("at", NOON)
    defaults: dict[str, Any] = {  # the fields of Entry that have no default of their own
        "partition": make_partition(),
        "kind": "note",
        "text": text,
        "evidence": text,
        "token_count": count_tokens(text),
        "content_hash": hashlib.sha256(text.encode()).hexdigest(),
        "at": at,
        "created_at": at,
        "updated_at": at,
        "valid_from": at,
    }
    return Entry(id=id, **(defaults | given))


def analyze(text: str, **given: Any) -> IndexRecord:  # any field of Entry
    """The index record of an entry with this text."""
    return record_of(make_entry("1", text=text, **given))


def make_index(text: str, **given: Any) -> IndexRecord:  # any field of IndexRecord
    """An index record from the words of a text as they stand; real ones come from `ingest.terms`."""
    counted = sorted(Counter(_hash64(word) for word in text.split()).items())
    defaults: dict[str, Any] = {  # the fields of IndexRecord
        "terms": np.array([term for term, _ in counted], dtype=np.uint64),
        "counts": np.array([min(count, 65_535) for _, count in counted], dtype=np.uint16),
        "length": sum(count for _, count in counted),
        "chars": len(text),
        "traits": 1 if text.endswith("?") else 0,
        "speaker": 0,
        "near": (_signed64(f"a {text}"), _signed64(f"b {text}")),
    }
    return IndexRecord(**(defaults | given))


def make_vector(text: str, *, width: int = MODEL.width) -> Vector:
    """A vector of unit length that depends on the text alone."""
    seed = hashlib.blake2b(text.encode(), digest_size=8).digest()
    values = np.random.default_rng(int.from_bytes(seed, "little")).normal(size=width)
    return (values / np.linalg.norm(values)).astype(np.float32)


def make_new_entry(
    id: str, *, index: IndexRecord | None = None, vector: Vector | None = None, **given: Any
) -> NewEntry:
    """An entry (see `make_entry`) with its index record, and a vector only where one is given."""
    entry = make_entry(id, **given)
    return NewEntry(entry=entry, index=index or make_index(entry.text), vector=vector)


def make_turn(number: int, *, session_id: str = "monday", **given: Any) -> Turn:  # any field of Turn
    defaults: dict[str, Any] = {"role": "user", "text": f"turn {number}", "at": minutes_later(number)}
    return Turn(session_id=session_id, number=number, **(defaults | given))


def make_link(source: str, target: str, type: LinkType = "supports", **given: Any) -> Link:  # any field of Link
    defaults: dict[str, Any] = {"automatic": type in get_args(LinkType)[:4], "created_at": NOON}
    return Link(source=source, target=target, type=type, **(defaults | given))


def make_record(key: str, **given: Any) -> Record:  # any field of Record
    """A task of that key, put at `NOON`, that names nothing."""
    defaults: dict[str, Any] = {"partition": make_partition(), "kind": "task", "created_at": NOON, "updated_at": NOON}
    return Record(key=key, **(defaults | given))


def _hash64(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def _signed64(text: str) -> int:
    return _hash64(text) - (1 << 63)


# -- short ways to use a store ---------------------------------------------------------------------------------------


def add(store: Store, *new: NewEntry) -> list[int]:
    """All in one transaction; their row numbers."""
    with store.transact() as tx:
        for one in new:
            tx.add(one)
    return [no_of(store, one.entry.id) for one in new]


def no_of(store: Store, entry_id: str) -> int:
    return store.select(None, Selection(ids=[entry_id]))[0][0]


def entry_in(store: Store, entry_id: str) -> Entry:
    return store.get(None, [entry_id])[entry_id]


def ids_on(store: Store, *partitions: Partition) -> list[str]:
    return [entry.id for _, entry in store.select(partitions, Selection())]


def write(store: Store, act: Callable[[Tx], Any]) -> Any:  # whatever the act returns
    with store.transact() as tx:
        return act(tx)


def put(store: Store, *records: Record, replace: bool = True) -> list[Any]:  # numbers, or None
    with store.transact() as tx:
        return tx.put_records(records, replace=replace)


def drop(store: Store, **wanted: Any) -> int:
    with store.transact() as tx:
        return tx.drop_records(RecordFilter(**wanted))


def keys(store: Store, **wanted: Any) -> list[str]:
    return [record.key for record in store.records(RecordFilter(**wanted))]
