"""Records in a store that speaks SQL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from wellworn.core.clock import to_micros
from wellworn.core.errors import StoreError
from wellworn.core.values import Partition
from wellworn.store.convert import CHANGING, RECORD_COLUMNS, SELECT_RECORD, body_of, names_of, record_from
from wellworn.store.damage import Damage
from wellworn.store.port import Record, RecordFilter
from wellworn.store.sql.db import HIDDEN, NUMBER, VISIBLE, Db, Row, limited, name_of

MOST_KEYS = 100
"""Keys that are looked for in one statement."""
_BODY = 11
"""The place of the body in `SELECT_RECORD`."""
_PUT = (
    f"INSERT INTO records ({', '.join(RECORD_COLUMNS)}) VALUES ({', '.join('?' * len(RECORD_COLUMNS))}) ON CONFLICT {{}} "
    "RETURNING no, EXISTS (SELECT 1 FROM record_entries d WHERE d.record = records.no)"
)
_KEEP_OLD, _REPLACE = (
    _PUT.format("DO NOTHING"),
    _PUT.format(
        "(kind, key, tenant, ifnull(partition, 0)) WHERE key IS NOT NULL "
        f"DO UPDATE SET {', '.join(f'{column} = excluded.{column}' for column in CHANGING)}"
    ),
)
_ORDERS = {"oldest": "r.no", "newest": "r.no DESC", "due": "r.due_at, r.no"}


def select(db: Db, wanted: RecordFilter, damage: Damage) -> list[Record]:
    rows: list[Row] = []
    if wanted.keys is None or wanted.order == "due":
        index, where, values = _conditions(db, wanted, wanted.keys)
        order = f"ORDER BY {_ORDERS[wanted.order]} {limited(wanted.limit, values)}"
        rows = db.ask(f"{SELECT_RECORD} {index} WHERE {where} {order}", values)
    else:  # few rows, which SQLite would carry about to sort them; a long list of keys would not use the index
        for first in range(0, len(wanted.keys), MOST_KEYS):
            index, where, values = _conditions(db, wanted, wanted.keys[first : first + MOST_KEYS])
            rows += db.ask(f"{SELECT_RECORD} {index} WHERE {where}", values)
        if len(rows) > 1:
            rows.sort(key=lambda row: int(row[0]), reverse=wanted.order == "newest")
            rows = rows[: wanted.limit]
    rows = db.opened(rows, (_BODY,))
    places = {row[2] for row in rows if row[2] is not None}
    partitions = dict.fromkeys(places, wanted.partition) if wanted.partition is not None else _partitions(db, places)
    return damage.read(
        rows, lambda row: record_from(row, partitions.get(row[2])), lambda row: f"{row[3]} record {row[0]}"
    )


def _partitions(db: Db, numbers: set[int]) -> dict[int, Partition]:
    if not numbers:
        return {}
    values: list[Any] = []
    here = db.among([*numbers], values)
    rows = db.ask(f"SELECT no, tenant, layer, layer_id FROM partitions WHERE no {here}", values)
    return {no: Partition(tenant=tenant, layer=layer, layer_id=layer_id) for no, tenant, layer, layer_id in rows}


def drop(db: Db, wanted: RecordFilter) -> int:
    if wanted.limit is not None:
        raise StoreError("records are dropped by what they are, not by number; leave `limit` out")
    index, where, values = _conditions(db, wanted, wanted.keys)
    return db.run(f"DELETE FROM records AS r {index} WHERE {where}", values)


def put(db: Db, partition_no: int | None, record: Record, there: set[int], *, only_new: bool) -> int | None:
    """The number of the record; None when it was not kept, see `Tx.put_records`. `there` are rows of entries that exist."""
    named = _rows_named(db, record) if record.names else []
    if named is None:
        return None
    values = _row(db, partition_no, record, there)
    found = db.ask(_REPLACE if record.key and not only_new else _KEEP_OLD, values)
    if not found:
        return None
    ((no, had_names),) = found
    if had_names:
        db.run("DELETE FROM record_entries WHERE record = ?", (no,))
    if named:
        db.many("INSERT INTO record_entries VALUES (?, ?)", [(no, entry) for entry in named])
    return int(no)


def put_new(
    db: Db, partition_nos: Sequence[int | None], new: Sequence[Record], there: set[int]
) -> Sequence[int | None]:
    """`put` with `only_new` for many that name no entry."""
    rows = [_row(db, no, one, there) for no, one in zip(partition_nos, new, strict=True)]
    if not any(one.key or one.rows for one in new):
        return db.add_lines(rows)
    return [int(found[0][0]) if found else None for found in db.ask_each(_KEEP_OLD, rows)]


def _row(db: Db, partition_no: int | None, record: Record, there: set[int]) -> Row:
    """The values of `RECORD_COLUMNS`."""
    updated, names, body, rows = to_micros(record.updated_at), "[]", body_of(record), record.rows
    if record.names:
        names = names_of(record)
    if rows and not there.issuperset(rows):
        body, rows = "{}", ()
    return (
        record.state,
        record.session,
        None if record.due_at is None else to_micros(record.due_at),
        updated,
        names,
        db.seal(body),
        record.blob,
        db.numbers(rows),
        record.tenant,
        partition_no,
        record.kind,
        record.key or None,
        updated if record.created_at is record.updated_at else to_micros(record.created_at),
    )


def drop_counted(db: Db, condition: str, values: Sequence[Any]) -> Counter[str]:
    """Drop records by a condition of the store's own; how many of each kind there were."""
    return Counter(kind for (kind,) in db.ask(f"DELETE FROM records AS r WHERE {condition} RETURNING kind", values))


def _conditions(db: Db, wanted: RecordFilter, keys: Sequence[str] | None = None) -> tuple[str, str, list[Any]]:
    """Which index to use, the condition on `records r`, and its values. Keys lead where they are given, then the
    partition, then the tenant: left to itself, SQLite would read all of a tenant's."""
    values: list[Any] = []
    partition = wanted.partition
    index = "" if keys is None else "INDEXED BY records_by_key"
    where = "TRUE" if wanted.kinds is None else f"r.kind {db.among(wanted.kinds, values)}"
    if keys is not None:
        where += f" AND r.key {db.among(keys, values)}"
    if partition is not None:
        where += " AND r.tenant = ?" if keys is not None else " AND +r.tenant = ?"
        column = "r.partition" if keys is None and not wanted.of_tenant else "ifnull(r.partition, 0)"
        where += f" AND {column} IN (0, {NUMBER})" if wanted.of_tenant else f" AND {column} = {NUMBER}"
        values += [partition.tenant, *name_of(partition)]
    elif wanted.tenant is not None:
        where += " AND r.tenant = ?" + " AND ifnull(r.partition, 0) = 0" * wanted.of_tenant
        values.append(wanted.tenant)
    if wanted.tenants is not None:  # the plus: they narrow what another index finds
        where += f" AND +r.tenant {db.among(wanted.tenants, values)}"
    if wanted.states is not None:
        where += f" AND r.state {db.among(wanted.states, values)}"
    if wanted.session is not None:
        where += " AND r.session = ?"
        values.append(wanted.session)
    if partition is None:
        where += f" AND ifnull(r.partition, 0) NOT IN {HIDDEN}"
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


def _rows_named(db: Db, record: Record) -> list[int] | None:
    """Row numbers of the entries that it names; None when one is not there or of another tenant."""
    names, values = {*record.names}, list[Any]([record.tenant])
    rows = db.ask(
        "SELECT e.no FROM entries e JOIN partitions s ON s.no = e.partition "
        f"WHERE +s.tenant = ? AND {VISIBLE} AND e.id {db.among([*names], values)}",
        values,
    )
    return [no for (no,) in rows] if len(rows) == len(names) else None
