"""Records in the SQLite file."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from typing import Any

from wellworn.core.clock import to_micros
from wellworn.core.errors import StoreError
from wellworn.core.values import Partition
from wellworn.store.damage import Damage
from wellworn.store.port import Record, RecordFilter
from wellworn.store.rows import SELECT_RECORD, body_of, names_of, numbers_blob, numbers_from, record_from
from wellworn.store.sqlite.sql import MOST_MARKS, fetched, in_list

_OLD = """
SELECT no, names FROM records INDEXED BY records_by_key
WHERE kind = ? AND key = ? AND tenant = ? AND ifnull(partition, 0) = ?
"""
_INSERT = """
INSERT INTO records (state, session, due_at, updated_at, names, body, blob, rows, tenant, partition, kind, key, created_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
"""
_UPDATE = """
UPDATE records SET state = ?, session = ?, due_at = ?, updated_at = ?, names = ?, body = ?, blob = ?, rows = ?
WHERE no = ?
"""
_ORDERS = {"oldest": "r.no", "newest": "r.no DESC", "due": "r.due_at, r.no"}
_PARTITION = "(SELECT no FROM partitions WHERE tenant = ? AND layer = ? AND layer_id = ?)"


def select(db: sqlite3.Connection, wanted: RecordFilter, damage: Damage) -> list[Record]:
    order, limit = _ORDERS[wanted.order], -1 if wanted.limit is None else wanted.limit
    if wanted.keys is None:
        index, where, values = _conditions(wanted)
        rows = fetched(db, f"{SELECT_RECORD} {index} WHERE {where} ORDER BY {order} LIMIT ?", (*values, limit))
    else:  # few rows, which SQLite would carry about to sort them; a list of keys in JSON would not use the index
        rows = []
        for first in range(0, len(wanted.keys), MOST_MARKS):
            index, where, values = _conditions(wanted, wanted.keys[first : first + MOST_MARKS])
            rows += fetched(db, f"{SELECT_RECORD} {index} WHERE {where}", values)
        if len(rows) > 1:
            rows.sort(key=lambda row: int(row[0]), reverse=wanted.order == "newest")
            rows = rows[: wanted.limit]
    places = {row[2] for row in rows if row[2] is not None}
    partitions = dict.fromkeys(places, wanted.partition) if wanted.partition is not None else _partitions(db, places)
    return damage.read(
        rows, lambda row: record_from(row, partitions.get(row[2])), lambda row: f"{row[3]} record {row[0]}"
    )


def _partitions(db: sqlite3.Connection, numbers: set[int]) -> dict[int, Partition]:
    if not numbers:
        return {}
    values = list[Any]()
    rows = db.execute(
        f"SELECT no, tenant, layer, layer_id FROM partitions WHERE no {in_list([*numbers], values)}", values
    )
    return {no: Partition(tenant=tenant, layer=layer, layer_id=layer_id) for no, tenant, layer, layer_id in rows}


def drop(db: sqlite3.Connection, wanted: RecordFilter) -> int:
    index, where, values = _conditions(wanted, wanted.keys)
    if wanted.limit is not None:
        raise StoreError("records are dropped by what they are, not by number; leave `limit` out")
    return db.execute(f"DELETE FROM records AS r {index} WHERE {where}", values).rowcount


def put(db: sqlite3.Connection, partition_no: int | None, record: Record, *, only_new: bool) -> int | None:
    """The number of the record; None when it was not kept, see `Tx.put_records`."""
    named = _rows_named(db, record) if record.names else ()
    if named is None:
        return None
    whole = not record.rows or _all_there(db, record.rows)
    values = (
        record.state,
        record.session,
        None if record.due_at is None else to_micros(record.due_at),
        to_micros(record.updated_at),
        names_of(record) if named else "[]",
        body_of(record) if whole else "{}",
        record.blob,
        numbers_blob(record.rows) if whole and record.rows else None,
    )
    old = None
    if record.key and not only_new:
        old = db.execute(_OLD, (record.kind, record.key, record.tenant, partition_no or 0)).fetchone()
    if old is None:
        made = (record.tenant, partition_no, record.kind, record.key or None, to_micros(record.created_at))
        inserted = db.execute(_INSERT, (*values, *made))
        no = inserted.lastrowid if inserted.rowcount else None
        if no is None:
            return None
    else:
        no = int(old[0])
        db.execute(_UPDATE, (*values, no))
        if old[1] != "[]":
            db.execute("DELETE FROM record_entries WHERE record = ?", (no,))
    if named:
        db.executemany("INSERT INTO record_entries VALUES (?, ?)", [(no, entry) for entry in named])
    return no


def put_lines(db: sqlite3.Connection, partition_nos: Sequence[int | None], lines: Sequence[Record]) -> list[int]:
    """`put` for many lines of logs, which have no key and name no entry; their numbers."""
    db.executemany(
        _INSERT,
        [
            (
                *(one.state, one.session, None if one.due_at is None else to_micros(one.due_at)),
                *(to_micros(one.updated_at), "[]", body_of(one), one.blob, None),
                *(one.tenant, partition_no, one.kind, None, to_micros(one.created_at)),
            )
            for one, partition_no in zip(lines, partition_nos, strict=True)
        ],
    )
    (last,) = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'records'").fetchone()
    return [*range(last - len(lines) + 1, last + 1)]


def blank(db: sqlite3.Connection, tenant: str, gone: set[int], *, but: int = 0) -> None:
    """Empty the bodies of the tenant's records that tell of one of these rows; `but` names a partition that goes whole."""
    rows = db.execute(
        "SELECT no, rows FROM records INDEXED BY records_with_rows WHERE tenant = ? AND rows IS NOT NULL "
        "AND (partition IS NULL OR partition <> ?)",
        (tenant, but),
    ).fetchall()
    about = [(no,) for no, blob in rows if not gone.isdisjoint(numbers_from(blob))]
    db.executemany("UPDATE records SET body = '{}', rows = NULL WHERE no = ?", about)


def drop_counted(db: sqlite3.Connection, condition: str, values: Sequence[Any]) -> Counter[str]:
    """Drop records by a condition of the store's own; how many of each kind there were."""
    rows = db.execute(f"DELETE FROM records WHERE {condition} RETURNING kind", values).fetchall()
    return Counter(kind for (kind,) in rows)


def _conditions(wanted: RecordFilter, keys: Sequence[str] | None = None) -> tuple[str, str, list[Any]]:
    """Which index to use, the condition on `records r`, and its values. Keys lead where they are given, then the
    partition, then the tenant: left to itself, SQLite would read all of a tenant's."""
    values, partition = list[Any](), wanted.partition
    index = "" if keys is None else "INDEXED BY records_by_key"
    where = "1" if wanted.kinds is None else f"r.kind {in_list(wanted.kinds, values)}"
    if keys is not None:
        where += f" AND r.key {in_list(keys, values)}"
    if partition is not None:
        where += " AND r.tenant = ?" if keys is not None else " AND +r.tenant = ?"
        values.append(partition.tenant)
        column = "ifnull(r.partition, 0)" if keys is not None else "r.partition"
        where += f" AND {column} IN ({'0, ' if wanted.of_tenant else ''}{_PARTITION})"
        values += [partition.tenant, partition.layer, partition.layer_id]
    elif wanted.tenant is not None:
        where += " AND r.tenant = ?"
        values.append(wanted.tenant)
        if wanted.of_tenant:
            where += " AND ifnull(r.partition, 0) = 0"
    if wanted.tenants is not None:  # the plus: they narrow what another index finds
        where += f" AND +r.tenant {in_list(wanted.tenants, values)}"
    if wanted.states is not None:
        where += f" AND r.state {in_list(wanted.states, values)}"
    if wanted.session is not None:
        where += " AND r.session = ?"
        values.append(wanted.session)
    if partition is None:
        where += " AND ifnull(r.partition, 0) NOT IN (SELECT no FROM partitions WHERE tenant = '')"  # being removed
    return index, where + _times(wanted, values), values


def _times(wanted: RecordFilter, values: list[Any]) -> str:
    """Conditions on times and the number."""
    where = " AND r.due_at IS NOT NULL" if wanted.order == "due" else ""
    for column, moment in (("created_at >=", wanted.since), ("updated_at <", wanted.before)):
        if moment is not None:
            where += f" AND r.{column} ?"
            values.append(to_micros(moment))
    if wanted.due_by is not None:
        where += " AND r.due_at IS NOT NULL AND (r.due_at <= ? OR r.updated_at > ?)"
        values += [to_micros(wanted.due_by)] * 2
    if wanted.after:
        where += " AND r.no > ?"
        values.append(wanted.after)
    return where


def _rows_named(db: sqlite3.Connection, record: Record) -> list[int] | None:
    """Row numbers of the entries that it names; None when one is not there or of another tenant."""
    names, values = {*record.names}, list[Any]([record.tenant])
    rows = db.execute(
        "SELECT e.no FROM entries e JOIN partitions s ON s.no = e.partition "
        f"WHERE +s.tenant = ? AND e.id {in_list([*names], values)}",
        values,
    ).fetchall()
    return [no for (no,) in rows] if len(rows) == len(names) else None


def _all_there(db: sqlite3.Connection, rows: Sequence[int]) -> bool:
    values = list[Any]()
    found = db.execute(
        f"SELECT count(*) FROM entries WHERE no {in_list([*{*rows}], values)} "
        "AND partition NOT IN (SELECT no FROM partitions WHERE tenant = '')",
        values,
    ).fetchone()
    return bool(found[0] == len({*rows}))
