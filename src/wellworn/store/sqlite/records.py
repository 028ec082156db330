"""Records in the SQLite file."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from wellworn.core.clock import from_micros, to_micros
from wellworn.core.errors import StoreCorrupt
from wellworn.core.values import Partition
from wellworn.store.port import Record
from wellworn.store.sqlite.queries import partition_no_of

_RECORD = """
s.tenant, s.layer, s.layer_id, d.kind, d.key, d.state, d.body, d.session, d.created_at, d.updated_at,
(SELECT json_group_array(e.id) FROM (SELECT e.id FROM record_entries n JOIN entries e ON e.no = n.entry
 WHERE n.record = d.no ORDER BY n.place) e)
"""


def put(db: sqlite3.Connection, partition_no: int, record: Record, named: dict[str, int]) -> None:
    """`named` are the rows of the entries that it names, see `rows_named`."""
    (no,) = db.execute(
        """
        INSERT INTO records (partition, kind, key, state, body, session, created_at, updated_at)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (partition, kind, key) DO UPDATE
        SET state = excluded.state, body = excluded.body, session = excluded.session, updated_at = excluded.updated_at
        RETURNING no
        """,
        (
            partition_no,
            record.kind,
            record.key,
            record.state,
            json.dumps(record.body, ensure_ascii=False),
            record.session,
            to_micros(record.created_at),
            to_micros(record.updated_at),
        ),
    ).fetchone()
    db.execute("DELETE FROM record_entries WHERE record = ?", (no,))
    db.executemany(
        "INSERT INTO record_entries (record, entry, place) VALUES (?, ?, ?)",
        [(no, named[name], place) for place, name in enumerate(record.names)],
    )


def by_key(db: sqlite3.Connection, partition: Partition, kind: str, key: str) -> Record | None:
    row = db.execute(
        f"SELECT {_RECORD} FROM records d JOIN partitions s ON s.no = d.partition "
        "WHERE d.partition = ? AND d.kind = ? AND d.key = ?",
        (partition_no_of(db, partition), kind, key),
    ).fetchone()
    return None if row is None else _record_from(row)


def put_bodies(
    db: sqlite3.Connection, partition_no: int, kind: str, bodies: Mapping[str, dict[str, Any]], at: datetime
) -> None:
    """Many at once, in two statements."""
    db.execute(
        "DELETE FROM record_entries WHERE record IN (SELECT no FROM records WHERE partition = ? AND kind = ? "
        "AND key IN (SELECT value FROM json_each(?)))",
        (partition_no, kind, json.dumps([*bodies])),
    )
    now = to_micros(at)
    db.executemany(
        """
        INSERT INTO records (partition, kind, key, state, body, session, created_at, updated_at)
        VALUES (?, ?, ?, '', ?, NULL, ?, ?)
        ON CONFLICT (partition, kind, key) DO UPDATE
        SET state = '', body = excluded.body, session = NULL, updated_at = excluded.updated_at
        """,
        [(partition_no, kind, key, json.dumps(body, ensure_ascii=False), now, now) for key, body in bodies.items()],
    )


def bodies(db: sqlite3.Connection, partition: Partition, kind: str, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
    rows = db.execute(
        "SELECT key, body FROM records WHERE partition = ? AND kind = ? AND key IN (SELECT value FROM json_each(?))",
        (partition_no_of(db, partition), kind, json.dumps(list(keys))),
    )
    try:
        return {key: json.loads(body) for key, body in rows}
    except ValueError as problem:
        raise StoreCorrupt(f"a {kind} cannot be read: {problem}; run `wellworn doctor`") from problem


def listed(
    db: sqlite3.Connection,
    *,
    tenant: str | None,
    partition: Partition | None,
    kinds: Sequence[str] | None,
    states: Sequence[str] | None,
    limit: int,
) -> list[Record]:
    where, values = "", list[Any]()
    if tenant is not None:
        where += " AND s.tenant = ?"
        values.append(tenant)
    if partition is not None:
        where += " AND d.partition = ?"
        values.append(partition_no_of(db, partition))
    for column, wanted in (("d.kind", kinds), ("d.state", states)):
        if wanted is not None:
            where += f" AND {column} IN (SELECT value FROM json_each(?))"
            values.append(json.dumps(list(wanted), ensure_ascii=False))
    rows = db.execute(
        f"SELECT {_RECORD} FROM records d JOIN partitions s ON s.no = d.partition WHERE 1{where} ORDER BY d.no DESC LIMIT ?",
        (*values, limit),
    )
    return [_record_from(row) for row in rows]


def drop(db: sqlite3.Connection, partition: Partition, kind: str, key: str) -> bool:
    dropped = db.execute(
        "DELETE FROM records WHERE partition = ? AND kind = ? AND key = ?", (partition_no_of(db, partition), kind, key)
    )
    return dropped.rowcount == 1


def count_on(db: sqlite3.Connection, partition_no: int) -> int:
    return int(db.execute("SELECT count(*) FROM records WHERE partition = ?", (partition_no,)).fetchone()[0])


def forget_sessions(db: sqlite3.Connection, partition_no: int, gone: Sequence[str]) -> int:
    return db.execute(
        "DELETE FROM records WHERE partition = ? AND session IN (SELECT value FROM json_each(?))",
        (partition_no, json.dumps(list(gone), ensure_ascii=False)),
    ).rowcount


def forget_entry(db: sqlite3.Connection, entry_no: int) -> int:
    """Before the entry itself goes: afterwards nobody knows who named it."""
    return db.execute(
        "DELETE FROM records WHERE no IN (SELECT record FROM record_entries WHERE entry = ?)", (entry_no,)
    ).rowcount


def rows_named(db: sqlite3.Connection, record: Record) -> dict[str, int]:
    """Row numbers of the named entries that are there and of the record's tenant."""
    if not record.names:
        return {}
    return dict(
        db.execute(
            "SELECT e.id, e.no FROM entries e JOIN partitions s ON s.no = e.partition "
            "WHERE s.tenant = ? AND e.id IN (SELECT value FROM json_each(?))",
            (record.partition.tenant, json.dumps(record.names)),
        ).fetchall()
    )


def _record_from(row: tuple[Any, ...]) -> Record:
    """The record of a row selected with `_RECORD`."""
    tenant, layer, layer_id, kind, key, state, body, session, created_at, updated_at, names = row
    try:
        return Record(
            partition=Partition(tenant=tenant, layer=layer, layer_id=layer_id),
            kind=kind,
            key=key,
            state=state,
            body=json.loads(body),
            names=tuple(json.loads(names)),
            session=session,
            created_at=from_micros(created_at),
            updated_at=from_micros(updated_at),
        )
    except (ValueError, TypeError, OverflowError) as problem:
        raise StoreCorrupt(f"{kind} {key!r} cannot be read: {problem}; run `wellworn doctor`") from problem
