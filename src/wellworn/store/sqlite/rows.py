"""Entries as rows and back, as JSON snapshots of older states, and lists of values in SQL."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

import numpy as np

from wellworn.core.clock import from_micros, to_micros
from wellworn.core.errors import StoreCorrupt
from wellworn.core.values import Entry, Partition, filled
from wellworn.store.port import IndexRecord, Vector
from wellworn.store.sqlite.damage import FLOAT, INT, NONE, TEXT, TROUBLE, fits

ENTRY_COLUMNS = (
    "id",
    "kind",
    "state",
    "trust",
    "confidence",
    "repeats",
    "usage_count",
    "success_count",
    "failure_count",
    "token_count",
    "at",
    "created_at",
    "updated_at",
    "valid_from",
    "valid_to",
    "thread",
    "position",
    "session_id",
    "turn_refs",
    "content_hash",
    "source",
    "speaker",
    "title",
    "tags",
    "metadata",
    "text",
    "evidence",
)
SELECT_ENTRY = ", ".join(f"e.{column}" for column in ENTRY_COLUMNS) + ", s.tenant, s.layer, s.layer_id"
"""What `entry_from` reads, from `entries e JOIN partitions s`."""

MOST_MARKS = 100
"""Values that are given one by one; more are given as one JSON list."""
_SNAPSHOT = tuple(each.name for each in fields(Entry) if each.name != "partition")
_decode = json.JSONDecoder().raw_decode
_dumps = json.JSONEncoder(ensure_ascii=False).encode  # `json.dumps` makes one for every call
_LISTS = frozenset({"turn_refs", "tags", "metadata"})
_TIMES = frozenset({"at", "created_at", "updated_at", "valid_from", "valid_to"})


def entry_row(entry: Entry) -> tuple[Any, ...]:
    """The values of `ENTRY_COLUMNS`."""
    first = to_micros(entry.at)  # as in `_entry_from`
    return (
        entry.id,
        entry.kind,
        entry.state,
        entry.trust,
        entry.confidence,
        entry.repeats,
        entry.usage_count,
        entry.success_count,
        entry.failure_count,
        entry.token_count,
        first,
        first if entry.created_at is entry.at else to_micros(entry.created_at),
        first if entry.updated_at is entry.at else to_micros(entry.updated_at),
        first if entry.valid_from is entry.at else to_micros(entry.valid_from),
        None if entry.valid_to is None else to_micros(entry.valid_to),
        entry.thread,
        entry.position,
        entry.session_id,
        _json(entry.turn_refs),
        entry.content_hash,
        entry.source,
        entry.speaker,
        entry.title,
        _json(entry.tags),
        _json(entry.metadata),
        entry.text,
        None if entry.evidence == entry.text else entry.evidence,
    )


def column_of(entry: Entry, column: str) -> Any:  # whatever SQLite keeps
    """The value of one of `ENTRY_COLUMNS`."""
    value = getattr(entry, column)
    if column in _TIMES:
        return None if value is None else to_micros(value)
    if column in _LISTS:
        return _json(value)
    return None if column == "evidence" and value == entry.text else value


_MAYBE = frozenset({"valid_to", "thread", "position", "session_id", "speaker", "evidence"})
_NUMBERS = frozenset({"repeats", "usage_count", "success_count", "failure_count", "token_count", "thread", "position"})
_COLUMN_TYPES = (
    *(
        (FLOAT if name == "confidence" else INT if name in _NUMBERS | _TIMES else TEXT)
        + (NONE if name in _MAYBE else ())
        for name in ENTRY_COLUMNS
    ),
    *(TEXT, TEXT, TEXT),
)


def entry_from(row: tuple[Any, ...]) -> Entry:
    """The entry of a row selected with `SELECT_ENTRY`."""
    try:
        if not fits(row, _COLUMN_TYPES):
            raise TypeError("a column holds a value of another type")
        return _entry_from(row)
    except TROUBLE as error:
        raise StoreCorrupt(f"entry {row[0]!r:.80} cannot be read: {error}; run `wellworn doctor`") from error


def _entry_from(row: tuple[Any, ...]) -> Entry:
    (
        id_,
        kind,
        state,
        trust,
        confidence,
        repeats,
        usage,
        success,
        failure,
        tokens,
        at,
        created,
        updated,
        valid_from,
        valid_to,
        thread,
        position,
        session_id,
        turn_refs,
        content_hash,
        source,
        speaker,
        title,
        tags,
        metadata,
        text,
        evidence,
        tenant,
        layer,
        layer_id,
    ) = row
    tag_list, turn_list = list_from(tags), list_from(turn_refs)
    about = {} if metadata == "{}" else json_from(metadata)
    if type(tag_list) is not list or type(turn_list) is not list or type(about) is not dict:
        raise TypeError("tags, turns or metadata are of another type")
    first = from_micros(at)  # what was never changed since it was made has one time only
    return filled(
        Entry,
        id=id_,
        partition=filled(Partition, tenant=tenant, layer=layer, layer_id=layer_id),
        kind=kind,
        text=text,
        title=title,
        tags=tag_list,
        evidence=text if evidence is None else evidence,
        source=source,
        speaker=speaker,
        session_id=session_id,
        turn_refs=turn_list,
        thread=thread,
        position=position,
        confidence=confidence,
        trust=trust,
        state=state,
        repeats=repeats,
        usage_count=usage,
        success_count=success,
        failure_count=failure,
        token_count=tokens,
        content_hash=content_hash,
        at=first,
        created_at=first if created == at else from_micros(created),
        updated_at=first if updated == at else from_micros(updated),
        valid_from=first if valid_from == at else from_micros(valid_from),
        valid_to=None if valid_to is None else from_micros(valid_to),
        metadata=about,
    )


def snapshot_of(entry: Entry) -> str:
    """An entry as JSON, without its partition: a version never moves."""
    values = {name: getattr(entry, name) for name in _SNAPSHOT}
    for name in _TIMES:
        moment: datetime | None = values[name]
        values[name] = None if moment is None else to_micros(moment)
    return _dumps(values)


def entry_of_snapshot(snapshot: str, partition: Partition) -> Entry:
    """The inverse of `snapshot_of`."""
    values = json.loads(snapshot)
    for name in _TIMES:
        values[name] = None if values[name] is None else from_micros(values[name])
    return Entry(partition=partition, **values)


def index_row(index: IndexRecord, vector: Vector | None) -> tuple[Any, ...]:
    """near_a, near_b, length, chars, traits, speaker, terms, counts, vector."""
    return (
        *index.near,
        index.length,
        index.chars,
        index.traits,
        index.speaker,
        index.terms.astype("<u8", copy=False).tobytes(),
        index.counts.astype("<u2", copy=False).tobytes(),
        vector_blob(vector),
    )


def index_from(row: Sequence[Any]) -> IndexRecord:
    """The record of (near_a, near_b, length, chars, traits, speaker, terms, counts)."""
    near_a, near_b, length, chars, traits, speaker, terms, counts = row
    return IndexRecord(
        terms=np.frombuffer(terms, dtype="<u8"),
        counts=np.frombuffer(counts, dtype="<u2"),
        length=length,
        chars=chars,
        traits=traits,
        speaker=speaker,
        near=(near_a, near_b),
    )


def vector_blob(vector: Vector | None) -> bytes | None:
    return None if vector is None else np.ascontiguousarray(vector, dtype="<f4").tobytes()


def vector_from(blob: bytes | None) -> Vector | None:
    return None if blob is None else np.frombuffer(blob, dtype="<f4")


def _json(value: Any) -> str:
    if not value:
        return "{}" if isinstance(value, dict) else "[]"
    return _dumps(value)


def list_from(text: str) -> list[Any]:
    """A JSON list; most are empty."""
    return [] if text == "[]" else json_from(text)


def json_from(text: str) -> Any:  # any JSON value
    """`json.loads` of what was written here: without looking for blanks around it."""
    value, end = _decode(text)
    if end != len(text):
        raise ValueError(f"more than one JSON value, from character {end}")
    return value


def in_list(wanted: Sequence[Any], values: list[Any]) -> str:
    """The condition that a column is one of these; what it needs is appended to `values`."""
    if len(wanted) == 1:
        values.append(wanted[0])
        return "= ?"
    if len(wanted) <= MOST_MARKS:
        values.extend(wanted)
        return f"IN ({', '.join('?' * len(wanted))})"
    values.append(_dumps(list(wanted)))
    return "IN (SELECT value FROM json_each(?))"


def update_of(before: Entry, after: Entry) -> tuple[str, list[Any]]:
    """The columns in which two states of an entry differ, as `column = ?, …`, and their values.

    Each column that is set costs its indexes, so the others are left alone.
    """
    old, new = vars(before), vars(after)
    changed = [name for name in ENTRY_COLUMNS if old[name] != new[name]]
    if before.text != after.text and before.evidence == after.evidence:  # kept as nothing where it is the text
        changed.append("evidence")
    return "".join(f", {name} = ?" for name in changed), [column_of(after, name) for name in changed]
