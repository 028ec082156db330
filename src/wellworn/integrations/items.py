"""Items: JSON values under keys, stored as entries of a memory. The LangGraph store and the vector store use them.

An item is one entry: its text is what the item is found by, its evidence is the value, its metadata has the key. An
item that nothing should find is never recalled. A put is one transaction. Knows no framework.
"""

from __future__ import annotations

import hashlib
import json
import operator
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain
from typing import Any, TypeVar

import numpy as np

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import InvalidInput
from wellworn.core.locks import patience
from wellworn.core.values import Entry, Hit, Partition
from wellworn.core.wellformed import count_tokens, well_formed
from wellworn.engine import Engine
from wellworn.ingest.scrub import scrubbed_json
from wellworn.ingest.terms import hash_of, record_of
from wellworn.ingest.validate import MAX_TEXT_BYTES
from wellworn.integrations import WAIT_S
from wellworn.store.events import Event, audit
from wellworn.store.port import NewEntry, Selection, Tx

MAX_KEY_CHARS = 4_096
PAGE = 100
_FIRST_HITS = 20
_GROWTH = 16
_ID_SALT = bytes.fromhex("7265636f6c6c656374206974656d")
"""Part of every stored item's id: never change it."""

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class StoredItem:
    """A value under a key, as it is stored."""

    partition: Partition
    key: str
    value: dict[str, Any]  # any JSON object: the caller's own
    created_at: datetime
    updated_at: datetime
    indexed: bool
    """Whether a search by words or meaning can find it."""


@dataclass(frozen=True, kw_only=True)
class PutItem:
    """A value to store under a key; None deletes the key."""

    partition: Partition
    key: str
    value: Mapping[str, Any] | None
    text: str = ""
    """What a search finds it by."""


# -- checks ------------------------------------------------------------------------------------------------------


def checked_key(key: object) -> str:
    if not isinstance(key, str):
        raise InvalidInput("key", f"must be text, not {type(key).__name__}")
    if len(key) > MAX_KEY_CHARS:
        raise InvalidInput("key", f"has {len(key):,} characters", f"use at most {MAX_KEY_CHARS:,}")
    if well_formed(key) != key:
        raise InvalidInput("key", f"{key!r:.60} holds half a character", "decode the source as UTF-8")
    return key


def encoded(value: Mapping[str, Any]) -> str:
    """Return the value as JSON text that reads back exactly. What JSON would change on the way is refused."""
    if not isinstance(value, dict):
        raise InvalidInput("value", f"must be a dict, not {type(value).__name__}", "as in {'text': …}")
    try:
        _check_keys(value)
        written = (json.dumps(value, ensure_ascii=way, allow_nan=False, separators=(",", ":")) for way in (False, True))
        text = next(text for text in written if well_formed(text) == text)  # half a character: JSON can spell it
    except InvalidInput:
        raise
    except (TypeError, ValueError, RecursionError) as error:
        remedy = "use texts, finite numbers, lists, dicts"
        raise InvalidInput("value", f"is not plain JSON: {error}", remedy) from None
    size = len(text.encode())
    if size > MAX_TEXT_BYTES:
        raise InvalidInput("value", f"has {size:,} bytes as JSON, the limit is {MAX_TEXT_BYTES:,}", "split it")
    return text


def _check_keys(value: object) -> None:
    """Refuse keys that are not text: JSON would turn a number into text without a word."""
    if isinstance(value, dict):
        for key, one in value.items():
            if not isinstance(key, str):
                raise InvalidInput("value", f"has the key {key!r:.60}, which is not text", "JSON keys are texts")
            _check_keys(one)
    elif isinstance(value, list | tuple):
        for one in value:
            _check_keys(one)


# -- filters over JSON values, as LangGraph's stores understand them ---------------------------------------------

_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_OPERATORS = ("$eq", "$ne", *_ORDERS)


def check_filter(wanted: object) -> None:
    """Refuse unknown operators before anything is read."""
    if isinstance(wanted, Mapping):
        for name, one in wanted.items():
            if isinstance(name, str) and name.startswith("$") and name not in _OPERATORS:
                raise InvalidInput("filter", f"{name!r} is not an operator", f"use one of {', '.join(_OPERATORS)}")
            check_filter(one)


def matches(value: Any, wanted: Any) -> bool:
    """Whether a JSON value is as wanted: equal, equal in the fields named, or within the operators (`$gt`, …)."""
    if isinstance(wanted, Mapping):
        if any(isinstance(name, str) and name.startswith("$") for name in wanted):
            return all(_holds(value, name, operand) for name, operand in wanted.items())
        return isinstance(value, Mapping) and all(matches(_field(value, name), one) for name, one in wanted.items())
    return bool(value == wanted)


def _field(value: Mapping[str, Any], name: str) -> Any:
    """Return a field, or one further down if the name has full stops: `address.city`."""
    head, dot, rest = name.partition(".")
    if not dot or name in value:
        return value.get(name)
    below = value.get(head)
    return _field(below, rest) if isinstance(below, Mapping) else None


def _holds(value: Any, name: str, operand: Any) -> bool:
    """Compare numbers, and texts that read as numbers, as numbers; else two texts. Anything else does not match."""
    if name in ("$eq", "$ne"):
        return bool(value == operand) is (name == "$eq")
    try:
        return _ORDERS[name](float(value), float(operand))
    except (TypeError, ValueError, OverflowError):
        return isinstance(value, str) and isinstance(operand, str) and _ORDERS[name](value, operand)


# -- items as entries --------------------------------------------------------------------------------------------


def item_id(partition: Partition, key: str) -> str:
    """Return the id of the item under a key, which follows from its place: a UUID, like every entry's."""
    name = "\x1f".join(("0", partition.tenant, partition.layer, partition.layer_id, key))
    digest = hashlib.blake2b(name.encode(), digest_size=16, person=_ID_SALT).digest()
    return str(uuid.UUID(bytes=digest, version=5))


def item_of(entry: Entry) -> StoredItem | None:
    """Return the item whose first entry this is, if it is one."""
    key = entry.metadata.get("key")
    if entry.turn_refs != [0] or not isinstance(key, str) or entry.id != item_id(entry.partition, key):
        return None
    return StoredItem(
        partition=entry.partition,
        key=key,
        value=json.loads(entry.evidence),
        created_at=entry.created_at,
        updated_at=entry.updated_at,
        indexed=entry.state != "pruned",
    )


def is_valid(entry: Entry, now: datetime) -> bool:
    """Whether it holds; items of an older release may have expired."""
    return entry.valid_to is None or now < entry.valid_to


def _entry_of(put: PutItem, now: datetime, at: datetime, source: str) -> Entry:
    own_id = item_id(put.partition, put.key)
    found_by = well_formed(put.text).replace("\x00", " ")
    text = found_by if found_by.strip() else well_formed(put.key).replace("\x00", " ").strip() or "-"
    return Entry(
        id=own_id,
        partition=put.partition,
        kind="episode",
        text=text,
        evidence=encoded(put.value or {}),
        source=source,
        session_id=own_id,
        turn_refs=[0],  # so that two items may say the same
        token_count=count_tokens(text),
        content_hash=hash_of(text, kind="episode", session_id=own_id, turn_refs=[0]),
        state="active" if found_by.strip() else "pruned",
        at=at,
        created_at=now,
        updated_at=now,
        valid_from=now,
        metadata={"key": put.key},
    )


# -- storing and finding -----------------------------------------------------------------------------------------


def first_accepted(
    find: Callable[[int], Sequence[Hit]], *, k: int, want: int, accept: Callable[[Hit], T | None]
) -> list[T]:
    """Return what is accepted of the best `k` hits; finds more hits until that is enough, or there are no more."""
    while True:
        found = find(k)
        accepted = [result for hit in found if (result := accept(hit)) is not None]
        if len(accepted) >= want or len(found) < k:
            return accepted[:want]
        k *= _GROWTH


class Items:
    """The items of one memory. `source` is what their entries say they come from."""

    def __init__(self, engine: Engine, *, source: str) -> None:
        self._store = engine.store
        self._searcher = engine.searcher
        self._writer = engine.writer
        self._no_vector = None if engine.embedder is None else np.zeros(engine.embedder.width, dtype=np.float32)
        self._source = source

    def now(self) -> datetime:
        return self._writer.clock()

    def get(self, wanted: Iterable[tuple[Partition, str]]) -> dict[tuple[Partition, str], StoredItem]:
        """Return the items under these keys that are there and have not expired."""
        ids = {item_id(partition, checked_key(key)): partition for partition, key in wanted}
        entries = self._store.get([*dict.fromkeys(ids.values())], [*ids]) if ids else {}
        return {(item.partition, item.key): item for item in filter(None, map(self.item, entries.values()))}

    def search(
        self, query: str, *, partitions: Sequence[Partition], want: int, accept: Callable[[Hit], T | None]
    ) -> list[T]:
        """Return what is accepted of the best hits."""
        return first_accepted(
            lambda k: [*chain.from_iterable(self._searcher.search(query, partitions=partitions, k=k, page=PAGE))],
            k=max(_FIRST_HITS, 2 * want),
            want=want,
            accept=accept,
        )

    def newest(self, *, partitions: Sequence[Partition]) -> Iterator[StoredItem]:
        """Iterate over the items of these partitions, the one put last first."""
        for page in self._searcher.newest(partitions=partitions, page=PAGE):
            yield from filter(None, map(self.item, page))

    def item(self, entry: Entry) -> StoredItem | None:
        """Return the item of an entry, unless it is none or has expired."""
        return item_of(entry) if is_valid(entry, self.now()) else None

    def is_empty(self, partition: Partition) -> bool:
        """Whether a partition holds nothing; reads the store, so that listing loads no index."""
        return not self._store.select([partition], Selection(), limit=1) and not self._store.sessions(partition)

    def put(self, puts: Sequence[PutItem]) -> None:
        """Store or delete all of these, or none if one is refused. Of several under one key the last counts."""
        last = {(put.partition, checked_key(put.key)): put for put in puts}
        now = self.now()
        stored = self._records([put for put in last.values() if put.value is not None], now)
        deleted = {item_id(put.partition, put.key): put.partition for put in last.values() if put.value is None}
        there = self._store.get([*dict.fromkeys(deleted.values())], [*deleted]) if deleted else {}
        if not stored and not there:
            return
        with patience(WAIT_S["call"]), self._writer.transact() as tx:
            for record in stored:
                _write(tx, record, now)
            for entry in there.values():
                if tx.remove(entry.partition, Selection(session_id=entry.id)).entries:
                    audit(tx, Event(at=now, tenant=entry.tenant, action="forget", entry_id=entry.id))
        if there:  # gone from memory and from the file's own bytes
            self._searcher.forget([*dict.fromkeys(entry.partition for entry in there.values())])
            self._store.scrub()

    def drop_empty(self, partitions: Iterable[Partition]) -> None:
        """Remove those of the partitions that hold nothing, names included."""
        empty = [partition for partition in dict.fromkeys(partitions) if self.is_empty(partition)]
        if empty:
            with patience(WAIT_S["call"]), self._store.transact() as tx:
                for partition in empty:
                    if self.is_empty(partition):  # someone may have written before us; nobody can now
                        tx.drop_partition(partition)
            self._store.scrub()

    def _records(self, puts: Sequence[PutItem], now: datetime) -> list[NewEntry]:
        """Return what to write for each item. Embeds all at once, so never call it inside a transaction."""
        entries = []
        for number, put in enumerate(puts):
            if self._writer.scrubbing.on:
                scrub = self._writer.scrubbing.stored(put.partition)
                put = replace(put, value=scrubbed_json(put.value, scrub), text=scrub(put.text))
            # A microsecond apart, so that those of one batch are newest in the order they were put.
            entries.append(_entry_of(put, now, now + timedelta(microseconds=number), self._source))
        found = [entry for entry in entries if entry.state == "active"]
        ready = {record.entry.id: record for record in (self._writer.records_of(found) if found else ())}
        return [ready.get(e.id) or NewEntry(entry=e, index=record_of(e), vector=self._no_vector) for e in entries]


def _write(tx: Tx, record: NewEntry, now: datetime) -> None:
    """Write an item in the place of the one under its key, if there is one."""
    head = record.entry
    before = tx.get([head.partition], [head.id]).get(head.id)
    if before is not None and is_valid(before, now):
        continued = replace(
            head,
            created_at=before.created_at,
            at=max(head.at, before.at),
            updated_at=max(head.updated_at, before.updated_at),
            valid_from=min(head.valid_from, before.valid_from),
        )
        record = replace(record, entry=continued)
    tx.remove(head.partition, Selection(session_id=head.id))  # an older release wrote several entries for an item
    tx.add(record)
    audit(tx, Event(at=now, tenant=head.tenant, action="remember" if before is None else "edit", entry_id=head.id))
