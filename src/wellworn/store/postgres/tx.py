"""One write transaction on the database: the `Tx` port.

Names are turned into numbers once in a transaction; the partition's count is raised once, at its first change. What
belongs together is written in one statement, because each one is a round trip.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace as replace_fields
from datetime import datetime
from typing import Any

from wellworn.core.clock import to_micros
from wellworn.core.errors import StoreError
from wellworn.core.values import Entry, Link, Partition, Turn
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
from wellworn.store.postgres import records
from wellworn.store.postgres.connection import Connection, ask
from wellworn.store.postgres.reader import BEING_REMOVED, SEALED, PostgresReader, name_of
from wellworn.store.postgres.seal import Sealer
from wellworn.store.postgres.vector import VectorBytes
from wellworn.store.rows import ENTRY_COLUMNS, entry_row, index_row, snapshot_of, update_of, vector_blob

SLICE = 1_000
"""Rows that are removed at a time from a hidden partition."""
_ADD = f"""
WITH e AS (
  INSERT INTO entries (partition, seq, index_seq, {", ".join(ENTRY_COLUMNS)})
  VALUES ({", ".join(["%s"] * (len(ENTRY_COLUMNS) + 3))}) RETURNING no, partition
), i AS (
  INSERT INTO index_records (entry, partition, near_a, near_b, length, chars, traits, speaker, terms, counts, vector)
  SELECT no, partition, %s, %s, %s, %s, %s, %s, %s, %s, %s FROM e
), t AS (
  INSERT INTO entry_tags SELECT e.partition, w.tag, e.no FROM e, unnest(%s::text[]) AS w (tag)
)
SELECT no FROM e
"""
_PUT_INDEX = """
INSERT INTO index_records (entry, partition, near_a, near_b, length, chars, traits, speaker, terms, counts)
SELECT no, partition, %s, %s, %s, %s, %s, %s, %s, %s FROM entries WHERE no = %s
ON CONFLICT (entry) DO UPDATE SET near_a = excluded.near_a, near_b = excluded.near_b, length = excluded.length,
  chars = excluded.chars, traits = excluded.traits, speaker = excluded.speaker, terms = excluded.terms,
  counts = excluded.counts
"""
_HANGING_ON = """
SELECT (SELECT count(*) FROM index_records WHERE entry = ANY(%(nos)s)),
       (SELECT count(vector) FROM index_records WHERE entry = ANY(%(nos)s))
         + (SELECT count(*) FROM new_vectors WHERE entry = ANY(%(nos)s)),
       (SELECT count(*) FROM links WHERE source = ANY(%(nos)s) OR target = ANY(%(nos)s)),
       (SELECT count(*) FROM replaced WHERE entry = ANY(%(nos)s))
"""


class PostgresTx(PostgresReader, Tx):
    """Writes of one transaction, and reads that see them."""

    def __init__(self, connection: Connection, damage: Damage, sealer: Sealer) -> None:
        self._db = connection
        self.sealer = sealer
        self.damage = damage
        self._here = nullcontext(connection)
        self._numbers: dict[Partition, int] = {}
        self._seqs: dict[int, int] = {}
        self._nos: dict[str, tuple[int, int]] = {}
        """Row number and number of the partition of entries that were read or written, by id."""
        self._latest: dict[Partition, Neighbour] = {}
        self._current: EmbeddingModel | None = None

    def _reading(self, *, snapshot: bool = False) -> AbstractContextManager[Connection]:
        return self._here

    def _met(self, entry_id: str, no: int, partition_no: int) -> None:
        self._nos[entry_id] = (no, partition_no)

    def _number(self, db: Connection, partition: Partition) -> int:
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
            made = "INSERT INTO partitions (tenant, layer, layer_id) VALUES (%s, %s, %s) RETURNING no"
            ((number,),) = ask(self._db, made, name_of(partition))
            self._numbers[partition] = number
        return number

    def _seq(self, partition_no: int) -> int:
        """The count that this transaction's changes on the partition carry."""
        seq = self._seqs.get(partition_no)
        if seq is None:
            raised = "UPDATE partitions SET seq = seq + 1 WHERE no = %s RETURNING seq"
            ((seq,),) = ask(self._db, raised, (partition_no,))
            self._seqs[partition_no] = seq
        return seq

    def _place_of(self, entry_id: str) -> tuple[int, int] | None:
        """Row number and number of the partition of an entry."""
        place = self._nos.get(entry_id)
        if place is None:
            rows = ask(self._db, "SELECT no, partition FROM entries WHERE id = %s", (entry_id,))
            if rows:
                place = self._nos[entry_id] = (rows[0][0], rows[0][1])
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
        values = (
            partition_no,
            seq,
            seq,
            *self._columns(entry).values(),
            *_index_row(new.index, new.vector),
            entry.tags,
        )
        ((no,),) = ask(self._db, _ADD, values)
        self._met(entry.id, no, partition_no)
        if entry.state in ("active", "flagged"):
            self._latest[entry.partition] = Neighbour(id=entry.id, at=entry.at, tags=[*entry.tags])
        for old in new.history:
            self._keep_replaced(no, old)

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
        self._latest.clear()  # it may be the latest, and no longer offered
        seq = self._seq(partition_no)
        values = self._columns(entry, before)
        values["seq"] = seq
        if index is not None or vector is not None:
            values["index_seq"] = seq
        columns = ", ".join(f"{name} = %s" for name in values)
        self._db.execute(f"UPDATE entries SET {columns} WHERE no = %s", (*values.values(), no))
        if before is None or before.tags != entry.tags:
            self._db.execute("DELETE FROM entry_tags WHERE entry = %s", (no,))
            tagged = "INSERT INTO entry_tags SELECT %s, unnest(%s::text[]), %s"
            self._db.execute(tagged, (partition_no, entry.tags, no))
        if index is not None:
            self._db.execute(_PUT_INDEX, (*_index_row(index, None)[:-1], no))
        if index is not None or vector is not None:  # an old vector would be one of another text
            self._db.execute("UPDATE index_records SET vector = %s WHERE entry = %s", (_vector(vector), no))
            self._db.execute("DELETE FROM new_vectors WHERE entry = %s", (no,))

    def _columns(self, entry: Entry, before: Entry | None = None) -> dict[str, Any]:
        """The values of an entry by column, or only those that have changed; texts are sealed."""
        values = dict(zip(ENTRY_COLUMNS, entry_row(entry), strict=True)) if before is None else update_of(before, entry)
        if self.sealer.on:
            values |= {name: self.sealer.seal(values[name]) for name in SEALED if name in values}
        return values

    def _keep_replaced(self, no: int, replaced: Replaced) -> None:
        self._db.execute(
            "INSERT INTO replaced (entry, change, changed_at, snapshot) VALUES (%s, %s, %s, %s)",
            (no, replaced.change, to_micros(replaced.changed_at), self.sealer.seal(snapshot_of(replaced.entry))),
        )

    def count_use(self, nos: Sequence[int], at: datetime) -> None:
        here = ask(
            self._db,
            f"SELECT DISTINCT partition FROM entries WHERE no = ANY(%s) AND partition NOT IN {BEING_REMOVED}",
            ([*nos],),
        )
        for (partition_no,) in here:
            self._db.execute(
                "UPDATE entries SET seq = %s, usage_count = usage_count + 1, updated_at = greatest(updated_at, %s) "
                "WHERE no = ANY(%s) AND partition = %s",
                (self._seq(partition_no), to_micros(at), [*nos], partition_no),
            )

    def remove(self, partition: Partition, selection: Selection, *, turns: bool = False) -> Removed:
        partition_no = self._number(self._db, partition)
        if partition_no < 0:
            return Removed()
        said = self._remove_turns(partition, partition_no, selection) if turns else Removed()
        values = list[Any]([partition_no])
        where = f"e.partition = %s AND {self._matching(selection, values)}"
        rows = ask(self._db, f"SELECT e.no, e.id FROM entries e WHERE {where} ORDER BY e.no", values)
        if not rows:
            return said
        self._latest.clear()
        seq, nos = self._seq(partition_no), [no for no, _ in rows]
        removed = self._remove_rows(rows)
        gone = "INSERT INTO removed SELECT %s, %s, unnest(%s::bigint[])"
        self._db.execute(gone, (partition_no, seq, nos))
        records.blank(self._db, partition.tenant, nos)
        told = Counter(said.records) + Counter(removed.records)
        return replace_fields(removed, records=told, turns=said.turns, sessions=said.sessions, cut=said.cut)

    def _remove_rows(self, rows: Sequence[tuple[Any, ...]]) -> Removed:
        """Entries by row number and id, with all that hangs on them."""
        nos = [no for no, _ in rows]
        hanging = self._db.execute(_HANGING_ON, {"nos": nos}).fetchall()
        of_them = "no IN (SELECT record FROM record_entries WHERE entry = ANY(%s))"
        gone = records.drop_counted(self._db, of_them, (nos,))
        self._db.execute("DELETE FROM entries WHERE no = ANY(%s)", (nos,))
        for _, entry_id in rows:
            self._nos.pop(entry_id, None)
        ((index_records, vectors, links, versions),) = hanging
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
        rows = ask(self._db, "SELECT no, id FROM entries WHERE partition = %s ORDER BY no", (partition_no,))
        self._db.execute("UPDATE partitions SET hidden = TRUE, seq = seq + 1 WHERE no = %s", (partition_no,))
        records.blank(self._db, partition.tenant, [no for no, _ in rows], but=partition_no)
        self._numbers.clear()
        self._seqs.clear()
        self._nos.clear()
        self._latest.clear()
        return partition_no, [entry_id for _, entry_id in rows]

    def clear_slice(self, partition_no: int) -> Removed | None:
        """Remove a part of a hidden partition; None when nothing of it is left."""
        some, of_it = f"LIMIT {SLICE}", (partition_no,)
        rows = ask(self._db, f"SELECT no, id FROM entries WHERE partition = %s {some}", of_it)
        if rows:
            return self._remove_rows(rows)
        told = "SELECT no FROM turns WHERE session IN (SELECT no FROM sessions WHERE partition = %s)"
        turns = self._db.execute(f"DELETE FROM turns WHERE no IN ({told} {some})", of_it).rowcount
        if turns:
            return Removed(turns=turns)
        gone = records.drop_counted(self._db, f"no IN (SELECT no FROM records WHERE partition = %s {some})", of_it)
        if gone:
            return Removed(records=gone)
        sessions = self._db.execute("DELETE FROM sessions WHERE partition = %s", of_it).rowcount
        last = self._db.execute("DELETE FROM partitions WHERE no = %s AND hidden", of_it).rowcount
        return Removed(sessions=sessions) if last else None

    def _remove_turns(self, partition: Partition, partition_no: int, selection: Selection) -> Removed:
        """Turns, the sessions that have none left, and records that tell of those."""
        sessions, of_sessions = "SELECT no FROM sessions WHERE partition = %s", list[Any]([partition_no])
        if selection.session_id is not None:
            sessions += " AND session_id = %s"
            of_sessions.append(selection.session_id)
        condition, values = f"session IN ({sessions})", [*of_sessions]
        if selection.ids is not None:
            condition += " AND entry IN (SELECT no FROM entries WHERE id = ANY(%s))"
            values.append([*selection.ids])
        removed = ask(self._db, f"DELETE FROM turns WHERE {condition} RETURNING session", values)
        emptied = ask(
            self._db,
            f"DELETE FROM sessions WHERE no IN ({sessions}) "
            "AND NOT EXISTS (SELECT 1 FROM turns WHERE turns.session = sessions.no) RETURNING session_id",
            of_sessions,
        )
        left = ask(
            self._db,
            """
            UPDATE sessions SET turns = counted.next, reflected = least(reflected, counted.next)
            FROM (SELECT session, max(number) + 1 AS next FROM turns WHERE session = ANY(%s) GROUP BY session) counted
            WHERE counted.session = sessions.no RETURNING session_id
            """,
            ([*{no for (no,) in removed}],),
        )
        gone = [name for (name,) in emptied]
        told = records.drop_counted(
            self._db,
            "tenant = %s AND coalesce(partition, %s) = %s AND session = ANY(%s)",
            (partition.tenant, partition_no, partition_no, gone),
        )
        return Removed(turns=len(removed), sessions=len(gone), records=told, cut=[name for (name,) in left])

    def drop_partition(self, partition: Partition) -> Removed:
        partition_no = self._number(self._db, partition)
        removed = self.remove(partition, Selection(), turns=True)
        left = records.drop_counted(self._db, "partition = %s", (partition_no,))
        self._db.execute("DELETE FROM partitions WHERE no = %s", (partition_no,))
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
        places = dict(ask(self._db, "SELECT no, partition FROM entries WHERE no = ANY(%s)", ([no for no, *_ in rows],)))
        kept = 0
        for no, index, vector in rows:
            if no not in places:
                continue
            kept += 1
            if index is not None:
                self._db.execute(_PUT_INDEX, (*_index_row(index, None)[:-1], no))
            if vector is not None and not serves and model is not None:
                _check_fit(vector, model)
                self._db.execute(
                    "INSERT INTO new_vectors VALUES (%s, %s, %s) "
                    "ON CONFLICT (entry) DO UPDATE SET model = excluded.model, vector = excluded.vector",
                    (no, model_no, _vector(vector)),
                )
            elif vector is not None:
                self._check_width(vector)
                self._db.execute("UPDATE index_records SET vector = %s WHERE entry = %s", (_vector(vector), no))
            if index is not None or serves:
                seq = self._seq(places[no])
                self._db.execute("UPDATE entries SET seq = %s, index_seq = %s WHERE no = %s", (seq, seq, no))
        return kept

    def _model_no(self, model: EmbeddingModel) -> int:
        self._db.execute("INSERT INTO models (name, width) VALUES (%s, %s) ON CONFLICT DO NOTHING", model.key)
        ((number,),) = ask(self._db, "SELECT no FROM models WHERE name = %s AND width = %s", model.key)
        return int(number)

    def use_model(self, model: EmbeddingModel) -> None:
        model_no = self._model_no(model)
        if self.model() != model:
            self._db.execute(
                "UPDATE index_records SET vector = (SELECT vector FROM new_vectors v "
                "WHERE v.entry = index_records.entry AND v.model = %s)",
                (model_no,),
            )
            for (partition_no,) in ask(self._db, "SELECT no FROM partitions"):
                seq = self._seq(partition_no)
                self._db.execute(
                    "UPDATE entries SET seq = %s, index_seq = %s WHERE partition = %s", (seq, seq, partition_no)
                )
        self._db.execute("DELETE FROM new_vectors")
        self._db.execute("DELETE FROM models WHERE no <> %s", (model_no,))
        self._db.execute("UPDATE models SET current = TRUE WHERE no = %s", (model_no,))
        self._current = model

    # -- links ---------------------------------------------------------------------------------------------------

    def add_links(self, links: Sequence[Link]) -> int:
        return len({(link.source, link.target, link.type) for link in links if self._add_link(link)})

    def _add_link(self, link: Link) -> int:
        if link.source == link.target:
            raise StoreError(f"entry {link.source!r} cannot be linked to itself")
        ends = [self._place_of(end) for end in (link.source, link.target)]
        if ends[0] is None or ends[1] is None:
            raise StoreError(f"no entry {(link.source if ends[0] is None else link.target)!r} to link")
        return self._db.execute(
            "INSERT INTO links VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (source, target, type) DO UPDATE SET "
            "automatic = 0, confidence = excluded.confidence, created_at = excluded.created_at "
            "WHERE links.automatic = 1 AND excluded.automatic = 0",
            (ends[0][0], ends[1][0], link.type, link.confidence, int(link.automatic), to_micros(link.created_at)),
        ).rowcount

    def remove_link(self, source: str, target: str, type_: str) -> bool:
        removed = self._db.execute(
            "DELETE FROM links WHERE source = (SELECT no FROM entries WHERE id = %s) "
            "AND target = (SELECT no FROM entries WHERE id = %s) AND type = %s",
            (source, target, type_),
        )
        return removed.rowcount == 1

    # -- sessions ------------------------------------------------------------------------------------------------

    def add_turn(self, partition: Partition, turn: Turn, *, touched_at: datetime | None = None) -> None:
        place = None if turn.entry_id is None else self._place_of(turn.entry_id)
        self._db.execute(
            """
            WITH n AS (
              INSERT INTO sessions (partition, session_id, created_at, turns, touched_at) VALUES (%s, %s, %s, %s, %s)
              ON CONFLICT (partition, session_id) DO UPDATE SET turns = greatest(sessions.turns, excluded.turns),
                touched_at = excluded.touched_at, ended_at = NULL
              RETURNING no
            )
            INSERT INTO turns (session, number, role, speaker, at, entry, text) SELECT no, %s, %s, %s, %s, %s, %s FROM n
            """,
            (
                self._partition_no(partition),
                turn.session_id,
                to_micros(turn.at),
                turn.number + 1,
                to_micros(touched_at or turn.at),
                turn.number,
                turn.role,
                self.sealer.seal(turn.speaker),
                to_micros(turn.at),
                None if place is None else place[0],
                self.sealer.seal(turn.text),
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
            "UPDATE sessions SET reflected = coalesce(%s, reflected), ended_at = coalesce(%s, ended_at) "
            "WHERE partition = %s AND session_id = %s",
            (
                reflected,
                None if ended_at is None else to_micros(ended_at),
                self._number(self._db, partition),
                session_id,
            ),
        )

    # -- records -------------------------------------------------------------------------------------------------

    def put_records(self, records_: Sequence[Record], *, replace: bool = True) -> list[int | None]:
        return [self._put_record(record, replace) for record in records_]

    def _put_record(self, record: Record, replace: bool) -> int | None:
        if not record.tenant:
            raise StoreError(f"{record.kind} {record.key!r} has neither a partition nor a tenant")
        partition_no = None if record.partition is None else self._partition_no(record.partition)
        return records.put(self._db, partition_no, record, self.sealer, only_new=not replace)

    def drop_records(self, wanted: RecordFilter) -> int:
        return records.drop(self._db, wanted)


def _check_fit(vector: Vector, model: EmbeddingModel) -> None:
    if vector.shape != (model.width,):
        raise StoreError(f"a vector of shape {vector.shape} does not fit {model.name} ({model.width})")


def _vector(vector: Vector | None) -> VectorBytes | None:
    blob = vector_blob(vector)
    return None if blob is None else VectorBytes(blob)


def _index_row(index: IndexRecord, vector: Vector | None) -> tuple[Any, ...]:
    """As in every other store, with the vector as pgvector takes it."""
    return (*index_row(index, None)[:-1], _vector(vector))
