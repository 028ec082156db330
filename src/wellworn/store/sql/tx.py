"""One write transaction on a store that speaks SQL: the `Tx` port.

Names are turned into numbers once in a transaction; the partition's count is raised once, at its first change.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import Any

from wellworn.core.clock import to_micros
from wellworn.core.errors import StoreError
from wellworn.core.values import Entry, Link, Partition, Turn, altered, filled
from wellworn.store.convert import ENTRY_COLUMNS, SEALED_COLUMNS, entry_row, index_row, snapshot_of, update_of
from wellworn.store.damage import Damage
from wellworn.store.port import (
    NO_PARTS,
    TELLING,
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
from wellworn.store.sql import records
from wellworn.store.sql.db import HIDDEN, Db, Row, name_of, remover
from wellworn.store.sql.reader import NEAR, WITH_SKETCH, SqlReader, matching

SLICE = 1_000
"""Rows that are removed at a time from a hidden partition."""
MOST_ALIKE = 3
"""Entries that a transaction holds for each sketch."""
_PUT_INDEX = """
INSERT INTO index_records (entry, partition, near_a, near_b, length, chars, traits, speaker, terms, counts)
SELECT no, partition, ?, ?, ?, ?, ?, ?, ?, ? FROM entries WHERE no = ?
ON CONFLICT (entry) DO UPDATE SET near_a = excluded.near_a, near_b = excluded.near_b, length = excluded.length,
  chars = excluded.chars, traits = excluded.traits, speaker = excluded.speaker, terms = excluded.terms,
  counts = excluded.counts
"""
_PUT_VECTOR = "UPDATE index_records SET vector = ?, parts = ? WHERE entry = ?"
_PUT_NEW_VECTOR = """
INSERT INTO new_vectors (entry, model, vector, parts) VALUES (?, ?, ?, ?)
ON CONFLICT (entry) DO UPDATE SET model = excluded.model, vector = excluded.vector, parts = excluded.parts
"""
_INSERT_LINK = """
INSERT INTO links VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (source, target, type) DO UPDATE SET automatic = 0,
  confidence = excluded.confidence, created_at = excluded.created_at WHERE links.automatic = 1 AND excluded.automatic = 0
"""
_HANGING_ON = """
SELECT (SELECT count(*) FROM index_records WHERE entry {0}),
       (SELECT count(vector) FROM index_records WHERE entry {0}) + (SELECT count(*) FROM new_vectors WHERE entry {0}),
       (SELECT count(*) FROM links WHERE source {0} OR target {0}),
       (SELECT count(*) FROM replaced WHERE entry {0})
"""
_HIDE = "UPDATE partitions SET layer = '', layer_id = ?, seq = seq + 1 WHERE no = ?"
_COUNT_USE = """
UPDATE entries SET seq = ?, usage_count = usage_count + 1, updated_at = CASE WHEN updated_at < ? THEN ? ELSE updated_at END
WHERE no = ?
"""
_TOUCH_SESSION = """
INSERT INTO sessions (partition, session_id, created_at, turns, touched_at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (partition, session_id) DO UPDATE SET touched_at = excluded.touched_at, ended_at = NULL,
  turns = CASE WHEN sessions.turns < excluded.turns THEN excluded.turns ELSE sessions.turns END
RETURNING no
"""
_RECOUNT_SESSIONS = """
UPDATE sessions SET turns = counted.next,
  reflected = CASE WHEN reflected < counted.next THEN reflected ELSE counted.next END
FROM (SELECT session, max(number) + 1 AS next FROM turns WHERE session {} GROUP BY session) counted
WHERE counted.session = sessions.no RETURNING session_id
"""


_NO_SKETCH = ((0, 0), (1, 0))
"""What a text has that is like no other, by place."""


class _Known:
    """What a transaction knows of the entries of one partition."""

    def __init__(self) -> None:
        self.latest: Neighbour | None = None
        self.alike: dict[tuple[int, int], list[tuple[int, Neighbour]]] = {}
        """The latest entries that can be linked to, by place of the sketch and sketch: those that were added here, and
        those that were there when entries were expected."""
        self.absent: set[tuple[int, int] | str] = {*_NO_SKETCH}
        """Sketches by place, and content hashes, that no entry has; see `expect`. Of sketches: none but those that are
        in `alike`."""


class SqlTx(SqlReader, Tx):
    """Writes of one transaction, and reads that see them."""

    def __init__(self, db: Db, damage: Damage, tenant: str | None = None) -> None:
        self._db = db
        self.tenant = tenant
        self.damage = damage
        self._here = nullcontext(db)
        self._numbers: dict[Partition, int] = {}
        self._seqs: dict[int, int] = {}
        self._nos: dict[str, tuple[int, int]] = {}
        """Row number and number of the partition of entries that were read or written, by id."""
        self._partition_of: dict[int, int] = {}
        self._known: defaultdict[Partition, _Known] = defaultdict(_Known)
        self._current: EmbeddingModel | None = None
        self._beside_no: int | None = None
        """The number of the model that `beside` names; -1: it has none."""

    def _reading(self, *, snapshot: bool = False) -> AbstractContextManager[Db]:
        return self._here

    def _met(self, entry_id: str, no: int, partition_no: int) -> None:
        self._nos[entry_id] = (no, partition_no)

    def _number(self, db: Db, partition: Partition) -> int:
        number = self._numbers.get(partition)
        if number is None:
            number = super()._number(db, partition)
            if number >= 0:
                self._numbers[partition] = number
        return number

    def _number_of(self, db: Db, partition: Partition, values: list[Any]) -> str:
        values.append(self._number(db, partition))
        return "?"

    def _partition_no(self, partition: Partition) -> int:
        """The partition's number; made when new."""
        self._check_tenant(partition.tenant)
        number = self._number(self._db, partition)
        if number < 0:
            made = "INSERT INTO partitions (tenant, layer, layer_id) VALUES (?, ?, ?) RETURNING no"
            ((number,),) = self._db.ask(made, name_of(partition))
            self._numbers[partition] = number
        return number

    def _check_tenant(self, tenant: str) -> None:
        if self.tenant not in (None, tenant):
            raise StoreError(f"a transaction of tenant {self.tenant!r} cannot write to {tenant!r}")

    def _seq(self, partition_no: int) -> int:
        """The count that this transaction's changes on the partition carry."""
        seq = self._seqs.get(partition_no)
        if seq is None:
            ((seq,),) = self._db.ask("UPDATE partitions SET seq = seq + 1 WHERE no = ? RETURNING seq", (partition_no,))
            self._seqs[partition_no] = seq
        return seq

    def _place_of(self, entry_id: str) -> tuple[int, int] | None:
        """Row number and number of the partition of an entry."""
        place = self._nos.get(entry_id)
        if place is None:
            for no, partition_no in self._db.ask("SELECT no, partition FROM entries WHERE id = ?", (entry_id,)):
                place = self._nos[entry_id] = (no, partition_no)
        return place

    # -- entries -------------------------------------------------------------------------------------------------

    def expect(self, records: Sequence[NewEntry]) -> None:
        self._db.expect(len(records))
        by_partition: dict[Partition, list[NewEntry]] = {}
        for new in records:
            by_partition.setdefault(new.entry.partition, []).append(new)
        for partition, mine in by_partition.items():
            partition_no, known = self._number(self._db, partition), self._known[partition]
            hashes = {new.entry.content_hash for new in mine}
            hashes -= self._there("entries", "content_hash", partition_no, hashes, "state IN ('active', 'flagged')")
            known.absent |= hashes
            alike: dict[tuple[int, int], list[int]] = {}
            for place, column in enumerate(("near_a", "near_b")):
                sketches = {new.index.near[place] for new in mine if new.entry.content_hash in hashes}
                known.absent.update((place, sketch) for sketch in sketches)
                shared = self._there("index_records", column, partition_no, sketches, f"{column} <> 0")
                alike |= {(place, sketch): nos for sketch, nos in self._latest(column, partition_no, shared).items()}
            found, values = {no for nos in alike.values() for no in nos}, list[Any]()
            rows = self._db.ask(f"{NEAR} WHERE e.no {self._db.among([*found], values)}", values) if found else []
            of_no = {self._nos[one.id][0]: one for one in self._neighbours(partition_no, rows)}
            for key, nos in alike.items():
                known.alike[key] = [(no, of_no[no]) for no in nos if no in of_no]

    def _latest(self, column: str, partition_no: int, sketches: set[int]) -> dict[int, list[int]]:
        """The latest entries that have each sketch, in the order they were added: few, however many there are."""
        if not sketches:
            return {}
        values = [partition_no] * MOST_ALIKE
        each = self._db.each([*sketches], values)
        wanted = ", ".join(f"({WITH_SKETCH.format(column, 'value', 1)} OFFSET {n})" for n in range(MOST_ALIKE))
        rows = self._db.ask(f"SELECT value, {wanted} FROM {each}", values)
        return {sketch: [no for no in reversed(nos) if no is not None] for sketch, *nos in rows}

    def _there(self, table: str, column: str, partition_no: int, wanted: set[Any], which: str) -> set[Any]:
        """Those of the values that a row of the partition has; looks at one row for each."""
        if not wanted:
            return wanted
        values: list[Any] = []
        asked = f"SELECT value FROM {self._db.each([*wanted], values)} WHERE EXISTS "
        # The offset keeps Postgres from a join, which reads the whole partition while its statistics are old.
        there = f"(SELECT 1 FROM {table} WHERE partition = ? AND {column} = value AND {which} LIMIT 1 OFFSET 0)"
        return {value for (value,) in self._db.ask(asked + there, [*values, partition_no])}

    def _now_there(self, entry: Entry, index: IndexRecord | None) -> None:
        absent = self._known[entry.partition].absent
        absent.discard(entry.content_hash)
        if index is not None:
            absent.difference_update(enumerate(index.near))
            absent.update(_NO_SKETCH)

    def find_same(self, partition: Partition, content_hash: str) -> Entry | None:
        absent = content_hash in self._known[partition].absent
        return None if absent else super().find_same(partition, content_hash)

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
        known = self._known[partition]
        if limit == 1 and session_id is None and tags is None and near is None and known.latest is not None:
            return [known.latest]
        if near is not None:  # asking the store would send what waits: entries one by one
            added: dict[int, Neighbour] = {}
            for key in enumerate(near):
                added.update(known.alike.get(key, ()))
            if len(added) >= limit or (limit <= MOST_ALIKE and known.absent.issuperset(enumerate(near))):
                return [added[no] for no in sorted(added, reverse=True)[:limit]] if added else []
        return super().neighbours(partition, session_id=session_id, tags=tags, shared=shared, near=near, limit=limit)

    def add(self, new: NewEntry) -> None:
        entry, given = new.entry, new if self.beside is None else altered(new, vector=None, parts=None)
        self._check_width(given.vector)
        partition_no = self._partition_no(entry.partition)
        no = self._db.add_entry(partition_no, self._seq(partition_no), given)
        self._put_beside(no, new.vector, new.parts)
        self._met(entry.id, no, partition_no)
        if entry.state not in ("active", "flagged"):
            self._now_there(entry, new.index)
        else:
            known = self._known[entry.partition]
            known.absent.discard(entry.content_hash)
            known.latest = filled(Neighbour, id=entry.id, at=entry.at, tags=entry.tags, index=new.index)
            added = (no, known.latest)
            for sketch in enumerate(new.index.near):
                if sketch[1]:
                    alike = known.alike.setdefault(sketch, [])
                    alike.append(added)
                    del alike[:-MOST_ALIKE]
        for old in new.history:
            self._keep_replaced(no, old)

    def _forget_added(self) -> None:
        for known in self._known.values():
            known.absent.difference_update(known.alike)
            known.latest = None
            known.alike.clear()

    def update(
        self,
        entry: Entry,
        *,
        change: str | None,
        index: IndexRecord | None = None,
        vector: Vector | None = None,
        parts: bytes | None = None,
        before: Entry | None = None,
        history: Sequence[Replaced] | None = None,
    ) -> None:
        serving = (vector, parts) if self.beside is None else (None, None)
        self._check_width(serving[0])
        db, partition_no = self._db, self._partition_no(entry.partition)
        place = self._place_of(entry.id)
        if place is None or place[1] != partition_no:
            raise StoreError(f"no entry {entry.id!r} on this partition to change")
        no = place[0]
        if history is not None:
            db.run("DELETE FROM replaced WHERE entry = ?", (no,))
            for one in history:
                self._keep_replaced(no, one)
        if change is not None:
            old = before or self.get([entry.partition], [entry.id])[entry.id]
            self._keep_replaced(no, Replaced(entry=old, change=change, changed_at=entry.updated_at))
        self._forget_added()  # it may be among them, and no longer offered
        self._now_there(entry, index)
        values = dict(zip(ENTRY_COLUMNS, entry_row(entry), strict=True)) if before is None else update_of(before, entry)
        values |= {name: db.seal(values[name]) for name in SEALED_COLUMNS if name in values}
        values["seq"] = self._seq(partition_no)
        if index is not None or vector is not None:
            values["index_seq"] = values["seq"]
        columns = ", ".join(f"{name} = ?" for name in values)
        db.run(f"UPDATE entries SET {columns} WHERE no = ?", (*values.values(), no))
        if before is None or before.tags != entry.tags:
            db.run("DELETE FROM entry_tags WHERE entry = ?", (no,))
            db.many("INSERT INTO entry_tags VALUES (?, ?, ?)", [(partition_no, tag, no) for tag in entry.tags])
        if index is not None:
            db.run(_PUT_INDEX, (*index_row(index, None)[:-1], no))
        if index is not None or vector is not None:  # an old vector would be one of another text
            db.run(_PUT_VECTOR, (db.vector(serving[0]), serving[1], no))
            db.run("DELETE FROM new_vectors WHERE entry = ?", (no,))
            self._put_beside(no, vector, parts)

    def _keep_replaced(self, no: int, replaced: Replaced) -> None:
        self._db.run(
            "INSERT INTO replaced (entry, change, changed_at, snapshot) VALUES (?, ?, ?, ?)",
            (no, replaced.change, to_micros(replaced.changed_at), self._db.seal(snapshot_of(replaced.entry))),
        )

    def count_use(self, nos: Sequence[int], at: datetime) -> None:
        # Only these columns: writing all of a row would write all of its indexes too.
        moment, there = to_micros(at), self._partitions_of(nos)
        rows = [(self._seq(partition_no), moment, moment, no) for no, partition_no in there.items()]
        self._db.many(_COUNT_USE, rows)

    def alive(self, nos: Sequence[int]) -> set[int]:
        return set(self._partitions_of(nos))

    def _partitions_of(self, nos: Sequence[int]) -> dict[int, int]:
        """Those of the row numbers that are there, each with its partition; rows met in this transaction are known."""
        known = self._partition_of
        unknown = [no for no in dict.fromkeys(nos) if no not in known]
        if unknown:
            known.update(self._db.partitions_of(unknown, next(iter(self._numbers.values()), -1)))
        return {no: known[no] for no in nos if no in known}

    def remove(self, partition: Partition, selection: Selection, *, turns: bool = False) -> Removed:
        db, partition_no = self._db, self._number(self._db, partition)
        if partition_no < 0:
            return Removed()
        said = self._remove_turns(partition, partition_no, selection) if turns else Removed()
        values = list[Any]([partition_no])
        where = matching(db, "= ?", selection, values)
        rows = db.ask(f"SELECT e.no, e.id FROM entries e WHERE {where} ORDER BY e.no", values)
        if not rows:
            return said
        self._forget_added()
        gone = f"INSERT INTO removed SELECT e.partition, ?, e.no FROM entries e WHERE {where}"
        db.run(gone, (self._seq(partition_no), *values))
        removed = self._remove_rows(rows, partition_no)
        db.blank(partition.tenant, [no for no, _ in rows], 0)
        return said + removed

    def _remove_rows(self, rows: Sequence[Row], partition_no: int) -> Removed:
        """Entries of a partition by row number and id, with all that hangs on them. Records of another tenant stay."""
        values: list[Any] = []
        here = self._db.among([no for no, _ in rows], values)
        ((index_records, vectors, links, versions),) = self._db.ask(_HANGING_ON.format(here), values * 6)
        told = f"no IN (SELECT record FROM record_entries WHERE entry {here})"
        told += " AND +r.tenant = (SELECT tenant FROM partitions WHERE no = ?)"
        gone = records.drop_counted(self._db, told, [*values, partition_no])
        self._db.run(f"DELETE FROM entries WHERE no {here}", values)
        for no, entry_id in rows:
            self._nos.pop(entry_id, None)
            self._partition_of.pop(no, None)
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
        rows = self._db.ask("SELECT no, id FROM entries WHERE partition = ? ORDER BY no", (partition_no,))
        self._db.run(_HIDE, (f"{partition_no} {remover()}", partition_no))
        self._db.blank(partition.tenant, [no for no, _ in rows], partition_no)
        self._numbers.clear()
        self._seqs.clear()
        self._nos.clear()
        self._partition_of.clear()
        self._forget_added()
        return partition_no, [entry_id for _, entry_id in rows]

    def clear_slice(self, partition_no: int) -> Removed | None:
        """Remove a part of a hidden partition; None when nothing of it is left."""
        db, some, of_it = self._db, f"LIMIT {SLICE}", (partition_no,)
        rows = db.ask(f"SELECT no, id FROM entries WHERE partition = ? {some}", of_it)
        if rows:
            return self._remove_rows(rows, partition_no)
        told = "SELECT no FROM turns WHERE session IN (SELECT no FROM sessions WHERE partition = ?)"
        turns = db.run(f"DELETE FROM turns WHERE no IN ({told} {some})", of_it)
        if turns:
            return Removed(turns=turns)
        gone = records.drop_counted(db, f"no IN (SELECT no FROM records WHERE partition = ? {some})", of_it)
        if gone:
            return Removed(records=gone)
        sessions = db.run("DELETE FROM sessions WHERE partition = ?", of_it)
        last = db.run(f"DELETE FROM partitions WHERE no = ? AND no IN {HIDDEN}", of_it)
        return Removed(sessions=sessions) if last else None

    def _remove_turns(self, partition: Partition, partition_no: int, selection: Selection) -> Removed:
        """Turns, the sessions that have none left, and records that tell of those."""
        db = self._db
        sessions, of_sessions = "SELECT no FROM sessions WHERE partition = ?", list[Any]([partition_no])
        if selection.session_id is not None:
            sessions += " AND session_id = ?"
            of_sessions.append(selection.session_id)
        condition, values = f"session IN ({sessions})", [*of_sessions]
        if selection.ids is not None:
            condition += f" AND entry IN (SELECT no FROM entries WHERE id {db.among(selection.ids, values)})"
        removed = db.ask(f"DELETE FROM turns WHERE {condition} RETURNING session", values)
        emptied = db.ask(
            f"DELETE FROM sessions WHERE no IN ({sessions}) "
            "AND NOT EXISTS (SELECT 1 FROM turns WHERE turns.session = sessions.no) RETURNING session_id",
            of_sessions,
        )
        values = []
        left = db.ask(_RECOUNT_SESSIONS.format(db.among(sorted({no for (no,) in removed}), values)), values)
        gone, values = [name for (name,) in emptied], [partition.tenant, partition_no, partition_no]
        here = f"tenant = ? AND ifnull(partition, ?) = ? AND session {db.among(gone, values)}"
        told = records.drop_counted(db, here, values)
        return Removed(turns=len(removed), sessions=len(gone), records=told, cut=[name for (name,) in left])

    def drop_partition(self, partition: Partition) -> Removed:
        partition_no = self._number(self._db, partition)
        removed = self.remove(partition, Selection(), turns=True)
        left = records.drop_counted(self._db, "partition = ?", (partition_no,))
        self._db.run("DELETE FROM partitions WHERE no = ?", (partition_no,))
        self._numbers.pop(partition, None)
        self._seqs.pop(partition_no, None)
        return removed + Removed(records=left)

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
        self,
        rows: Sequence[tuple[int, IndexRecord | None, Vector | None]],
        *,
        model: EmbeddingModel | None = None,
        parts: Mapping[int, bytes] = NO_PARTS,
    ) -> int:
        db, values = self._db, list[Any]()
        serves = model is None or model == self.model()
        model_no = -1 if serves or model is None else self._model_no(model)
        here = db.among([no for no, *_ in rows], values)
        places: dict[int, int] = dict(db.ask(f"SELECT no, partition FROM entries WHERE no {here}", values))
        there = [row for row in rows if row[0] in places]
        self._known.clear()
        for no, index, vector in there:
            if index is not None:
                db.run(_PUT_INDEX, (*index_row(index, None)[:-1], no))
            if vector is not None and not serves and model is not None:
                _check_fit(vector, model)
                db.run(_PUT_NEW_VECTOR, (no, model_no, db.vector(vector), parts.get(no)))
            elif vector is not None:
                self._check_width(vector)
                db.run(_PUT_VECTOR, (db.vector(vector), parts.get(no), no))
            if index is not None or serves:
                seq = self._seq(places[no])
                db.run("UPDATE entries SET seq = ?, index_seq = ? WHERE no = ?", (seq, seq, no))
        return len(there)

    def _put_beside(self, no: int, vector: Vector | None, parts: bytes | None) -> None:
        if self.beside is None or vector is None:
            return
        _check_fit(vector, self.beside)
        if self._beside_no is None:
            rows = self._db.ask("SELECT no FROM models WHERE name = ? AND width = ?", self.beside.key)
            self._beside_no = rows[0][0] if rows else -1
        if self._beside_no >= 0:
            self._db.run(_PUT_NEW_VECTOR, (no, self._beside_no, self._db.vector(vector), parts))

    def _model_no(self, model: EmbeddingModel) -> int:
        self._db.run("INSERT INTO models (name, width) VALUES (?, ?) ON CONFLICT DO NOTHING", model.key)
        ((number,),) = self._db.ask("SELECT no FROM models WHERE name = ? AND width = ?", model.key)
        return int(number)

    def use_model(self, model: EmbeddingModel) -> None:
        db, model_no = self._db, self._model_no(model)
        if self.model() != model:
            db.run(
                "UPDATE index_records SET (vector, parts) = (SELECT vector, parts FROM new_vectors v "
                "WHERE v.entry = index_records.entry AND v.model = ?)",
                (model_no,),
            )
            for (partition_no,) in db.ask("SELECT no FROM partitions"):
                seq = self._seq(partition_no)
                db.run("UPDATE entries SET seq = ?, index_seq = ? WHERE partition = ?", (seq, seq, partition_no))
        db.run("DELETE FROM new_vectors")
        db.run("DELETE FROM models WHERE no <> ?", (model_no,))
        db.run("UPDATE models SET current = TRUE WHERE no = ?", (model_no,))
        self._current = model

    # -- links ---------------------------------------------------------------------------------------------------

    def add_links(self, links: Sequence[Link]) -> int:
        if not links:
            return 0
        rows = [self._link_row(link) for link in links]
        if all(link.automatic for link in links):  # then nothing that is there changes
            return self._db.add_links(rows)
        return len({row[:3] for row in rows if self._db.run(_INSERT_LINK, row)})

    def _link_row(self, link: Link) -> Row:
        if link.source == link.target:
            raise StoreError(f"entry {link.source!r} cannot be linked to itself")
        source, target = self._place_of(link.source), self._place_of(link.target)
        if source is None or target is None:
            raise StoreError(f"no entry {(link.source if source is None else link.target)!r} to link")
        self._count_link(source, target, type_=link.type, automatic=link.automatic)
        return (source[0], target[0], link.type, link.confidence, int(link.automatic), to_micros(link.created_at))

    def _count_link(self, *ends: tuple[int, int], type_: str, automatic: bool) -> None:
        """A change of both partitions; and of the entries, if `edges` has it."""
        for no, partition_no in ends:
            seq = self._seq(partition_no)
            if type_ in TELLING or not automatic:
                self._db.run("UPDATE entries SET seq = ? WHERE no = ? AND seq < ?", (seq, no, seq))

    def remove_link(self, source: str, target: str, type_: str) -> bool:
        ends = [self._place_of(end) for end in (source, target)]
        if ends[0] is None or ends[1] is None:
            return False
        where, values = "source = ? AND target = ? AND type = ?", (ends[0][0], ends[1][0], type_)
        if not self._db.run(f"DELETE FROM links WHERE {where}", values):
            return False
        self._count_link(ends[0], ends[1], type_=type_, automatic=False)
        return True

    # -- sessions ------------------------------------------------------------------------------------------------

    def add_turn(self, partition: Partition, turn: Turn, *, touched_at: datetime | None = None) -> None:
        db, at = self._db, to_micros(turn.at)
        touched = at if touched_at is None else to_micros(touched_at)
        of_session = (self._partition_no(partition), turn.session_id, at, turn.number + 1, touched)
        ((session,),) = db.ask(_TOUCH_SESSION, of_session)
        place = None if turn.entry_id is None else self._place_of(turn.entry_id)
        entry_no = None if place is None else place[0]
        db.run(
            "INSERT INTO turns (session, number, role, speaker, at, entry, text) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (session, turn.number, turn.role, db.seal(turn.speaker), at, entry_no, db.seal(turn.text)),
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
        ended = None if ended_at is None else to_micros(ended_at)
        self._db.run(
            "UPDATE sessions SET reflected = coalesce(?, reflected), ended_at = coalesce(?, ended_at) "
            "WHERE partition = ? AND session_id = ?",
            (reflected, ended, self._number(self._db, partition), session_id),
        )

    # -- records -------------------------------------------------------------------------------------------------

    def put_records(self, records_: Sequence[Record], *, replace: bool = True) -> list[int | None]:
        rows = {no for one in records_ for no in one.rows}
        there = self.alive([*rows]) if rows else rows
        if len(records_) > 1 and not any(one.names or (one.key and replace) for one in records_):
            return [*records.put_new(self._db, [self._home_of(one) for one in records_], records_, there)]
        return [records.put(self._db, self._home_of(one), one, there, only_new=not replace) for one in records_]

    def _home_of(self, record: Record) -> int | None:
        if not record.tenant:
            raise StoreError(f"{record.kind} {record.key!r} has neither a partition nor a tenant")
        self._check_tenant(record.tenant)
        return None if record.partition is None else self._partition_no(record.partition)

    def drop_records(self, wanted: RecordFilter) -> int:
        return records.drop(self._db, wanted)


def _check_fit(vector: Vector, model: EmbeddingModel) -> None:
    if vector.shape != (model.width,):
        raise StoreError(f"a vector of shape {vector.shape} does not fit {model.name} ({model.width})")
