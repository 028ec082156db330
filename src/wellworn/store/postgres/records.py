"""Records in the database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from wellworn.core.clock import to_micros
from wellworn.core.errors import StoreError
from wellworn.core.values import Partition
from wellworn.store.damage import Damage
from wellworn.store.port import Record, RecordFilter
from wellworn.store.postgres.connection import Connection, ask
from wellworn.store.postgres.seal import Sealer
from wellworn.store.rows import SELECT_RECORD, body_of, names_of, numbers_blob, record_from

_BODY = 11
"""The place of the body in `SELECT_RECORD`."""
_ORDERS = {"oldest": "r.no", "newest": "r.no DESC", "due": "r.due_at, r.no"}
_PARTITION = "(SELECT no FROM partitions WHERE NOT hidden AND tenant = %s AND layer = %s AND layer_id = %s)"
_BEING_REMOVED = "(SELECT no FROM partitions WHERE hidden)"
# A body that tells of rows is kept while all of them are there.
_PUT = f"""
WITH told AS (
  SELECT count(*) = cardinality(%(rows)s::bigint[]) AS whole FROM entries
  WHERE no = ANY(%(rows)s::bigint[]) AND partition NOT IN {_BEING_REMOVED}
), put AS (
  INSERT INTO records (state, session, due_at, updated_at, names, body, blob, rows, tenant, partition, kind, key, created_at)
  SELECT %(state)s, %(session)s, %(due_at)s, %(updated_at)s, %(names)s, CASE WHEN whole THEN %(body)s ELSE '{{{{}}}}' END,
         %(blob)s, CASE WHEN whole THEN %(rows_kept)s::bigint[] END, %(tenant)s, %(partition)s, %(kind)s, %(key)s,
         %(created_at)s
  FROM told
  ON CONFLICT (kind, key, tenant, coalesce(partition, 0)) WHERE key IS NOT NULL {{action}} RETURNING no
), gone AS (DELETE FROM record_entries d USING put WHERE d.record = put.no)
SELECT no FROM put
"""
_PUT_NEW = _PUT.format(action="DO NOTHING")
_PUT_REPLACING = _PUT.format(
    action="DO UPDATE SET state = excluded.state, session = excluded.session, due_at = excluded.due_at, "
    "updated_at = excluded.updated_at, names = excluded.names, body = excluded.body, blob = excluded.blob, "
    "rows = excluded.rows"
)


def select(db: Connection, wanted: RecordFilter, damage: Damage, sealer: Sealer) -> list[Record]:
    where, values = _conditions(wanted)
    rows = ask(db, f"{SELECT_RECORD} WHERE {where} ORDER BY {_ORDERS[wanted.order]} LIMIT %s", (*values, wanted.limit))
    rows = sealer.open_columns(rows, (_BODY,))
    places = {row[2] for row in rows if row[2] is not None}
    partitions = dict.fromkeys(places, wanted.partition) if wanted.partition is not None else _partitions(db, places)
    return damage.read(
        rows, lambda row: record_from(_packed(row), partitions.get(row[2])), lambda row: f"{row[3]} record {row[0]}"
    )


def _packed(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """The row with its numbers of rows as in every other store."""
    return row if row[-1] is None else (*row[:-1], numbers_blob(row[-1]))


def _partitions(db: Connection, numbers: set[int]) -> dict[int, Partition]:
    if not numbers:
        return {}
    rows = ask(db, "SELECT no, tenant, layer, layer_id FROM partitions WHERE no = ANY(%s)", ([*numbers],))
    return {no: Partition(tenant=tenant, layer=layer, layer_id=layer_id) for no, tenant, layer, layer_id in rows}


def drop(db: Connection, wanted: RecordFilter) -> int:
    if wanted.limit is not None:
        raise StoreError("records are dropped by what they are, not by number; leave `limit` out")
    where, values = _conditions(wanted)
    return db.execute(f"DELETE FROM records AS r WHERE {where}", values).rowcount


def put(db: Connection, partition_no: int | None, record: Record, sealer: Sealer, *, only_new: bool) -> int | None:
    """The number of the record; None when it was not kept, see `Tx.put_records`."""
    named = _rows_named(db, record) if record.names else []
    if named is None:
        return None
    rows = [*dict.fromkeys(record.rows)]
    values = {
        "state": record.state,
        "session": record.session,
        "due_at": None if record.due_at is None else to_micros(record.due_at),
        "updated_at": to_micros(record.updated_at),
        "names": names_of(record) if named else "[]",
        "body": sealer.seal(body_of(record)),
        "blob": record.blob,
        "rows": rows,
        "rows_kept": [*record.rows] or None,
        "tenant": record.tenant,
        "partition": partition_no,
        "kind": record.kind,
        "key": record.key or None,
        "created_at": to_micros(record.created_at),
    }
    found = db.execute(_PUT_NEW if only_new else _PUT_REPLACING, values, binary=True).fetchone()
    if found is None:
        return None
    no = int(found[0])
    if named:
        db.execute("INSERT INTO record_entries SELECT %s, unnest(%s::bigint[])", (no, named))
    return no


def blank(db: Connection, tenant: str, gone: Sequence[int], *, but: int = 0) -> None:
    """Empty the bodies of the tenant's records that tell of one of these rows; `but` names a partition that goes whole."""
    db.execute(
        "UPDATE records SET body = '{}', rows = NULL WHERE tenant = %s AND rows && %s::bigint[] "
        "AND (partition IS NULL OR partition <> %s)",
        (tenant, [*gone], but),
    )


def drop_counted(db: Connection, condition: str, values: Sequence[Any]) -> Counter[str]:
    """Drop records by a condition of the store's own; how many of each kind there were."""
    return Counter(kind for (kind,) in ask(db, f"DELETE FROM records WHERE {condition} RETURNING kind", values))


def _conditions(wanted: RecordFilter) -> tuple[str, list[Any]]:
    """The condition on `records r`, and its values."""
    where, values, partition = ["TRUE"], list[Any](), wanted.partition
    for column, several in (
        ("kind", wanted.kinds),
        ("key", wanted.keys),
        ("tenant", wanted.tenants),
        ("state", wanted.states),
    ):
        if several is not None:
            where.append(f"r.{column} = ANY(%s)")
            values.append([*several])
    if partition is not None:
        where.append(f"r.tenant = %s AND (r.partition = {_PARTITION}{' OR r.partition IS NULL' * wanted.of_tenant})")
        values += [partition.tenant, partition.tenant, partition.layer, partition.layer_id]
    else:
        where.append(f"coalesce(r.partition, 0) NOT IN {_BEING_REMOVED}")
        if wanted.tenant is not None:
            where.append("r.tenant = %s" + " AND r.partition IS NULL" * wanted.of_tenant)
            values.append(wanted.tenant)
    if wanted.session is not None:
        where.append("r.session = %s")
        values.append(wanted.session)
    return " AND ".join([*where, *_times(wanted, values)]), values


def _times(wanted: RecordFilter, values: list[Any]) -> list[str]:
    """Conditions on times and the number."""
    where = list[str]()
    if wanted.order == "due" or wanted.due_by is not None:
        where.append("r.due_at IS NOT NULL")
    for column, moment in (("created_at >=", wanted.since), ("updated_at <", wanted.before)):
        if moment is not None:
            where.append(f"r.{column} %s")
            values.append(to_micros(moment))
    if wanted.due_by is not None:
        where.append("(r.due_at <= %s OR r.updated_at > %s)")
        values += [to_micros(wanted.due_by)] * 2
    if wanted.after:
        where.append("r.no > %s")
        values.append(wanted.after)
    return where


def _rows_named(db: Connection, record: Record) -> list[int] | None:
    """Row numbers of the entries that it names; None when one is not there or of another tenant."""
    names = [*{*record.names}]
    rows = ask(
        db,
        "SELECT e.no FROM entries e JOIN partitions s ON s.no = e.partition WHERE s.tenant = %s AND NOT s.hidden "
        "AND e.id = ANY(%s)",
        (record.tenant, names),
    )
    return [no for (no,) in rows] if len(rows) == len(names) else None
