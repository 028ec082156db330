"""One write transaction on the SQLite file: the `Tx` port.

Names are turned into numbers once in a transaction; the partition's count is raised once, at its first change.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace as replace_fields
from datetime import datetime
from typing import Any

from wellworn.core.clock import to_micros
from wellworn.core.errors import StoreError
from wellworn.core.locks import process_runs
from wellworn.core.values import Entry, Link, Partition, Turn, filled
from wellworn.store.damage import Damage
from wellworn.store.port import (
    EmbeddingModel,
    IndexRecord,
    Neighbour,
    NewEntry,
    Record,
    RecordFilter,
    Removed,
    Replaced,
    Selection,
    Tx,
    Vector,
)
from wellworn.store.rows import ENTRY_COLUMNS, entry_row, index_row, snapshot_of, update_of, vector_blob
from wellworn.store.sqlite import records
from wellworn.store.sqlite.reader import BEING_REMOVED, HIDDEN, SqliteReader
from wellworn.store.sqlite.sql import fetched, in_list

SLICE = 1_000
"""Rows that are removed at a time from a hidden partition."""
MOST_ALIKE = 3
"""Entries added in a transaction that are held for each sketch."""
MOST_JOINED = 500
"""Row numbers that are looked up in one join."""
_THIS_LIFE = secrets.token_hex(8)
"""Tells this process from an earlier one of the same number."""
_INSERT_ENTRY = (
    f"INSERT INTO entries (partition, seq, index_seq, {', '.join(ENTRY_COLUMNS)}) "
    f"VALUES ({', '.join('?' * (len(ENTRY_COLUMNS) + 3))})"
)
_UPDATE_ENTRY = f"UPDATE entries SET seq = ?, {', '.join(f'{column} = ?' for column in ENTRY_COLUMNS)} WHERE no = ?"
_INSERT_INDEX = """
INSERT INTO index_records (entry, partition, near_a, near_b, length, chars, traits, speaker, terms, counts, vector)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_PUT_INDEX = """
INSERT INTO index_records (entry, partition, near_a, near_b, length, chars, traits, speaker, terms, counts)
SELECT no, partition, ?, ?, ?, ?, ?, ?, ?, ? FROM entries WHERE no = ?
ON CONFLICT (entry) DO UPDATE SET near_a = excluded.near_a, near_b = excluded.near_b, length = excluded.length,
  chars = excluded.chars, traits = excluded.traits, speaker = excluded.speaker, terms = excluded.terms,
  counts = excluded.counts
"""
_INSERT_LINK = """
INSERT INTO links VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET automatic = 0, confidence = excluded.confidence,
  created_at = excluded.created_at WHERE automatic = 1 AND excluded.automatic = 0
"""
_HANGING_ON = """
SELECT (SELECT count(*) FROM index_records WHERE entry = ?1),
       (SELECT count(vector) FROM index_records WHERE entry = ?1)
         + (SELECT count(*) FROM new_vectors WHERE entry = ?1),
       (SELECT count(*) FROM links WHERE source = ?1) + (SELECT count(*) FROM links WHERE target = ?1),
       (SELECT count(*) FROM replaced WHERE entry = ?1)
"""


class SqliteTx(SqliteReader, Tx):
    """Writes of one transaction, and reads that see them."""

    def __init__(self, connection: sqlite3.Connection, damage: Damage) -> None:
        self._db = connection
        self.damage = damage
        self._here = nullcontext(connection)
        self._numbers: dict[Partition, int] = {}
        self._seqs: dict[int, int] = {}
        self._nos: dict[str, tuple[int, int]] = {}
        """Row number and number of the partition of entries that were read or written, by id."""
        self._partition_of: dict[int, int] = {}
        self._latest: dict[Partition, Neighbour] = {}
        self._sketched: dict[tuple[int, int, int], list[tuple[int, Neighbour]]] = {}
        """The latest entries added here that can be linked to, by partition, sketch and its place; see `_near`."""
        self._current: EmbeddingModel | None = None

    def _reading(self, *, snapshot: bool = False) -> AbstractContextManager[sqlite3.Connection]:
        return self._here

    def _met(self, entry_id: str, no: int, partition_no: int) -> None:
        self._nos[entry_id] = (no, partition_no)

    def _number(self, db: sqlite3.Connection, partition: Partition) -> int:
        number = self._numbers.get(partition)
        if number is None:
            number = super()._number(db, partition)
            if number >= 0:
                self._numbers[partition] = number
        return number

    def _partition_no(self, partition: Partition) -> int:
        """The partition's number; made when new."""
        number = self._number(self._db, partition)
        if number < 0:
            made = self._db.execute(
                "INSERT INTO partitions (tenant, layer, layer_id) VALUES (?, ?, ?)",
                (partition.tenant, partition.layer, partition.layer_id),
            ).lastrowid
            assert made is not None  # noqa: S101  an INSERT always has one
            number = self._numbers[partition] = made
        return number

    def _seq(self, partition_no: int) -> int:
        """The count that this transaction's changes on the partition carry."""
        seq = self._seqs.get(partition_no)
        if seq is None:
            (seq,) = self._db.execute(
                "UPDATE partitions SET seq = seq + 1 WHERE no = ? RETURNING seq", (partition_no,)
            ).fetchone()
            self._seqs[partition_no] = seq
        return seq

    def _place_of(self, entry_id: str) -> tuple[int, int] | None:
        """Row number and number of the partition of an entry."""
        place = self._nos.get(entry_id)
        if place is None:
            place = self._db.execute("SELECT no, partition FROM entries WHERE id = ?", (entry_id,)).fetchone()
            if place is not None:
                self._nos[entry_id] = place
        return place

    # -- entries -------------------------------------------------------------------------------------------------

    def neighbours(
        self,
        partition: Partition,
        *,
        session_id: str | None = None,
        tags: Sequence[str] | None = None,
        shared: int = 1,
        near: tuple[int, int] | None = None,
        limit: int = 1,
    ) -> list[Neighbour]:
        if limit == 1 and session_id is None and tags is None and near is None and partition in self._latest:
            return [self._latest[partition]]
        return super().neighbours(partition, session_id=session_id, tags=tags, shared=shared, near=near, limit=limit)

    def add(self, new: NewEntry) -> None:
        entry = new.entry
        self._check_width(new.vector)
        partition_no = self._partition_no(entry.partition)
        seq = self._seq(partition_no)
        no = self._db.execute(_INSERT_ENTRY, (partition_no, seq, seq, *entry_row(entry))).lastrowid
        assert no is not None  # noqa: S101  an INSERT always has one
        self._met(entry.id, no, partition_no)
        if entry.state in ("active", "flagged"):
            known = filled(Neighbour, id=entry.id, at=entry.at, tags=[*entry.tags], index=new.index)
            self._latest[entry.partition] = known
            for place, sketch in enumerate(new.index.near):
                alike = self._sketched.setdefault((partition_no, place, sketch), [])
                alike.append((no, known))
                del alike[:-MOST_ALIKE]
        self._db.execute(_INSERT_INDEX, (no, partition_no, *index_row(new.index, new.vector)))
        self._tag(no, partition_no, entry.tags)
        for old in new.history:
            self._keep_replaced(no, old)

    def _near(self, db: sqlite3.Connection, partition_no: int, near: tuple[int, int], limit: int) -> list[Neighbour]:
        """Look-alikes come in batches: once enough of them were added here, nothing older need be read."""
        keys = [(partition_no, place, sketch) for place, sketch in enumerate(near) if sketch]
        added = {no: one for key in keys for no, one in self._sketched.get(key, ())}
        if len(added) < limit:
            return super()._near(db, partition_no, near, limit)
        return [added[no] for no in sorted(added, reverse=True)[:limit]]

    def _forget_added(self) -> None:
        self._latest.clear()
        self._sketched.clear()

    def _tag(self, no: int, partition_no: int, tags: Sequence[str]) -> None:
        if tags:
            self._db.executemany("INSERT INTO entry_tags VALUES (?, ?, ?)", [(partition_no, tag, no) for tag in tags])

    def update(
        self,
        entry: Entry,
        *,
        change: str | None,
        index: IndexRecord | None = None,
        vector: Vector | None = None,
        before: Entry | None = None,
    ) -> None:
        self._check_width(vector)
        partition_no = self._partition_no(entry.partition)
        place = self._place_of(entry.id)
        if place is None or place[1] != partition_no:
            raise StoreError(f"no entry {entry.id!r} on this partition to change")
        no = place[0]
        if change is not None:
            old = before or self.get([entry.partition], [entry.id])[entry.id]
            self._keep_replaced(no, Replaced(entry=old, change=change, changed_at=entry.updated_at))
        self._forget_added()  # it may be among them, and no longer offered
        seq = self._seq(partition_no)
        if before is None:
            self._db.execute(_UPDATE_ENTRY, (seq, *entry_row(entry), no))
        else:
            values = update_of(before, entry)
            columns = "".join(f", {name} = ?" for name in values)
            self._db.execute(f"UPDATE entries SET seq = ?{columns} WHERE no = ?", (seq, *values.values(), no))
        if before is None or before.tags != entry.tags:
            self._db.execute("DELETE FROM entry_tags WHERE entry = ?", (no,))
            self._tag(no, partition_no, entry.tags)
        if index is not None:
            self._db.execute(_PUT_INDEX, (*index_row(index, None)[:-1], no))
        if index is not None or vector is not None:  # an old vector would be one of another text
            self._db.execute("UPDATE index_records SET vector = ? WHERE entry = ?", (vector_blob(vector), no))
            self._db.execute("UPDATE entries SET index_seq = ? WHERE no = ?", (seq, no))
            self._db.execute("DELETE FROM new_vectors WHERE entry = ?", (no,))

    def _keep_replaced(self, no: int, replaced: Replaced) -> None:
        self._db.execute(
            "INSERT INTO replaced (entry, change, changed_at, snapshot) VALUES (?, ?, ?, ?)",
            (no, replaced.change, to_micros(replaced.changed_at), snapshot_of(replaced.entry)),
        )

    def count_use(self, nos: Sequence[int], at: datetime) -> None:
        # Only these columns: writing all of a row would write all of its indexes too.
        moment = to_micros(at)
        there = self._partitions_of(nos)
        self._db.executemany(
            "UPDATE entries SET seq = ?, usage_count = usage_count + 1, updated_at = max(updated_at, ?) WHERE no = ?",
            [(self._seq(partition_no), moment, no) for no, partition_no in there.items()],
        )

    def alive(self, nos: Sequence[int]) -> set[int]:
        return set(self._partitions_of(nos))

    def _partitions_of(self, nos: Sequence[int]) -> dict[int, int]:
        """Those of the row numbers that are there, each with its partition; rows met in this transaction are known."""
        known = self._partition_of
        unknown = [no for no in dict.fromkeys(nos) if no not in known]
        if unknown:
            likely = next(iter(self._numbers.values()), -1)
            if len(unknown) <= MOST_JOINED and self._all_on(likely, unknown):
                known.update(dict.fromkeys(unknown, likely))
            else:
                values = list[Any]()
                where = f"no {in_list(unknown, values)} AND partition NOT IN {BEING_REMOVED}"
                known.update(self._db.execute(f"SELECT no, partition FROM entries WHERE {where}", values))
        return {no: known[no] for no in nos if no in known}

    def _all_on(self, partition_no: int, nos: Sequence[int]) -> bool:
        """Whether these rows are all on one partition, as most often. Its index is a few pages where the entries are
        many; and joined, not IN, for which SQLite would sort the numbers into a table first: a third of the time."""
        (count,) = self._db.execute(
            f"WITH asked (no) AS (VALUES {', '.join(['(?)'] * len(nos))}) SELECT count(*) FROM asked "
            "CROSS JOIN entries e INDEXED BY entries_by_partition ON e.partition = ? AND e.no = asked.no",
            (*nos, partition_no),
        ).fetchone()
        return bool(count == len(nos))

    def remove(self, partition: Partition, selection: Selection, *, turns: bool = False) -> Removed:
        partition_no = self._number(self._db, partition)
        if partition_no < 0:
            return Removed()
        said = self._remove_turns(partition, partition_no, selection) if turns else Removed()
        where, values = self._matching(self._db, [partition_no], selection)
        rows = fetched(self._db, f"SELECT e.no, e.id FROM entries e WHERE {where} ORDER BY e.no", values)
        if not rows:
            return said
        self._forget_added()
        seq = self._seq(partition_no)
        removed = self._remove_rows(rows)
        self._db.executemany("INSERT INTO removed VALUES (?, ?, ?)", [(partition_no, seq, no) for no, _ in rows])
        records.blank(self._db, partition.tenant, {no for no, _ in rows})
        told = Counter(said.records) + Counter(removed.records)
        return replace_fields(removed, records=told, turns=said.turns, sessions=said.sessions, cut=said.cut)

    def _remove_rows(self, rows: Sequence[tuple[int, str]]) -> Removed:
        """Entries by row number and id, with all that hangs on them."""
        hanging = [0, 0, 0, 0]
        gone = Counter[str]()
        for no, entry_id in rows:
            hanging = [a + b for a, b in zip(hanging, self._db.execute(_HANGING_ON, (no,)).fetchone(), strict=True)]
            gone += records.drop_counted(self._db, "no IN (SELECT record FROM record_entries WHERE entry = ?)", (no,))
            self._db.execute("DELETE FROM entries WHERE no = ?", (no,))
            self._nos.pop(entry_id, None)
            self._partition_of.pop(no, None)
        index_records, vectors, links, versions = hanging
        return Removed(
            ids=[entry_id for _, entry_id in rows],
            entries=len(rows),
            index_records=index_records,
            vectors=vectors,
            links=links,
            versions=versions,
            records=gone,
        )

    def hide_partition(self, partition: Partition) -> tuple[int, list[str]]:
        partition_no = self._number(self._db, partition)
        rows = self._db.execute("SELECT no, id FROM entries WHERE partition = ?", (partition_no,)).fetchall()
        self._db.execute(
            "UPDATE partitions SET tenant = ?, layer = ?, layer_id = no, seq = seq + 1 WHERE no = ?",
            (HIDDEN, remover(), partition_no),
        )
        records.blank(self._db, partition.tenant, {no for no, _ in rows}, but=partition_no)
        self._numbers.clear()
        self._seqs.clear()
        self._nos.clear()
        self._partition_of.clear()
        self._forget_added()
        return partition_no, [entry_id for _, entry_id in rows]

    def clear_slice(self, partition_no: int) -> Removed | None:
        """Remove a part of a hidden partition; None when nothing of it is left."""
        some = f"(SELECT no FROM {{}} LIMIT {SLICE})"
        rows = self._db.execute(
            f"SELECT no, id FROM entries WHERE partition = ? LIMIT {SLICE}", (partition_no,)
        ).fetchall()
        if rows:
            return self._remove_rows(rows)
        of_sessions = some.format("turns WHERE session IN (SELECT no FROM sessions WHERE partition = ?)")
        turns = self._db.execute(f"DELETE FROM turns WHERE no IN {of_sessions}", (partition_no,)).rowcount
        if turns:
            return Removed(turns=turns)
        of_partition = some.format("records WHERE partition = ?")
        told = records.drop_counted(self._db, f"no IN {of_partition}", (partition_no,))
        if told:
            return Removed(records=told)
        sessions = self._db.execute("DELETE FROM sessions WHERE partition = ?", (partition_no,)).rowcount
        gone = self._db.execute("DELETE FROM partitions WHERE no = ?", (partition_no,)).rowcount
        return Removed(sessions=sessions) if gone else None

    def _remove_turns(self, partition: Partition, partition_no: int, selection: Selection) -> Removed:
        """Turns, the sessions that have none left, and records that tell of those."""
        sessions, of_sessions = "SELECT no FROM sessions WHERE partition = ?", list[Any]([partition_no])
        if selection.session_id is not None:
            sessions += " AND session_id = ?"
            of_sessions.append(selection.session_id)
        condition, values = f"session IN ({sessions})", [*of_sessions]
        if selection.ids is not None:
            condition += f" AND entry IN (SELECT no FROM entries WHERE id {in_list(selection.ids, values)})"
        removed = self._db.execute(f"DELETE FROM turns WHERE {condition} RETURNING session", values).fetchall()
        emptied = self._db.execute(
            f"DELETE FROM sessions WHERE no IN ({sessions}) "
            "AND NOT EXISTS (SELECT 1 FROM turns WHERE turns.session = sessions.no) RETURNING session_id",
            of_sessions,
        ).fetchall()
        values = []
        left = self._db.execute(
            f"""
            UPDATE sessions SET turns = counted.next, reflected = min(reflected, counted.next)
            FROM (SELECT session, max(number) + 1 AS next FROM turns
                  WHERE session {in_list(sorted({no for (no,) in removed}), values)} GROUP BY session) counted
            WHERE counted.session = sessions.no RETURNING session_id
            """,
            values,
        ).fetchall()
        gone, values = [name for (name,) in emptied], [partition.tenant, partition_no]
        told = records.drop_counted(
            self._db, f"tenant = ? AND ifnull(partition, ?2) = ?2 AND session {in_list(gone, values)}", values
        )
        return Removed(turns=len(removed), sessions=len(gone), records=told, cut=[name for (name,) in left])

    def drop_partition(self, partition: Partition) -> Removed:
        partition_no = self._number(self._db, partition)
        removed = self.remove(partition, Selection(), turns=True)
        left = records.drop_counted(self._db, "partition = ?", (partition_no,))
        self._db.execute("DELETE FROM partitions WHERE no = ?", (partition_no,))
        self._numbers.pop(partition, None)
        self._seqs.pop(partition_no, None)
        return Removed(**{**vars(removed), "records": Counter(removed.records) + left})

    # -- index and vectors ---------------------------------------------------------------------------------------

    def model(self) -> EmbeddingModel | None:
        if self._current is None:
            self._current = super().model()
        return self._current

    def _check_width(self, vector: Vector | None) -> None:
        if vector is None:
            return
        model = self.model()
        if model is None:
            raise StoreError("the store has no embedding model, but a vector was given")
        _check_fit(vector, model)

    def put_index(
        self, rows: Sequence[tuple[int, IndexRecord | None, Vector | None]], *, model: EmbeddingModel | None = None
    ) -> int:
        serves = model is None or model == self.model()
        model_no = -1 if serves or model is None else self._model_no(model)
        kept = 0
        for no, index, vector in rows:
            row = self._db.execute("SELECT partition FROM entries WHERE no = ?", (no,)).fetchone()
            if row is None:
                continue
            kept += 1
            if index is not None:
                self._db.execute(_PUT_INDEX, (*index_row(index, None)[:-1], no))
            if vector is not None and not serves and model is not None:
                _check_fit(vector, model)
                values = (no, model_no, vector_blob(vector))
                self._db.execute("INSERT OR REPLACE INTO new_vectors VALUES (?, ?, ?)", values)
            elif vector is not None:
                self._check_width(vector)
                self._db.execute("UPDATE index_records SET vector = ? WHERE entry = ?", (vector_blob(vector), no))
            if index is not None or serves:
                seq = self._seq(row[0])
                self._db.execute("UPDATE entries SET seq = ?, index_seq = ? WHERE no = ?", (seq, seq, no))
        return kept

    def _model_no(self, model: EmbeddingModel) -> int:
        key = (model.name, model.width)
        self._db.execute("INSERT OR IGNORE INTO models (name, width) VALUES (?, ?)", key)
        return int(self._db.execute("SELECT no FROM models WHERE name = ? AND width = ?", key).fetchone()[0])

    def use_model(self, model: EmbeddingModel) -> None:
        model_no = self._model_no(model)
        if self.model() != model:
            self._db.execute(
                "UPDATE index_records SET vector = (SELECT vector FROM new_vectors v "
                "WHERE v.entry = index_records.entry AND v.model = ?)",
                (model_no,),
            )
            for (partition_no,) in self._db.execute("SELECT no FROM partitions").fetchall():
                seq = self._seq(partition_no)
                self._db.execute(
                    "UPDATE entries SET seq = ?, index_seq = ? WHERE partition = ?", (seq, seq, partition_no)
                )
        self._db.execute("DELETE FROM new_vectors")
        self._db.execute("DELETE FROM models WHERE no <> ?", (model_no,))
        self._db.execute("UPDATE models SET current = 1 WHERE no = ?", (model_no,))
        self._current = model

    # -- links ---------------------------------------------------------------------------------------------------

    def add_links(self, links: Sequence[Link]) -> int:
        if not links:
            return 0
        rows = [self._link_row(link) for link in links]
        if all(link.automatic for link in links):  # then nothing that is there changes
            before = self._db.total_changes
            self._db.executemany(_INSERT_LINK, rows)
            return self._db.total_changes - before
        return len({row[:3] for row in rows if self._db.execute(_INSERT_LINK, row).rowcount})

    def _link_row(self, link: Link) -> tuple[Any, ...]:
        if link.source == link.target:
            raise StoreError(f"entry {link.source!r} cannot be linked to itself")
        ends = [self._place_of(end) for end in (link.source, link.target)]
        if ends[0] is None or ends[1] is None:
            raise StoreError(f"no entry {(link.source if ends[0] is None else link.target)!r} to link")
        return (ends[0][0], ends[1][0], link.type, link.confidence, link.automatic, to_micros(link.created_at))

    def remove_link(self, source: str, target: str, type_: str) -> bool:
        removed = self._db.execute(
            "DELETE FROM links WHERE source = (SELECT no FROM entries WHERE id = ?) "
            "AND target = (SELECT no FROM entries WHERE id = ?) AND type = ?",
            (source, target, type_),
        )
        return removed.rowcount == 1

    # -- sessions ------------------------------------------------------------------------------------------------

    def add_turn(self, partition: Partition, turn: Turn, *, touched_at: datetime | None = None) -> None:
        (session,) = self._db.execute(
            """
            INSERT INTO sessions (partition, session_id, created_at, turns, touched_at) VALUES (?1, ?2, ?3, ?4, ?5)
            ON CONFLICT DO UPDATE SET turns = max(turns, ?4), touched_at = ?5, ended_at = NULL RETURNING no
            """,
            (
                self._partition_no(partition),
                turn.session_id,
                to_micros(turn.at),
                turn.number + 1,
                to_micros(touched_at or turn.at),
            ),
        ).fetchone()
        place = None if turn.entry_id is None else self._place_of(turn.entry_id)
        self._db.execute(
            "INSERT INTO turns (session, number, role, speaker, at, entry, text) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                session,
                turn.number,
                turn.role,
                turn.speaker,
                to_micros(turn.at),
                None if place is None else place[0],
                turn.text,
            ),
        )

    def mark_session(
        self, partition: Partition, session_id: str, *, reflected: int | None = None, ended_at: datetime | None = None
    ) -> None:
        there = self.session(partition, session_id)
        if there is None:
            raise StoreError(f"no session {session_id!r} on partition {partition} to mark")
        if reflected is not None and not 0 <= reflected <= there.turns:
            raise StoreError(
                f"session {session_id!r} has turns below {there.turns}, none below {reflected} to reflect on"
            )
        self._db.execute(
            "UPDATE sessions SET reflected = coalesce(?, reflected), ended_at = coalesce(?, ended_at) "
            "WHERE partition = ? AND session_id = ?",
            (
                reflected,
                None if ended_at is None else to_micros(ended_at),
                self._number(self._db, partition),
                session_id,
            ),
        )

    # -- records -------------------------------------------------------------------------------------------------

    def put_records(self, records_: Sequence[Record], *, replace: bool = True) -> list[int | None]:
        if len(records_) > 1 and not any(one.key or one.names or one.rows for one in records_):
            return [*records.put_lines(self._db, [self._home_of(one) for one in records_], records_)]
        return [records.put(self._db, self._home_of(one), one, only_new=not replace) for one in records_]

    def _home_of(self, record: Record) -> int | None:
        if not record.tenant:
            raise StoreError(f"{record.kind} {record.key!r} has neither a partition nor a tenant")
        return None if record.partition is None else self._partition_no(record.partition)

    def drop_records(self, wanted: RecordFilter) -> int:
        return records.drop(self._db, wanted)


def _check_fit(vector: Vector, model: EmbeddingModel) -> None:
    if vector.shape != (model.width,):
        raise StoreError(f"a vector of shape {vector.shape} does not fit {model.name} ({model.width})")


def remover() -> str:
    """Who removes a hidden partition: the process, as its row tells."""
    return f"{os.getpid()} {_THIS_LIFE}"


def is_left_behind(by: str, *, alone: bool) -> bool:
    """Whether whoever hid a partition is gone, so that somebody else must remove it; `alone`: this process has not opened
    the file elsewhere."""
    pid = by.partition(" ")[0]
    if not pid.isdigit():
        return True
    return alone or by != remover() if int(pid) == os.getpid() else not process_runs(int(pid))
