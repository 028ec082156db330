"""Reading the SQLite file, and opening a transaction on it: the `Store` port."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from wellworn.core.clock import Clock, from_micros, system_clock
from wellworn.core.values import Entry, Layer, Link, Partition, Turn
from wellworn.store.owned import checked_by
from wellworn.store.port import (
    Delta,
    Event,
    Flaw,
    Head,
    IndexRecord,
    Job,
    LoggedOutcome,
    LoggedRecall,
    Model,
    Record,
    Replaced,
    Selection,
    SessionHead,
    Slim,
    Spent,
    Tx,
    Vector,
)
from wellworn.store.sqlite import calls, jobs, learning_log, records, sessions
from wellworn.store.sqlite.check import check_tables, mend_tables
from wellworn.store.sqlite.connection import Connections
from wellworn.store.sqlite.queries import (
    alive,
    entries_by_id,
    in_parts,
    marks,
    matching,
    naming,
    partition_no_of,
    partition_nos,
)
from wellworn.store.sqlite.rows import SELECT_ENTRY, entry_from, entry_of_snapshot, index_from, vector_from
from wellworn.store.sqlite.tx import SqliteTx

_SLIM = """
SELECT e.no, e.seq, e.index_seq, e.kind, e.state, e.at, e.valid_from, e.valid_to, e.confidence, e.usage_count,
       e.repeats, e.thread, e.position, i.length, i.chars, i.traits, i.speaker, i.terms, i.counts, i.vector
FROM entries e INDEXED BY {index} CROSS JOIN index_records i ON i.entry = e.no
WHERE e.partition = ? AND e.seq > ? AND e.no > ? ORDER BY e.no LIMIT ?
"""
# A whole partition is read along the index of partitions, in row order; a few changes along the index of changes.
_SLIM_ALL, _SLIM_CHANGED = _SLIM.format(index="entries_by_partition"), _SLIM.format(index="entries_by_change")

MOST_HEADS = 8
"""Partitions asked for in one statement: as many as a scope has, and one."""


@lru_cache(maxsize=MOST_HEADS)
def _heads(count: int) -> str:
    """One statement for several partitions: each of its own would take a lock of its own."""
    one = "SELECT {}, no, seq FROM partitions WHERE tenant = ? AND layer = ? AND layer_id = ?"
    return " UNION ALL ".join(one.format(place) for place in range(count))


class SqliteStore:
    """A memory in one file. Several threads and processes may use it at once.

    The path `:memory:` stands for a private temporary file that is deleted when the store is closed, or with the
    process. It is a real file because only a file gives readers a snapshot while somebody writes.
    """

    def __init__(self, path: str | Path, *, durability: str = "full", clock: Clock = system_clock) -> None:
        self.location = str(path)
        self._path = Path(path)
        self._drop_files: Callable[[], object] = lambda: None
        if self.location == ":memory:":
            folder, durability = tempfile.mkdtemp(prefix="wellworn-"), "off"
            self._path = Path(folder) / "memory.db"
            self._drop_files = weakref.finalize(self, _drop_folder, folder, os.getpid())
        self._connections = Connections(self._path, durability=durability, clock=clock)

    def transact(self) -> AbstractContextManager[Tx]:
        return _Transaction(self._connections.writing())

    def heads(self, partitions: Sequence[Partition]) -> list[Head | None]:
        found: dict[int, Head] = {}
        with self._connections.reading() as db:
            for start in range(0, len(partitions), MOST_HEADS):
                part = partitions[start : start + MOST_HEADS]
                values = [
                    value for partition in part for value in (partition.tenant, partition.layer, partition.layer_id)
                ]
                for place, no, seq in db.execute(_heads(len(part)), values):
                    found[start + place] = Head(partition_no=no, seq=seq)
        return [found.get(place) for place in range(len(partitions))]

    def delta(self, partition_no: int, since: int, *, after: int = 0, limit: int | None = None) -> Delta:
        with self._connections.snapshot() as db:
            head = db.execute("SELECT seq FROM partitions WHERE no = ?", (partition_no,)).fetchone()
            if head is None:
                return Delta(seq=0, rows=[], removed=[])
            query = _SLIM_CHANGED if since else _SLIM_ALL
            rows = list(
                map(Slim._make, db.execute(query, (partition_no, since, after, -1 if limit is None else limit)))
            )
            removed = db.execute(
                "SELECT entry FROM removed WHERE partition = ? AND seq > ?", (partition_no, since)
            ).fetchall()
        return Delta(seq=head[0], rows=rows, removed=[no for (no,) in removed])

    def read(self, nos: Sequence[int]) -> dict[int, Entry]:
        found: dict[int, Entry] = {}
        with self._connections.reading() as db:
            for part in in_parts(nos):
                rows = db.execute(
                    f"SELECT {SELECT_ENTRY}, e.no FROM entries e JOIN partitions s ON s.no = e.partition "
                    f"WHERE e.no IN ({marks(part)})",
                    tuple(part),
                )
                found.update((row[-1], entry_from(row[:-1])) for row in rows)
        return found

    def alive(self, nos: Sequence[int]) -> set[int]:
        with self._connections.reading() as db:
            return alive(db, nos)

    def get(self, partitions: Sequence[Partition], ids: Sequence[str]) -> dict[str, Entry]:
        with self._connections.reading() as db:
            return entries_by_id(db, partitions, ids)

    def where(self, ids: Sequence[str]) -> dict[str, Partition]:
        found: dict[str, Partition] = {}
        with self._connections.reading() as db:
            for part in in_parts(ids):
                rows = db.execute(
                    "SELECT e.id, s.tenant, s.layer, s.layer_id FROM entries e JOIN partitions s ON s.no = e.partition "
                    f"WHERE e.id IN ({marks(part)})",
                    tuple(part),
                )
                found.update(
                    (i, Partition(tenant=tenant, layer=layer, layer_id=name)) for i, tenant, layer, name in rows
                )
        return found

    def select(
        self, partitions: Sequence[Partition], selection: Selection, *, after: int = 0, limit: int = 100
    ) -> list[tuple[int, Entry]]:
        where, values = matching(selection)
        with self._connections.reading() as db:
            numbers = partition_nos(db, partitions)
            rows = db.execute(
                f"SELECT {SELECT_ENTRY}, e.no FROM entries e JOIN partitions s ON s.no = e.partition "
                f"WHERE e.partition IN ({marks(numbers)}) AND e.no > ?{where} ORDER BY e.no LIMIT ?",
                (*numbers, after, *values, limit),
            ).fetchall()
        return [(row[-1], entry_from(row[:-1])) for row in rows]

    def tagged(self, partition_no: int, tags: Sequence[str]) -> set[int]:
        where, values = matching(Selection(tags=tags))
        with self._connections.reading() as db:
            rows = db.execute(f"SELECT e.no FROM entries e WHERE e.partition = ?{where}", (partition_no, *values))
            return {no for (no,) in rows}

    def in_session(self, partition_no: int, session_id: str) -> set[int]:
        with self._connections.reading() as db:
            rows = db.execute(
                "SELECT no FROM entries WHERE partition = ? AND session_id = ?", (partition_no, session_id)
            )
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
            Link(
                source=source,
                target=target,
                type=type_,
                confidence=confidence,
                automatic=bool(automatic),
                created_at=from_micros(created_at),
            )
            for source, target, type_, confidence, automatic, created_at in sorted(found)
        ]

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
                FROM replaced r JOIN entries e ON e.no = r.entry JOIN partitions s ON s.no = e.partition
                WHERE e.id = ? ORDER BY r.no
                """,
                (entry_id,),
            ).fetchall()
        return [
            Replaced(
                entry=entry_of_snapshot(snapshot, Partition(tenant=tenant, layer=layer, layer_id=layer_id)),
                change=change,
                changed_at=from_micros(changed_at),
            )
            for snapshot, change, changed_at, tenant, layer, layer_id in rows
        ]

    def turns(self, partition: Partition, session_id: str) -> list[Turn]:
        with self._connections.reading() as db:
            rows = db.execute(
                """
                SELECT t.number, t.role, t.text, t.at, t.speaker, e.id
                FROM turns t JOIN sessions n ON n.no = t.session LEFT JOIN entries e ON e.no = t.entry
                WHERE n.partition = ? AND n.session_id = ? ORDER BY t.number
                """,
                (partition_no_of(db, partition), session_id),
            ).fetchall()
        return [
            Turn(
                session_id=session_id,
                number=number,
                role=role,
                text=text,
                at=from_micros(at),
                speaker=speaker,
                entry_id=entry_id,
            )
            for number, role, text, at, speaker, entry_id in rows
        ]

    def sessions(self, partition: Partition) -> list[str]:
        with self._connections.reading() as db:
            rows = db.execute(
                "SELECT session_id FROM sessions WHERE partition = ? ORDER BY no", (partition_no_of(db, partition),)
            )
            return [session_id for (session_id,) in rows]

    def partitions(self, tenant: str | None = None, *, layer: Layer | None = None, prefix: str = "") -> list[Partition]:
        where, values = naming(tenant, layer, prefix)
        with self._connections.reading() as db:
            rows = db.execute(f"SELECT tenant, layer, layer_id FROM partitions {where} ORDER BY no", values).fetchall()
        return [Partition(tenant=tenant_, layer=layer, layer_id=layer_id) for tenant_, layer, layer_id in rows]

    def counts(self, partitions: Sequence[Partition]) -> dict[str, int]:
        with self._connections.snapshot() as db:
            numbers = partition_nos(db, partitions)
            here = f"IN ({marks(numbers)})"
            mine = f"IN (SELECT no FROM entries WHERE partition {here})"
            queries = {
                "entries": f"SELECT count(*) FROM entries WHERE partition {here}",
                "vectors": f"SELECT count(vector) FROM index_records WHERE partition {here}",
                "links": f"SELECT count(*) FROM links WHERE source {mine}",
                "versions": f"SELECT count(*) FROM replaced WHERE entry {mine}",
                "sessions": f"SELECT count(*) FROM sessions WHERE partition {here}",
                "turns": f"SELECT count(*) FROM turns WHERE session IN (SELECT no FROM sessions WHERE partition {here})",
            }
            counted = {name: int(db.execute(query, numbers).fetchone()[0]) for name, query in queries.items()}
            for column in ("kind", "state"):
                rows = db.execute(
                    f"SELECT {column}, count(*) FROM entries WHERE partition {here} GROUP BY 1 ORDER BY 1", numbers
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

    def recent_outcomes(self, partition: Partition, *, recalls: int, after: int = 0) -> list[LoggedOutcome]:
        with self._connections.snapshot() as db:
            return learning_log.recent_outcomes(db, partition, recalls, after)

    def outcomes(
        self, tenant: str, *, partition: Partition | None = None, after: int = 0, limit: int = 1000
    ) -> list[LoggedOutcome]:
        with self._connections.snapshot() as db:
            return learning_log.outcomes(db, tenant, partition, after, limit)

    def policy(self, tenant: str, partition: Partition | None, *, profile: str = "default") -> str | None:
        with self._connections.reading() as db:
            return learning_log.policy(db, tenant, partition, profile)

    def policies(self, partition: Partition, *, profile: str = "default") -> tuple[str | None, str | None]:
        with self._connections.reading() as db:
            return learning_log.policies(db, partition, profile)

    def spent(
        self, tenant: str | None, *, since: datetime | None = None, session: str | None = None, by: Sequence[str] = ()
    ) -> list[Spent]:
        with self._connections.reading() as db:
            return calls.spent(db, tenant, since=since, session=session, by=checked_by(by))

    def jobs(
        self,
        *,
        tenant: str | None = None,
        partition: Partition | None = None,
        states: Sequence[str] | None = None,
        kinds: Sequence[str] | None = None,
        limit: int = 100,
    ) -> list[Job]:
        with self._connections.reading() as db:
            return jobs.listed(db, tenant=tenant, partition=partition, states=states, kinds=kinds, limit=limit)

    def find_job(self, partition: Partition, kind: str, key: str) -> Job | None:
        with self._connections.reading() as db:
            return jobs.by_key(db, partition, kind, key)

    def record(self, partition: Partition, kind: str, key: str) -> Record | None:
        with self._connections.reading() as db:
            return records.by_key(db, partition, kind, key)

    def bodies(self, partition: Partition, kind: str, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
        with self._connections.reading() as db:
            return records.bodies(db, partition, kind, keys)

    def records(
        self,
        *,
        tenant: str | None = None,
        partition: Partition | None = None,
        kinds: Sequence[str] | None = None,
        states: Sequence[str] | None = None,
        limit: int = 100,
    ) -> list[Record]:
        with self._connections.reading() as db:
            return records.listed(db, tenant=tenant, partition=partition, kinds=kinds, states=states, limit=limit)

    def session(self, partition: Partition, session_id: str) -> SessionHead | None:
        with self._connections.reading() as db:
            return sessions.head(db, partition, session_id)

    def idle_sessions(self, before: datetime, *, tenant: str | None = None, limit: int = 100) -> list[SessionHead]:
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
                f"SELECT {SELECT_ENTRY}, e.no FROM entries e JOIN partitions s ON s.no = e.partition "
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
        self._drop_files()


def _drop_folder(folder: str, pid: int) -> None:
    """Delete a temporary folder, in the process that made it: a forked child leaves it to its parent."""
    if os.getpid() == pid:
        shutil.rmtree(folder, ignore_errors=True)


class _Transaction:
    """A write transaction as the port knows it."""

    def __init__(self, writing: AbstractContextManager[sqlite3.Connection]) -> None:
        self._writing = writing

    def __enter__(self) -> Tx:
        return SqliteTx(self._writing.__enter__())

    def __exit__(
        self, type_: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return self._writing.__exit__(type_, error, trace)
