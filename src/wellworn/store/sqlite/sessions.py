"""Sessions and their raw turns in the SQLite file. `sessions.turns` is kept in step with the turns themselves."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from wellworn.core.clock import from_micros, to_micros
from wellworn.core.errors import StoreError
from wellworn.core.values import Partition, Turn
from wellworn.store.port import Removed, SessionHead
from wellworn.store.sqlite import calls, jobs, records

_HEAD = "s.tenant, s.layer, s.layer_id, n.session_id, n.turns, n.reflected, n.touched_at, n.ended_at"


def open_session(db: sqlite3.Connection, partition_no: int, session_id: str, at: datetime) -> int:
    db.execute(
        "INSERT OR IGNORE INTO sessions (partition, session_id, created_at, touched_at) VALUES (?, ?, ?, ?)",
        (partition_no, session_id, to_micros(at), to_micros(at)),
    )
    row = db.execute("SELECT turns FROM sessions WHERE partition = ? AND session_id = ?", (partition_no, session_id))
    return int(row.fetchone()[0])


def add_turn(db: sqlite3.Connection, partition_no: int, turn: Turn, touched_at: datetime) -> None:
    db.execute(
        """
        INSERT INTO turns (session, number, role, speaker, at, entry, text)
        VALUES ((SELECT no FROM sessions WHERE partition = ? AND session_id = ?), ?, ?, ?, ?,
                (SELECT no FROM entries WHERE id = ?), ?)
        """,
        (
            partition_no,
            turn.session_id,
            turn.number,
            turn.role,
            turn.speaker,
            to_micros(turn.at),
            turn.entry_id,
            turn.text,
        ),
    )
    db.execute(
        "UPDATE sessions SET turns = max(turns, ?), touched_at = ?, ended_at = NULL WHERE partition = ? AND session_id = ?",
        (turn.number + 1, to_micros(touched_at), partition_no, turn.session_id),
    )


def remove_turns(
    db: sqlite3.Connection, partition_no: int, session_id: str | None, entry_ids: Sequence[str] | None
) -> Removed:
    """Turns, the sessions that have none left, and what jobs and calls say of them."""
    sessions = "SELECT no FROM sessions WHERE partition = ?" + (" AND session_id = ?" if session_id is not None else "")
    values: list[Any] = [partition_no] + ([session_id] if session_id is not None else [])
    condition = f"session IN ({sessions})"
    if entry_ids is not None:
        condition += " AND entry IN (SELECT no FROM entries WHERE id IN (SELECT value FROM json_each(?)))"
    removed = db.execute(
        f"DELETE FROM turns WHERE {condition} RETURNING session",
        (*values, *([] if entry_ids is None else [json.dumps(list(entry_ids))])),
    ).fetchall()
    emptied = db.execute(
        f"DELETE FROM sessions WHERE no IN ({sessions}) "
        "AND NOT EXISTS (SELECT 1 FROM turns WHERE turns.session = sessions.no) RETURNING session_id",
        values,
    ).fetchall()
    cut = db.execute(
        """
        UPDATE sessions SET turns = counted.next, reflected = min(reflected, counted.next)
        FROM (SELECT session, max(number) + 1 AS next FROM turns
              WHERE session IN (SELECT value FROM json_each(?)) GROUP BY session) counted
        WHERE counted.session = sessions.no RETURNING session_id
        """,
        (json.dumps(sorted({no for (no,) in removed})),),
    ).fetchall()
    if not emptied and not cut:
        return Removed()
    gone = [name for (name,) in emptied]
    calls.forget_sessions(db, partition_no, gone)
    dropped = jobs.forget_sessions(db, partition_no, gone, [name for (name,) in cut])
    told = records.forget_sessions(db, partition_no, gone)
    return Removed(turns=len(removed), sessions=len(gone), jobs=dropped, records=told)


def head(db: sqlite3.Connection, partition: Partition, session_id: str) -> SessionHead | None:
    row = db.execute(
        f"SELECT {_HEAD} FROM partitions s JOIN sessions n ON n.partition = s.no "
        "WHERE s.tenant = ? AND s.layer = ? AND s.layer_id = ? AND n.session_id = ?",
        (partition.tenant, partition.layer, partition.layer_id, session_id),
    ).fetchone()
    return None if row is None else _head_from(row)


def idle(db: sqlite3.Connection, before: datetime, tenant: str | None, limit: int) -> list[SessionHead]:
    rows = db.execute(
        f"SELECT {_HEAD} FROM sessions n INDEXED BY sessions_unreflected CROSS JOIN partitions s ON s.no = n.partition "
        "WHERE n.reflected < n.turns AND n.touched_at <= ?1 AND n.ended_at IS NULL AND (?2 IS NULL OR s.tenant = ?2) "
        "ORDER BY n.touched_at, s.tenant, s.layer, s.layer_id, n.session_id LIMIT ?3",
        (to_micros(before), tenant, limit),
    )
    return [_head_from(row) for row in rows]


def mark(
    db: sqlite3.Connection, partition: Partition, session_id: str, reflected: int | None, ended_at: datetime | None
) -> None:
    there = head(db, partition, session_id)
    if there is None:
        raise StoreError(f"no session {session_id!r} on partition {partition} to mark")
    if reflected is not None and not 0 <= reflected <= there.turns:
        raise StoreError(f"session {session_id!r} has turns below {there.turns}, none below {reflected} to reflect on")
    db.execute(
        "UPDATE sessions SET reflected = coalesce(?, reflected), ended_at = coalesce(?, ended_at) "
        "WHERE session_id = ? "
        "AND partition = (SELECT no FROM partitions WHERE tenant = ? AND layer = ? AND layer_id = ?)",
        (
            reflected,
            None if ended_at is None else to_micros(ended_at),
            session_id,
            partition.tenant,
            partition.layer,
            partition.layer_id,
        ),
    )


def _head_from(row: tuple[Any, ...]) -> SessionHead:
    """The head of a row selected with `_HEAD`."""
    tenant, layer, layer_id, session_id, turns, reflected, touched_at, ended_at = row
    return SessionHead(
        partition=Partition(tenant=tenant, layer=layer, layer_id=layer_id),
        id=session_id,
        turns=turns,
        reflected=reflected,
        touched_at=from_micros(touched_at),
        ended_at=None if ended_at is None else from_micros(ended_at),
    )
