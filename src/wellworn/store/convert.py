"""What a store keeps as rows of columns and back, the same for every SQL engine; older states as JSON snapshots.

Times are microseconds since 1970, lists and objects JSON. A row that is damaged raises one of `damage.TROUBLE`.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from operator import itemgetter
from typing import Any

import numpy as np

from wellworn.core.clock import from_micros, to_micros
from wellworn.core.errors import StoreCorrupt, StoreError
from wellworn.core.values import LAYERS, Entry, Link, Partition, Turn, filled
from wellworn.store.damage import BLOB, FLOAT, INT, NONE, TEXT, TROUBLE, Types, checked
from wellworn.store.port import IndexRecord, Neighbour, Record, Replaced, SessionHead, Vector

ENTRY_COLUMNS = tuple(each.name for each in fields(Entry) if each.name != "partition")
SELECT_ENTRY = ", ".join(f"e.{column}" for column in ENTRY_COLUMNS) + ", s.tenant, s.layer, s.layer_id"
"""What `entry_from` reads, from `entries e JOIN partitions s`."""
SEALED_COLUMNS = ("speaker", "title", "metadata", "text", "evidence")
"""Columns of entries that an engine with keys of its own seals."""
SEALED = tuple(ENTRY_COLUMNS.index(name) for name in SEALED_COLUMNS)
"""Their places in `SELECT_ENTRY` and `entry_row`."""

_decode = json.JSONDecoder().raw_decode
_dumps = json.JSONEncoder(ensure_ascii=False).encode  # `json.dumps` makes one for every call
_JSON: dict[str, tuple[type, str]] = {"turn_refs": (list, "[]"), "tags": (list, "[]"), "metadata": (dict, "{}")}
"""Columns that hold JSON: of which type, and an empty one."""
_TERMS, _COUNTS, _VECTOR = np.dtype("<u8"), np.dtype("<u2"), np.dtype("<f4")
_TIMES = ("at", "created_at", "updated_at", "valid_from", "valid_to")


def _stored(entry: Entry) -> dict[str, Any]:
    """The fields of an entry as their columns keep them."""
    values, at, first = {**vars(entry)}, entry.at, to_micros(entry.at)
    for name in _TIMES:  # what was never changed since it was made has one time only
        moment = values[name]
        values[name] = first if moment is at else None if moment is None else to_micros(moment)
    for name, (_, empty) in _JSON.items():
        values[name] = _dumps(values[name]) if values[name] else empty
    if values["evidence"] == values["text"]:
        values["evidence"] = None
    return values


_in_order = itemgetter(*ENTRY_COLUMNS)


def entry_row(entry: Entry) -> tuple[Any, ...]:
    """The values of `ENTRY_COLUMNS`."""
    row: tuple[Any, ...] = _in_order(_stored(entry))
    return row


MAYBE = frozenset({"valid_to", "thread", "position", "session_id", "speaker", "evidence"})
_NUMBERS = frozenset({"repeats", "usage_count", "success_count", "failure_count", "token_count", "thread", "position"})
COLUMN_TYPES = (
    *(
        (FLOAT if name == "confidence" else INT if name in _NUMBERS or name in _TIMES else TEXT)
        + (NONE if name in MAYBE else ())
        for name in ENTRY_COLUMNS
    ),
    *(TEXT, TEXT, TEXT),
)
"""Of `SELECT_ENTRY`."""


def entry_from(row: tuple[Any, ...]) -> Entry:
    """The entry of a row selected with `SELECT_ENTRY`."""
    try:
        return _entry_from(checked(row, COLUMN_TYPES))
    except TROUBLE as error:
        raise StoreCorrupt(f"entry {row[0]!r:.80} cannot be read: {error}; run `wellworn doctor`") from error


def _entry_from(row: tuple[Any, ...]) -> Entry:
    tenant, layer, layer_id = row[-3:]
    made = object.__new__(Entry)  # as `filled`, without a copy of the values
    values = made.__dict__
    values.update(zip(ENTRY_COLUMNS, row, strict=False))
    values["partition"] = filled(Partition, tenant=tenant, layer=layer, layer_id=layer_id)
    at = values["at"]
    first = from_micros(at)  # as in `_stored`
    for name in _TIMES:
        micros = values[name]
        values[name] = first if micros == at else None if micros is None else from_micros(micros)
    for name, (type_, empty) in _JSON.items():
        values[name] = value = type_() if values[name] == empty else json_from(values[name])
        if type(value) is not type_:
            raise TypeError("tags, turns or metadata are of another type")
    if values["evidence"] is None:
        values["evidence"] = values["text"]
    return made


def snapshot_of(entry: Entry) -> str:
    """An entry as JSON, without its partition: a version never moves."""
    values = {name: getattr(entry, name) for name in ENTRY_COLUMNS}
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
        bytearray(index.terms.astype(_TERMS, copy=False)),  # sqlite3 binds it sooner than bytes
        bytearray(index.counts.astype(_COUNTS, copy=False)),
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


def vector_blob(vector: Vector | None) -> bytearray | None:
    return None if vector is None else bytearray(vector.astype(_VECTOR, copy=False))


def list_from(text: str) -> list[Any]:
    """A JSON list; most are empty."""
    return [] if text == "[]" else json_from(text)


def json_from(text: str) -> Any:  # any JSON value
    """`json.loads` of what was written here: without looking for blanks around it."""
    value, end = _decode(text)
    if end != len(text):
        raise ValueError(f"more than one JSON value, from character {end}")
    return value


def update_of(before: Entry, after: Entry) -> dict[str, Any]:
    """The columns in which two states of an entry differ, with their new values.

    Each column that is set costs its indexes, so the others are left alone.
    """
    old, new = vars(before), vars(after)
    changed = [name for name in ENTRY_COLUMNS if old[name] != new[name]]
    if before.text != after.text and before.evidence == after.evidence:  # kept as nothing where it is the text
        changed.append("evidence")
    stored = _stored(after)
    return {name: stored[name] for name in changed}


# -- links, turns, sessions, records ------------------------------------------------------------------------------

SELECT_SESSION = "s.tenant, s.layer, s.layer_id, n.session_id, n.turns, n.reflected, n.touched_at, n.ended_at"
"""What `session_from` reads, from `sessions n JOIN partitions s`."""
_NEIGHBOUR = (INT, TEXT, INT, TEXT)
_LINK = {"source": TEXT, "target": TEXT, "type": TEXT, "confidence": FLOAT, "automatic": INT, "created_at": INT}
_SESSION = {"id": TEXT, "turns": INT, "reflected": INT, "touched_at": INT, "ended_at": INT + NONE}
_TURN = {"number": INT, "role": TEXT, "text": TEXT, "at": INT, "speaker": TEXT + NONE, "entry_id": TEXT + NONE}
_INDEX = (INT, INT, INT, INT, INT, INT, BLOB, BLOB, BLOB + NONE, INT, INT)


def neighbour_from(row: tuple[Any, ...]) -> Neighbour:
    """Of number, id, time and tags, and perhaps an index record."""
    _, entry_id, at, tags, *index = row
    checked(row[:4], _NEIGHBOUR)
    near = index_from(checked(tuple(index), _INDEX[:8])) if index else None
    return Neighbour(id=entry_id, at=from_micros(at), tags=list_from(tags), index=near)


def partition_from(row: tuple[Any, ...]) -> Partition:
    tenant, layer, layer_id = checked(row, (TEXT, TEXT, TEXT))
    if layer not in LAYERS:
        raise ValueError(f"{layer!r:.40} is no layer")
    return Partition(tenant=tenant, layer=layer, layer_id=layer_id)


def numbered_entry(row: tuple[Any, ...]) -> tuple[int, Entry]:
    """Row number and entry of `SELECT_ENTRY`, the partition's number, the row number."""
    return row[-1], entry_from(row[:-2])


def entry_name(row: tuple[Any, ...]) -> str:
    return f"entry {row[0] if isinstance(row[0], str) else f'row {row[-1]}'}"


def numbered_index(row: tuple[Any, ...]) -> tuple[int, tuple[IndexRecord | None, Vector | None]]:
    if row[10] is None:
        return row[9], (None, None)
    checked(row, _INDEX)
    vector = None if row[8] is None else np.frombuffer(row[8], dtype="<f4")
    return row[9], (index_from(row[:8]), vector)


def replaced_from(row: tuple[Any, ...]) -> Replaced:
    snapshot, change, changed_at, tenant, layer, layer_id, _ = checked(row, (TEXT, TEXT, INT, TEXT, TEXT, TEXT, INT))
    partition = Partition(tenant=tenant, layer=layer, layer_id=layer_id)
    return Replaced(entry=entry_of_snapshot(snapshot, partition), change=change, changed_at=from_micros(changed_at))


def _fields(row: tuple[Any, ...], columns: Mapping[str, Types], times: Sequence[str]) -> dict[str, Any]:
    """The values of a row by the names of its columns; these of them are times."""
    values = dict(zip(columns, checked(row, tuple(columns.values())), strict=True))
    for name in times:
        if values[name] is not None:
            values[name] = from_micros(values[name])
    return values


def link_from(row: tuple[Any, ...]) -> Link:
    values = _fields(row, _LINK, ("created_at",))
    return Link(**{**values, "automatic": bool(values["automatic"])})


def turn_from(row: tuple[Any, ...], session_id: str) -> Turn:
    return Turn(session_id=session_id, **_fields(row, _TURN, ("at",)))


def session_from(row: tuple[Any, ...]) -> SessionHead:
    """The head of a row selected with `SELECT_SESSION`."""
    tenant, layer, layer_id = checked(row[:3], (TEXT, TEXT, TEXT))
    partition = Partition(tenant=tenant, layer=layer, layer_id=layer_id)
    return SessionHead(partition=partition, **_fields(row[3:], _SESSION, ("touched_at", "ended_at")))


RECORD_COLUMNS = (
    *("state", "session", "due_at", "updated_at", "names", "body", "blob", "rows"),
    *("tenant", "partition", "kind", "key", "created_at"),
)
"""What is written of a record; the first eight change when it is replaced."""
CHANGING = RECORD_COLUMNS[:8]
SELECT_RECORD = """
SELECT r.no, r.tenant, r.partition, r.kind, r.key, r.state, r.session, r.due_at, r.created_at, r.updated_at, r.names, r.body,
r.blob, r.rows
FROM records r
"""
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
_RECORD = (
    *(INT, TEXT, INT + NONE, TEXT, TEXT + NONE, TEXT, TEXT + NONE, INT + NONE, INT, INT, TEXT, TEXT),
    *(BLOB + NONE, (bytes, list, *NONE)),
)


def record_from(row: tuple[Any, ...], partition: Partition | None) -> Record:
    """The record of a row selected with `SELECT_RECORD`."""
    no, tenant, _, kind, key, state, session, due_at, created_at, updated_at, names, body, blob, rows = checked(
        row, _RECORD
    )
    about, named = {} if body == "{}" else json_from(body), list_from(names)
    if type(about) is not dict or type(named) is not list or (type(rows) is bytes and len(rows) % 8):
        raise TypeError("its body, names or rows are of another type")
    created = from_micros(created_at)
    return filled(
        Record,
        no=no,
        tenant=tenant,
        partition=partition,
        kind=kind,
        key=key or "",
        state=state,
        session=session,
        due_at=None if due_at is None else from_micros(due_at),
        created_at=created,
        updated_at=created if updated_at == created_at else from_micros(updated_at),
        names=tuple(named),
        rows=numbers_from(rows) if type(rows) is bytes else tuple(rows or ()),
        body=about,
        blob=blob,
    )


def body_of(record: Record) -> str:
    """Its body as JSON."""
    if not record.body:
        return "{}"
    try:
        return _encode(record.body)
    except (TypeError, ValueError) as error:
        raise StoreError(f"the body of {record.kind} {record.key!r} is not JSON: {error}") from None


def names_of(record: Record) -> str:
    """The entries that it names as JSON, each once."""
    return _encode([*dict.fromkeys(record.names)])


def numbers_blob(numbers: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(numbers)}q", *numbers)


def numbers_from(blob: bytes) -> tuple[int, ...]:
    return struct.unpack_from(f"<{len(blob) // 8}q", blob)
