"""Reading the SQLite file, and opening a transaction on it: the `Store` port."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from recollect.clock import Clock, from_micros, system_clock
from recollect.stores.base import (
    Delta,
    Dossier,
    Event,
    Flaw,
    Head,
    IndexRecord,
    Job,
    LoggedOutcome,
    LoggedRecall,
    Model,
    Replaced,
    Selection,
    SessionHead,
    Slim,
    Spent,
    Tx,
    Vector,
)
from recollect.stores.owned import checked_by
from recollect.stores.sqlite import calls, dossiers, jobs, learning_log, sessions
from recollect.stores.sqlite.check import check_tables, mend_tables
from recollect.stores.sqlite.connection import Connections
from recollect.stores.sqlite.queries import (
    alive,
    entries_by_id,
    in_parts,
    marks,
    matching,
    naming,
    shelf_no_of,
    shelf_nos,
)
from recollect.stores.sqlite.rows import SELECT_ENTRY, entry_from, entry_of_snapshot, index_from, vector_from
from recollect.stores.sqlite.tx import SqliteTx
from recollect.types import Entry, Layer, Link, Shelf, Turn

_SLIM = """
SELECT e.no, e.seq, e.index_seq, e.kind, e.state, e.at, e.valid_from, e.valid_to, e.confidence, e.usage_count,
       e.repeats, e.thread, e.position, i.length, i.chars, i.traits, i.speaker, i.terms, i.counts, i.vector
FROM entries e INDEXED BY {index} CROSS JOIN index_records i ON i.entry = e.no
WHERE e.shelf = ? AND e.seq > ? AND e.no > ? ORDER BY e.no LIMIT ?
"""
# A whole shelf is read along the index of shelves, in row order; a few changes along the index of changes.
_SLIM_ALL, _SLIM_CHANGED = _SLIM.format(index="entries_by_shelf"), _SLIM.format(index="entries_by_change")

MOST_HEADS = 8
"""Shelves asked for in one statement: as many as a scope has, and one."""


@lru_cache(maxsize=MOST_HEADS)
def _heads(count: int) -> str:
    """One statement for several shelves: each of its own would take a lock of its own."""
    one = "SELECT {}, no, seq FROM shelves WHERE tenant = ? AND layer = ? AND layer_id = ?"
    return " UNION ALL ".join(one.format(place) for place in range(count))


class SqliteStore:
    """A memory in one file. Several threads and processes may use it at once."""

    def __init__(self, path: str | Path, *, durability: str = "full", clock: Clock = system_clock) -> None:
        self._path = Path(path)
        self._connections = Connections(self._path, durability=durability, clock=clock)

    @property
    def location(self) -> str:
        return str(self._path)

    def transact(self) -> AbstractContextManager[Tx]:
        return _Transaction(self._connections.writing())

    def heads(self, shelves: Sequence[Shelf]) -> list[Head | None]:
        found: dict[int, Head] = {}
        with self._connections.reading() as db:
            for start in range(0, len(shelves), MOST_HEADS):
                part = shelves[start : start + MOST_HEADS]
                values = [value for shelf in part for value in (shelf.tenant, shelf.layer, shelf.layer_id)]
                for place, no, seq in db.execute(_heads(len(part)), values):
                    found[start + place] = Head(shelf_no=no, seq=seq)
        return [found.get(place) for place in range(len(shelves))]

    def delta(self, shelf_no: int, since: int, *, after: int = 0, limit: int | None = None) -> Delta:
        with self._connections.snapshot() as db:
            head = db.execute("SELECT seq FROM shelves WHERE no = ?", (shelf_no,)).fetchone()
            if head is None:
                return Delta(seq=0, rows=[], removed=[])
            query = _SLIM_CHANGED if since else _SLIM_ALL
            rows = list(map(Slim._make, db.execute(query, (shelf_no, since, after, -1 if limit is None else limit))))
            removed = db.execute("SELECT entry FROM removed WHERE shelf = ? AND seq > ?", (shelf_no, since)).fetchall()
        return Delta(seq=head[0], rows=rows, removed=[no for (no,) in removed])

    def read(self, nos: Sequence[int]) -> dict[int, Entry]:
        found: dict[int, Entry] = {}
        with self._connections.reading() as db:
            for part in in_parts(nos):
                rows = db.execute(
                    f"SELECT {SELECT_ENTRY}, e.no FROM entries e JOIN shelves s ON s.no = e.shelf "
                    f"WHERE e.no IN ({marks(part)})",
                    tuple(part),
                )
                found.update((row[-1], entry_from(row[:-1])) for row in rows)
        return found

    def alive(self, nos: Sequence[int]) -> set[int]:
        with self._connections.reading() as db:
            return alive(db, nos)

    def get(self, shelves: Sequence[Shelf], ids: Sequence[str]) -> dict[str, Entry]:
        with self._connections.reading() as db:
            return entries_by_id(db, shelves, ids)

    def where(self, ids: Sequence[str]) -> dict[str, Shelf]:
        found: dict[str, Shelf] = {}
        with self._connections.reading() as db:
            for part in in_parts(ids):
                rows = db.execute(
                    "SELECT e.id, s.tenant, s.layer, s.layer_id FROM entries e JOIN shelves s ON s.no = e.shelf "
                    f"WHERE e.id IN ({marks(part)})",
                    tuple(part),
                )
                found.update((i, Shelf(tenant=tenant, layer=layer, layer_id=name)) for i, tenant, layer, name in rows)
        return found

    def select(self, shelves: Sequence[Shelf], selection: Selection, *, after: int = 0,
               limit: int = 100) -> list[tuple[int, Entry]]:  # fmt: skip
        where, values = matching(selection)
        with self._connections.reading() as db:
            numbers = shelf_nos(db, shelves)
            rows = db.execute(
                f"SELECT {SELECT_ENTRY}, e.no FROM entries e JOIN shelves s ON s.no = e.shelf "
                f"WHERE e.shelf IN ({marks(numbers)}) AND e.no > ?{where} ORDER BY e.no LIMIT ?",
                (*numbers, after, *values, limit),
            ).fetchall()
        return [(row[-1], entry_from(row[:-1])) for row in rows]

    def tagged(self, shelf_no: int, tags: Sequence[str]) -> set[int]:
        where, values = matching(Selection(tags=tags))
        with self._connections.reading() as db:
            rows = db.execute(f"SELECT e.no FROM entries e WHERE e.shelf = ?{where}", (shelf_no, *values))
            return {no for (no,) in rows}

    def in_session(self, shelf_no: int, session_id: str) -> set[int]:
        with self._connections.reading() as db:
            rows = db.execute("SELECT no FROM entries WHERE shelf = ? AND session_id = ?", (shelf_no, session_id))
            return {no for (no,) in rows}

    def links(self, ids: Sequence[str], *, types: Sequence[str] | None = None) -> list[Link]:
        of_type = "" if types is None else f" AND l.type IN ({marks(types)})"
        found: dict[tuple[Any, ...], None] = {}
        with self._connections.reading() as db:
            for part in in_parts(ids):
                for end in ("source", "target"):
                    rows = db.execute(
                        f"""
                        SELECT a.id, b.id, l.type, l.confidence, l.automatic, l.created_at
                        FROM entries x JOIN links l ON l.{end} = x.no
                        JOIN entries a ON a.no = l.source JOIN entries b ON b.no = l.target
                        WHERE x.id IN ({marks(part)}){of_type}
                        """,
                        (*part, *(types or ())),
                    )
                    found.update(dict.fromkeys(rows))
        return [
            Link(source=source, target=target, type=type_, confidence=confidence, automatic=bool(automatic),
                 created_at=from_micros(created_at))
            for source, target, type_, confidence, automatic, created_at in sorted(found)
        ]  # fmt: skip

    def linked(self, nos: Sequence[int]) -> list[tuple[int, int, str, float]]:
        found: set[tuple[int, int, str, float]] = set()
        with self._connections.reading() as db:
            if (
                db.execute("SELECT 1 FROM links INDEXED BY links_by_hand WHERE automatic = 0 LIMIT 1").fetchone()
                is None
            ):
                return []  # as in most stores, and asked at every recall
            for part in in_parts(nos):
                # Along the indexes of hand-made links, which are few; SQLite would read the automatic ones too.
                for end, index in (("source", "links_by_hand"), ("target", "links_by_hand_to")):
                    found.update(
                        db.execute(
                            f"SELECT source, target, type, confidence FROM links INDEXED BY {index} "
                            f"WHERE {end} IN ({marks(part)}) AND automatic = 0",
                            tuple(part),
                        )
                    )
        return sorted(found)

    def derived(self, nos: Sequence[int]) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        with self._connections.reading() as db:
            for part in in_parts(nos):
                found += db.execute(
                    f"SELECT source, target FROM links WHERE source IN ({marks(part)}) AND type = 'derived_from'",
                    tuple(part),
                )
        return sorted(found)

    def replaced(self, entry_id: str) -> list[Replaced]:
        with self._connections.reading() as db:
            rows = db.execute(
                """
                SELECT r.snapshot, r.change, r.changed_at, s.tenant, s.layer, s.layer_id
                FROM replaced r JOIN entries e ON e.no = r.entry JOIN shelves s ON s.no = e.shelf
                WHERE e.id = ? ORDER BY r.no
                """,
                (entry_id,),
            ).fetchall()
        return [
            Replaced(
                entry=entry_of_snapshot(snapshot, Shelf(tenant=tenant, layer=layer, layer_id=layer_id)),
                change=change, changed_at=from_micros(changed_at),
            )
            for snapshot, change, changed_at, tenant, layer, layer_id in rows
        ]  # fmt: skip

    def turns(self, shelf: Shelf, session_id: str) -> list[Turn]:
        with self._connections.reading() as db:
            rows = db.execute(
                """
                SELECT t.number, t.role, t.text, t.at, t.speaker, e.id
                FROM turns t JOIN sessions n ON n.no = t.session LEFT JOIN entries e ON e.no = t.entry
                WHERE n.shelf = ? AND n.session_id = ? ORDER BY t.number
                """,
                (shelf_no_of(db, shelf), session_id),
            ).fetchall()
        return [
            Turn(session_id=session_id, number=number, role=role, text=text, at=from_micros(at), speaker=speaker,
                 entry_id=entry_id)
            for number, role, text, at, speaker, entry_id in rows
        ]  # fmt: skip

    def sessions(self, shelf: Shelf) -> list[str]:
        with self._connections.reading() as db:
            rows = db.execute("SELECT session_id FROM sessions WHERE shelf = ? ORDER BY no", (shelf_no_of(db, shelf),))
            return [session_id for (session_id,) in rows]

    def shelves(self, tenant: str | None = None, *, layer: Layer | None = None, prefix: str = "") -> list[Shelf]:
        where, values = naming(tenant, layer, prefix)
        with self._connections.reading() as db:
            rows = db.execute(f"SELECT tenant, layer, layer_id FROM shelves {where} ORDER BY no", values).fetchall()
        return [Shelf(tenant=tenant_, layer=layer, layer_id=layer_id) for tenant_, layer, layer_id in rows]

    def counts(self, shelves: Sequence[Shelf]) -> dict[str, int]:
        with self._connections.snapshot() as db:
            numbers = shelf_nos(db, shelves)
            here = f"IN ({marks(numbers)})"
            mine = f"IN (SELECT no FROM entries WHERE shelf {here})"
            queries = {
                "entries": f"SELECT count(*) FROM entries WHERE shelf {here}",
                "vectors": f"SELECT count(vector) FROM index_records WHERE shelf {here}",
                "links": f"SELECT count(*) FROM links WHERE source {mine}",
                "versions": f"SELECT count(*) FROM replaced WHERE entry {mine}",
                "sessions": f"SELECT count(*) FROM sessions WHERE shelf {here}",
                "turns": f"SELECT count(*) FROM turns WHERE session IN (SELECT no FROM sessions WHERE shelf {here})",
            }
            counted = {name: int(db.execute(query, numbers).fetchone()[0]) for name, query in queries.items()}
            for column in ("kind", "state"):
                rows = db.execute(
                    f"SELECT {column}, count(*) FROM entries WHERE shelf {here} GROUP BY 1 ORDER BY 1",
                    numbers,
                )
                counted.update({f"{column}:{value}": number for value, number in rows})
        return counted

    def events(self, tenant: str, *, limit: int = 100) -> list[Event]:
        with self._connections.reading() as db:
            rows = db.execute(
                "SELECT at, action, entry_id, detail FROM audit WHERE tenant = ? ORDER BY no DESC LIMIT ?",
                (tenant, limit),
            ).fetchall()
        return [
            Event(at=from_micros(at), tenant=tenant, action=action, entry_id=entry_id, detail=json.loads(detail))
            for at, action, entry_id, detail in rows
        ]

    def logged_recall(self, recall_id: str) -> LoggedRecall | None:
        with self._connections.reading() as db:
            found = learning_log.recall_by_id(db, recall_id)
        return None if found is None else found[0]

    def recent_outcomes(self, shelf: Shelf, *, recalls: int, after: int = 0) -> list[LoggedOutcome]:
        with self._connections.snapshot() as db:
            return learning_log.recent_outcomes(db, shelf, recalls, after)

    def outcomes(self, tenant: str, *, shelf: Shelf | None = None, after: int = 0,
                 limit: int = 1000) -> list[LoggedOutcome]:  # fmt: skip
        with self._connections.snapshot() as db:
            return learning_log.outcomes(db, tenant, shelf, after, limit)

    def policy(self, tenant: str, shelf: Shelf | None, *, profile: str = "default") -> str | None:
        with self._connections.reading() as db:
            return learning_log.policy(db, tenant, shelf, profile)

    def policies(self, shelf: Shelf, *, profile: str = "default") -> tuple[str | None, str | None]:
        with self._connections.reading() as db:
            return learning_log.policies(db, shelf, profile)

    def spent(self, tenant: str | None, *, since: datetime | None = None, session: str | None = None,
              by: Sequence[str] = ()) -> list[Spent]:  # fmt: skip
        with self._connections.reading() as db:
            return calls.spent(db, tenant, since=since, session=session, by=checked_by(by))

    def jobs(self, *, tenant: str | None = None, shelf: Shelf | None = None, states: Sequence[str] | None = None,
             kinds: Sequence[str] | None = None, limit: int = 100) -> list[Job]:  # fmt: skip
        with self._connections.reading() as db:
            return jobs.listed(db, tenant=tenant, shelf=shelf, states=states, kinds=kinds, limit=limit)

    def find_job(self, shelf: Shelf, kind: str, key: str) -> Job | None:
        with self._connections.reading() as db:
            return jobs.by_key(db, shelf, kind, key)

    def dossier(self, shelf: Shelf, kind: str, key: str) -> Dossier | None:
        with self._connections.reading() as db:
            return dossiers.by_key(db, shelf, kind, key)

    def bodies(self, shelf: Shelf, kind: str, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
        with self._connections.reading() as db:
            return dossiers.bodies(db, shelf, kind, keys)

    def dossiers(self, *, tenant: str | None = None, shelf: Shelf | None = None, kinds: Sequence[str] | None = None,
                 states: Sequence[str] | None = None, limit: int = 100) -> list[Dossier]:  # fmt: skip
        with self._connections.reading() as db:
            return dossiers.listed(db, tenant=tenant, shelf=shelf, kinds=kinds, states=states, limit=limit)

    def session(self, shelf: Shelf, session_id: str) -> SessionHead | None:
        with self._connections.reading() as db:
            return sessions.head(db, shelf, session_id)

    def idle_sessions(self, before: datetime, *, tenant: str | None = None,
                      limit: int = 100) -> list[SessionHead]:  # fmt: skip
        with self._connections.reading() as db:
            return sessions.idle(db, before, tenant, limit)

    def model(self) -> Model | None:
        with self._connections.reading() as db:
            row = db.execute("SELECT name, width FROM models WHERE current = 1").fetchone()
        return None if row is None else Model(name=row[0], width=row[1])

    def without_vector(self, model: Model, *, after: int, limit: int) -> list[tuple[int, Entry]]:
        with self._connections.snapshot() as db:
            row = db.execute(
                "SELECT no, current FROM models WHERE name = ? AND width = ?", (model.name, model.width)
            ).fetchone()
            missing = "NOT EXISTS (SELECT 1 FROM new_vectors v WHERE v.entry = e.no AND v.model = ?)"
            if row is not None and row[1]:  # the current model: its vectors lie with the index records
                missing = "? AND EXISTS (SELECT 1 FROM index_records i WHERE i.entry = e.no AND i.vector IS NULL)"
            rows = db.execute(
                f"SELECT {SELECT_ENTRY}, e.no FROM entries e JOIN shelves s ON s.no = e.shelf "
                f"WHERE e.no > ? AND {missing} ORDER BY e.no LIMIT ?",
                (after, -1 if row is None else row[0], limit),
            ).fetchall()
        return [(row[-1], entry_from(row[:-1])) for row in rows]

    def vectors(self, nos: Sequence[int]) -> dict[int, Vector]:
        found: dict[int, Vector] = {}
        with self._connections.reading() as db:
            for part in in_parts(nos):
                rows = db.execute(
                    f"SELECT entry, vector FROM index_records WHERE entry IN ({marks(part)}) AND vector IS NOT NULL",
                    tuple(part),
                )
                found.update((no, np.frombuffer(blob, dtype="<f4")) for no, blob in rows)
        return found

    def index_of(self, nos: Sequence[int]) -> dict[int, tuple[IndexRecord | None, Vector | None]]:
        found: dict[int, tuple[IndexRecord | None, Vector | None]] = {}
        with self._connections.reading() as db:
            for part in in_parts(nos):
                rows = db.execute(
                    "SELECT near_a, near_b, length, chars, traits, i.speaker, terms, counts, vector, e.no, i.entry "
                    f"FROM entries e LEFT JOIN index_records i ON i.entry = e.no WHERE e.no IN ({marks(part)})",
                    tuple(part),
                )
                for row in rows:
                    found[row[9]] = (None, None) if row[10] is None else (index_from(row[:8]), vector_from(row[8]))
        return found

    def check(self) -> Iterator[Flaw]:
        with self._connections.snapshot() as db:
            yield from check_tables(db)

    def mend(self) -> list[Flaw]:
        with self._connections.writing() as db:
            return mend_tables(db)

    def scrub(self) -> bool:
        return self._connections.checkpoint()

    def size_bytes(self) -> int:
        self._connections.check_open()
        files = (self._path.with_name(self._path.name + suffix) for suffix in ("", "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    def close(self) -> None:
        self._connections.close()


class _Transaction:
    """A write transaction as the port knows it."""

    def __init__(self, writing: AbstractContextManager[sqlite3.Connection]) -> None:
        self._writing = writing

    def __enter__(self) -> Tx:
        return SqliteTx(self._writing.__enter__())

    def __exit__(self, type_: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> bool | None:  # fmt: skip
        return self._writing.__exit__(type_, error, trace)
