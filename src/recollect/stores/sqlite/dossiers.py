"""Dossiers in the SQLite file."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from recollect.clock import from_micros, to_micros
from recollect.errors import StoreCorrupt
from recollect.stores.base import Dossier
from recollect.stores.sqlite.queries import shelf_no_of
from recollect.types import Shelf

_DOSSIER = """
s.tenant, s.layer, s.layer_id, d.kind, d.key, d.state, d.body, d.session, d.created_at, d.updated_at,
(SELECT json_group_array(e.id) FROM (SELECT e.id FROM dossier_entries n JOIN entries e ON e.no = n.entry
 WHERE n.dossier = d.no ORDER BY n.place) e)
"""


def put(db: sqlite3.Connection, shelf_no: int, dossier: Dossier, named: dict[str, int]) -> None:
    """`named` are the rows of the entries that it names, see `rows_named`."""
    (no,) = db.execute(
        """
        INSERT INTO dossiers (shelf, kind, key, state, body, session, created_at, updated_at)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (shelf, kind, key) DO UPDATE
        SET state = excluded.state, body = excluded.body, session = excluded.session, updated_at = excluded.updated_at
        RETURNING no
        """,
        (shelf_no, dossier.kind, dossier.key, dossier.state, json.dumps(dossier.body, ensure_ascii=False),
         dossier.session, to_micros(dossier.created_at), to_micros(dossier.updated_at)),
    ).fetchone()  # fmt: skip
    db.execute("DELETE FROM dossier_entries WHERE dossier = ?", (no,))
    db.executemany(
        "INSERT INTO dossier_entries (dossier, entry, place) VALUES (?, ?, ?)",
        [(no, named[name], place) for place, name in enumerate(dossier.names)],
    )


def by_key(db: sqlite3.Connection, shelf: Shelf, kind: str, key: str) -> Dossier | None:
    row = db.execute(
        f"SELECT {_DOSSIER} FROM dossiers d JOIN shelves s ON s.no = d.shelf "
        "WHERE d.shelf = ? AND d.kind = ? AND d.key = ?",
        (shelf_no_of(db, shelf), kind, key),
    ).fetchone()
    return None if row is None else _dossier_from(row)


def put_bodies(db: sqlite3.Connection, shelf_no: int, kind: str, bodies: Mapping[str, dict[str, Any]],
               at: datetime) -> None:  # fmt: skip
    """Many at once, in two statements."""
    db.execute(
        "DELETE FROM dossier_entries WHERE dossier IN (SELECT no FROM dossiers WHERE shelf = ? AND kind = ? "
        "AND key IN (SELECT value FROM json_each(?)))",
        (shelf_no, kind, json.dumps([*bodies])),
    )
    now = to_micros(at)
    db.executemany(
        """
        INSERT INTO dossiers (shelf, kind, key, state, body, session, created_at, updated_at)
        VALUES (?, ?, ?, '', ?, NULL, ?, ?)
        ON CONFLICT (shelf, kind, key) DO UPDATE
        SET state = '', body = excluded.body, session = NULL, updated_at = excluded.updated_at
        """,
        [(shelf_no, kind, key, json.dumps(body, ensure_ascii=False), now, now) for key, body in bodies.items()],
    )


def bodies(db: sqlite3.Connection, shelf: Shelf, kind: str, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
    rows = db.execute(
        "SELECT key, body FROM dossiers WHERE shelf = ? AND kind = ? AND key IN (SELECT value FROM json_each(?))",
        (shelf_no_of(db, shelf), kind, json.dumps(list(keys))),
    )
    try:
        return {key: json.loads(body) for key, body in rows}
    except ValueError as problem:
        raise StoreCorrupt(f"a {kind} cannot be read: {problem}; run `recollect doctor`") from problem


def listed(db: sqlite3.Connection, *, tenant: str | None, shelf: Shelf | None, kinds: Sequence[str] | None,
           states: Sequence[str] | None, limit: int) -> list[Dossier]:  # fmt: skip
    where, values = "", list[Any]()
    if tenant is not None:
        where += " AND s.tenant = ?"
        values.append(tenant)
    if shelf is not None:
        where += " AND d.shelf = ?"
        values.append(shelf_no_of(db, shelf))
    for column, wanted in (("d.kind", kinds), ("d.state", states)):
        if wanted is not None:
            where += f" AND {column} IN (SELECT value FROM json_each(?))"
            values.append(json.dumps(list(wanted), ensure_ascii=False))
    rows = db.execute(
        f"SELECT {_DOSSIER} FROM dossiers d JOIN shelves s ON s.no = d.shelf WHERE 1{where} ORDER BY d.no DESC LIMIT ?",
        (*values, limit),
    )
    return [_dossier_from(row) for row in rows]


def drop(db: sqlite3.Connection, shelf: Shelf, kind: str, key: str) -> bool:
    dropped = db.execute(
        "DELETE FROM dossiers WHERE shelf = ? AND kind = ? AND key = ?", (shelf_no_of(db, shelf), kind, key)
    )
    return dropped.rowcount == 1


def count_on(db: sqlite3.Connection, shelf_no: int) -> int:
    return int(db.execute("SELECT count(*) FROM dossiers WHERE shelf = ?", (shelf_no,)).fetchone()[0])


def forget_sessions(db: sqlite3.Connection, shelf_no: int, gone: Sequence[str]) -> int:
    return db.execute(
        "DELETE FROM dossiers WHERE shelf = ? AND session IN (SELECT value FROM json_each(?))",
        (shelf_no, json.dumps(list(gone), ensure_ascii=False)),
    ).rowcount


def forget_entry(db: sqlite3.Connection, entry_no: int) -> int:
    """Before the entry itself goes: afterwards nobody knows who named it."""
    return db.execute(
        "DELETE FROM dossiers WHERE no IN (SELECT dossier FROM dossier_entries WHERE entry = ?)", (entry_no,)
    ).rowcount


def rows_named(db: sqlite3.Connection, dossier: Dossier) -> dict[str, int]:
    """Row numbers of the named entries that are there and of the dossier's tenant."""
    if not dossier.names:
        return {}
    return dict(
        db.execute(
            "SELECT e.id, e.no FROM entries e JOIN shelves s ON s.no = e.shelf "
            "WHERE s.tenant = ? AND e.id IN (SELECT value FROM json_each(?))",
            (dossier.shelf.tenant, json.dumps(dossier.names)),
        ).fetchall()
    )


def _dossier_from(row: tuple[Any, ...]) -> Dossier:
    """The dossier of a row selected with `_DOSSIER`."""
    tenant, layer, layer_id, kind, key, state, body, session, created_at, updated_at, names = row
    try:
        return Dossier(
            shelf=Shelf(tenant=tenant, layer=layer, layer_id=layer_id), kind=kind, key=key, state=state,
            body=json.loads(body), names=tuple(json.loads(names)), session=session,
            created_at=from_micros(created_at), updated_at=from_micros(updated_at),
        )  # fmt: skip
    except (ValueError, TypeError, OverflowError) as problem:
        raise StoreCorrupt(f"{kind} {key!r} cannot be read: {problem}; run `recollect doctor`") from problem
