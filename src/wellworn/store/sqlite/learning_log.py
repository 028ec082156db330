"""What learning keeps in the SQLite file: recalls, their outcomes, and the learned state of partitions and tenants."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from typing import Any

import numpy as np

from wellworn.core.clock import from_micros, to_micros
from wellworn.core.errors import StoreCorrupt
from wellworn.core.values import Partition, filled
from wellworn.store.port import LoggedOutcome, LoggedRecall, Vector
from wellworn.store.sqlite.queries import partition_no_of

_RECALL = """
r.id, s.tenant, s.layer, s.layer_id, r.at, r.query, r.profile, r.level, r.shown, r.nos, r.base, r.names, r.features
"""
# In the order of the log, each outcome looked up in turn: a tenant that is read page by page is read once.
_OF_TENANT = f"""
SELECT o.no, o.kind, o.value, o.at, {_RECALL}
FROM outcomes o CROSS JOIN recalls r ON r.no = o.recall CROSS JOIN partitions s ON s.no = r.partition
WHERE o.no > ? AND s.tenant = ? ORDER BY o.no LIMIT ?
"""
# A partition is a small part of the log: its page is found along the indexes, and only then are rows read.
_OF_PARTITION = f"""
SELECT o.no, o.kind, o.value, o.at, {_RECALL}
FROM (SELECT o.no FROM recalls r CROSS JOIN outcomes o ON o.recall = r.no
      WHERE r.partition = ? AND o.no > ? ORDER BY o.no LIMIT ?) page
CROSS JOIN outcomes o ON o.no = page.no CROSS JOIN recalls r ON r.no = o.recall CROSS JOIN partitions s ON s.no = r.partition
ORDER BY o.no
"""
_RECENT = f"""
SELECT o.no, o.kind, o.value, o.at, {_RECALL}
FROM (SELECT no FROM recalls WHERE partition = ? ORDER BY no DESC LIMIT ?) last
CROSS JOIN outcomes o ON o.recall = last.no CROSS JOIN recalls r ON r.no = last.no
CROSS JOIN partitions s ON s.no = r.partition WHERE o.no > ? ORDER BY o.no
"""


# -- recalls -------------------------------------------------------------------------------------------------------


def has_recall(db: sqlite3.Connection, recall_id: str) -> bool:
    return db.execute("SELECT 1 FROM recalls WHERE id = ?", (recall_id,)).fetchone() is not None


def add_recall(db: sqlite3.Connection, partition_no: int, recall: LoggedRecall) -> None:
    db.execute(
        "INSERT INTO recalls (id, partition, at, query, profile, level, shown, nos, base, names, features) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            recall.id,
            partition_no,
            to_micros(recall.at),
            recall.query,
            recall.profile,
            recall.level,
            recall.shown,
            np.array(recall.nos, dtype="<i8").tobytes(),
            _floats(recall.base),
            json.dumps(recall.names, ensure_ascii=False),
            _floats(recall.features),
        ),
    )


def recall_by_id(db: sqlite3.Connection, recall_id: str) -> tuple[LoggedRecall, int, int] | None:
    """The recall, the number of its partition and its own."""
    row = db.execute(
        f"SELECT {_RECALL}, s.no, r.no FROM recalls r JOIN partitions s ON s.no = r.partition WHERE r.id = ?",
        (recall_id,),
    ).fetchone()
    return None if row is None else (_recall_from(row[:-2]), row[-2], row[-1])


def numbers_of(db: sqlite3.Connection, recall_id: str) -> tuple[int, int, str] | None:
    """The number of a recall, that of its partition, and its words."""
    row = db.execute("SELECT no, partition, query FROM recalls WHERE id = ?", (recall_id,)).fetchone()
    return None if row is None else (int(row[0]), int(row[1]), str(row[2]))


def recalls_on(db: sqlite3.Connection, partition_no: int) -> int:
    """How many were logged for a partition."""
    return int(db.execute("SELECT count(*) FROM recalls WHERE partition = ?", (partition_no,)).fetchone()[0])


def blank_queries(db: sqlite3.Connection, partition_no: int, nos: set[int]) -> None:
    """Take the query out of the tenant's recalls that showed one of these rows: it may be about them."""
    rows = db.execute(
        "SELECT r.no, r.nos, r.shown FROM recalls r JOIN partitions s ON s.no = r.partition "
        "WHERE s.tenant = (SELECT tenant FROM partitions WHERE no = ?) AND r.query <> ''",
        (partition_no,),
    ).fetchall()
    about = [no for no, blob, shown in rows if not nos.isdisjoint(np.frombuffer(blob, dtype="<i8")[:shown].tolist())]
    db.executemany("UPDATE recalls SET query = '' WHERE no = ?", [(no,) for no in about])


# -- outcomes ------------------------------------------------------------------------------------------------------


def add_outcome(db: sqlite3.Connection, recall_no: int, kind: str, value: dict[str, Any], at: datetime) -> int | None:
    """The outcome's number; None when the recall has one of this kind."""
    try:
        return db.execute(
            "INSERT INTO outcomes (recall, kind, value, at) VALUES (?, ?, ?, ?)",
            (recall_no, kind, json.dumps(value, ensure_ascii=False), to_micros(at)),
        ).lastrowid
    except sqlite3.IntegrityError as error:
        if error.sqlite_errorname != "SQLITE_CONSTRAINT_UNIQUE":
            raise
        return None  # only this statement is undone, its number with it


def outcomes(
    db: sqlite3.Connection, tenant: str, partition: Partition | None, after: int, limit: int
) -> list[LoggedOutcome]:
    """One page; none for a partition of another tenant."""
    if partition is None:
        rows = db.execute(_OF_TENANT, (after, tenant, limit))
    elif partition.tenant == tenant:
        rows = db.execute(_OF_PARTITION, (partition_no_of(db, partition), after, limit))
    else:
        return []
    return _outcomes_from(rows)


def recent_outcomes(db: sqlite3.Connection, partition: Partition, recalls: int, after: int) -> list[LoggedOutcome]:
    return _outcomes_from(db.execute(_RECENT, (partition_no_of(db, partition), recalls, after)))


def _outcomes_from(rows: Iterable[tuple[Any, ...]]) -> list[LoggedOutcome]:
    return [
        LoggedOutcome(no=no, recall=_recall_from(tuple(recall)), kind=kind, value=json.loads(value), at=from_micros(at))
        for no, kind, value, at, *recall in rows
    ]


# -- policies ------------------------------------------------------------------------------------------------------


# Single statements, so that they need no transaction to see one moment.
_OF_ALL = "SELECT state FROM policies WHERE tenant = ? AND profile = ? AND partition IS NULL"
_OF_ONE = """
SELECT state FROM policies WHERE tenant = ? AND profile = ? AND partition = (
  SELECT no FROM partitions WHERE tenant = ? AND layer = ? AND layer_id = ?)
"""


def policy(db: sqlite3.Connection, tenant: str, partition: Partition | None, profile: str) -> str | None:
    if partition is None:
        row = db.execute(_OF_ALL, (tenant, profile)).fetchone()
    else:
        row = db.execute(_OF_ONE, (tenant, profile, partition.tenant, partition.layer, partition.layer_id)).fetchone()
    return None if row is None else str(row[0])


def policies(db: sqlite3.Connection, partition: Partition, profile: str) -> tuple[str | None, str | None]:
    """Of the tenant as a whole, and of the partition."""
    tenant = partition.tenant
    values = (tenant, profile, tenant, profile, tenant, partition.layer, partition.layer_id)
    of_all, of_one = db.execute(f"SELECT ({_OF_ALL}), ({_OF_ONE})", values).fetchone()
    return of_all, of_one


def put_policy(db: sqlite3.Connection, tenant: str, partition_no: int | None, state: str, profile: str) -> None:
    one = (
        "(tenant, profile) WHERE partition IS NULL"
        if partition_no is None
        else "(partition, profile) WHERE partition IS NOT NULL"
    )
    db.execute(
        "INSERT INTO policies (tenant, partition, state, profile) VALUES (?, ?, ?, ?) "
        f"ON CONFLICT {one} DO UPDATE SET state = excluded.state",
        (tenant, partition_no, state, profile),
    )


def drop_policies(db: sqlite3.Connection, tenant: str, profile: str | None) -> int:
    return db.execute(
        "DELETE FROM policies WHERE tenant = ?1 AND (?2 IS NULL OR profile = ?2)", (tenant, profile)
    ).rowcount


# -- rows ----------------------------------------------------------------------------------------------------------


def _recall_from(row: tuple[Any, ...]) -> LoggedRecall:
    """The recall of a row selected with `_RECALL`."""
    id_, tenant, layer, layer_id, at, query, profile, level, shown, nos, base, names, features = row
    try:
        columns = [*_names(names)]
        numbers = np.frombuffer(nos, dtype="<i8").tolist()
        return filled(
            LoggedRecall,
            id=id_,
            partition=Partition(tenant=tenant, layer=layer, layer_id=layer_id),
            at=from_micros(at),
            query=query,
            profile=profile,
            level=level,
            shown=shown,
            nos=numbers,
            names=columns,
            base=_array(base).reshape(len(numbers)),
            features=_array(features).reshape(len(numbers), len(columns)),
        )
    except (ValueError, TypeError, OverflowError) as error:
        raise StoreCorrupt(f"the logged recall {id_!r} cannot be read: {error}") from error


@lru_cache(maxsize=16)
def _names(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text))


def _floats(array: Vector) -> bytes:
    return array.astype("<f4", copy=False).tobytes()


def _array(blob: bytes) -> Vector:
    """An array of its own: one over the blob could not be written to."""
    return np.frombuffer(bytearray(blob), dtype="<f4").astype(np.float32, copy=False)
