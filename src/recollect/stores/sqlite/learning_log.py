"""What learning keeps in the SQLite file: recalls, their outcomes, and the learned state of shelves and tenants."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from typing import Any

import numpy as np

from recollect.clock import from_micros, to_micros
from recollect.errors import StoreCorrupt
from recollect.stores.base import LoggedOutcome, LoggedRecall, Vector
from recollect.stores.sqlite.queries import shelf_no_of
from recollect.types import Shelf, filled

_RECALL = """
r.id, s.tenant, s.layer, s.layer_id, r.at, r.query, r.profile, r.level, r.shown, r.nos, r.base, r.names, r.features
"""
# In the order of the log, each outcome looked up in turn: a tenant that is read page by page is read once.
_OF_TENANT = f"""
SELECT o.no, o.kind, o.value, o.at, {_RECALL}
FROM outcomes o CROSS JOIN recalls r ON r.no = o.recall CROSS JOIN shelves s ON s.no = r.shelf
WHERE o.no > ? AND s.tenant = ? ORDER BY o.no LIMIT ?
"""
# A shelf is a small part of the log: its page is found along the indexes, and only then are rows read.
_OF_SHELF = f"""
SELECT o.no, o.kind, o.value, o.at, {_RECALL}
FROM (SELECT o.no FROM recalls r CROSS JOIN outcomes o ON o.recall = r.no
      WHERE r.shelf = ? AND o.no > ? ORDER BY o.no LIMIT ?) page
CROSS JOIN outcomes o ON o.no = page.no CROSS JOIN recalls r ON r.no = o.recall CROSS JOIN shelves s ON s.no = r.shelf
ORDER BY o.no
"""
_RECENT = f"""
SELECT o.no, o.kind, o.value, o.at, {_RECALL}
FROM (SELECT no FROM recalls WHERE shelf = ? ORDER BY no DESC LIMIT ?) last
CROSS JOIN outcomes o ON o.recall = last.no CROSS JOIN recalls r ON r.no = last.no
CROSS JOIN shelves s ON s.no = r.shelf WHERE o.no > ? ORDER BY o.no
"""


# -- recalls -------------------------------------------------------------------------------------------------------


def has_recall(db: sqlite3.Connection, recall_id: str) -> bool:
    return db.execute("SELECT 1 FROM recalls WHERE id = ?", (recall_id,)).fetchone() is not None


def add_recall(db: sqlite3.Connection, shelf_no: int, recall: LoggedRecall) -> None:
    db.execute(
        "INSERT INTO recalls (id, shelf, at, query, profile, level, shown, nos, base, names, features) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (recall.id, shelf_no, to_micros(recall.at), recall.query, recall.profile, recall.level, recall.shown,
         np.array(recall.nos, dtype="<i8").tobytes(), _floats(recall.base),
         json.dumps(recall.names, ensure_ascii=False), _floats(recall.features)),
    )  # fmt: skip


def recall_by_id(db: sqlite3.Connection, recall_id: str) -> tuple[LoggedRecall, int, int] | None:
    """The recall, the number of its shelf and its own."""
    row = db.execute(
        f"SELECT {_RECALL}, s.no, r.no FROM recalls r JOIN shelves s ON s.no = r.shelf WHERE r.id = ?", (recall_id,)
    ).fetchone()
    return None if row is None else (_recall_from(row[:-2]), row[-2], row[-1])


def numbers_of(db: sqlite3.Connection, recall_id: str) -> tuple[int, int, str] | None:
    """The number of a recall, that of its shelf, and its words."""
    row = db.execute("SELECT no, shelf, query FROM recalls WHERE id = ?", (recall_id,)).fetchone()
    return None if row is None else (int(row[0]), int(row[1]), str(row[2]))


def recalls_on(db: sqlite3.Connection, shelf_no: int) -> int:
    """How many were logged for a shelf."""
    return int(db.execute("SELECT count(*) FROM recalls WHERE shelf = ?", (shelf_no,)).fetchone()[0])


def blank_queries(db: sqlite3.Connection, shelf_no: int, nos: set[int]) -> None:
    """Take the query out of the tenant's recalls that showed one of these rows: it may be about them."""
    rows = db.execute(
        "SELECT r.no, r.nos, r.shown FROM recalls r JOIN shelves s ON s.no = r.shelf "
        "WHERE s.tenant = (SELECT tenant FROM shelves WHERE no = ?) AND r.query <> ''",
        (shelf_no,),
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


def outcomes(db: sqlite3.Connection, tenant: str, shelf: Shelf | None, after: int, limit: int) -> list[LoggedOutcome]:
    """One page; none for a shelf of another tenant."""
    if shelf is None:
        rows = db.execute(_OF_TENANT, (after, tenant, limit))
    elif shelf.tenant == tenant:
        rows = db.execute(_OF_SHELF, (shelf_no_of(db, shelf), after, limit))
    else:
        return []
    return _outcomes_from(rows)


def recent_outcomes(db: sqlite3.Connection, shelf: Shelf, recalls: int, after: int) -> list[LoggedOutcome]:
    return _outcomes_from(db.execute(_RECENT, (shelf_no_of(db, shelf), recalls, after)))


def _outcomes_from(rows: Iterable[tuple[Any, ...]]) -> list[LoggedOutcome]:
    return [
        LoggedOutcome(no=no, recall=_recall_from(tuple(recall)), kind=kind, value=json.loads(value), at=from_micros(at))
        for no, kind, value, at, *recall in rows
    ]


# -- policies ------------------------------------------------------------------------------------------------------


# Single statements, so that they need no transaction to see one moment.
_OF_ALL = "SELECT state FROM policies WHERE tenant = ? AND profile = ? AND shelf IS NULL"
_OF_ONE = """
SELECT state FROM policies WHERE tenant = ? AND profile = ? AND shelf = (
  SELECT no FROM shelves WHERE tenant = ? AND layer = ? AND layer_id = ?)
"""


def policy(db: sqlite3.Connection, tenant: str, shelf: Shelf | None, profile: str) -> str | None:
    if shelf is None:
        row = db.execute(_OF_ALL, (tenant, profile)).fetchone()
    else:
        row = db.execute(_OF_ONE, (tenant, profile, shelf.tenant, shelf.layer, shelf.layer_id)).fetchone()
    return None if row is None else str(row[0])


def policies(db: sqlite3.Connection, shelf: Shelf, profile: str) -> tuple[str | None, str | None]:
    """Of the tenant as a whole, and of the shelf."""
    tenant = shelf.tenant
    values = (tenant, profile, tenant, profile, tenant, shelf.layer, shelf.layer_id)
    of_all, of_one = db.execute(f"SELECT ({_OF_ALL}), ({_OF_ONE})", values).fetchone()
    return of_all, of_one


def put_policy(db: sqlite3.Connection, tenant: str, shelf_no: int | None, state: str, profile: str) -> None:
    one = "(tenant, profile) WHERE shelf IS NULL" if shelf_no is None else "(shelf, profile) WHERE shelf IS NOT NULL"
    db.execute(
        "INSERT INTO policies (tenant, shelf, state, profile) VALUES (?, ?, ?, ?) "
        f"ON CONFLICT {one} DO UPDATE SET state = excluded.state",
        (tenant, shelf_no, state, profile),
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
            id=id_, shelf=Shelf(tenant=tenant, layer=layer, layer_id=layer_id), at=from_micros(at), query=query,
            profile=profile, level=level, shown=shown, nos=numbers, names=columns,
            base=_array(base).reshape(len(numbers)), features=_array(features).reshape(len(numbers), len(columns)),
        )  # fmt: skip
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
