"""Reading the SQLite file, outside a transaction or inside one: the `StoreReader` port."""

from __future__ import annotations

import sqlite3
from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import lru_cache, partial
from typing import Any

from wellworn.core.clock import to_micros
from wellworn.core.values import Entry, Layer, Link, Partition, Turn
from wellworn.store.damage import Damage, slim_from
from wellworn.store.port import (
    Delta,
    Edge,
    EmbeddingModel,
    Head,
    IndexRecord,
    Neighbour,
    Record,
    RecordFilter,
    Replaced,
    Selection,
    SessionHead,
    StoreReader,
    Vector,
)
from wellworn.store.rows import (
    SELECT_ENTRY,
    SELECT_SESSION,
    entry_name,
    index_name,
    link_from,
    neighbour_from,
    numbered_entry,
    numbered_index,
    partition_from,
    replaced_from,
    session_from,
    turn_from,
)
from wellworn.store.sqlite import records
from wellworn.store.sqlite.sql import fetched, in_list

_SLIM = """
SELECT e.no, e.seq, e.index_seq, e.kind, e.state, e.at, e.valid_from, e.valid_to, e.confidence, e.usage_count,
       e.repeats, e.thread, e.position, i.length, i.chars, i.traits, i.speaker, i.terms, i.counts, i.vector,
       e.source, e.tags
FROM entries e INDEXED BY {index} CROSS JOIN index_records i ON i.entry = e.no
WHERE e.partition = ? AND e.seq > ? AND e.no > ? ORDER BY e.no LIMIT ?
"""
# A whole partition is read along the index of partitions, in row order; a few changes along the index of changes.
_SLIM_ALL, _SLIM_CHANGED = _SLIM.format(index="entries_by_partition"), _SLIM.format(index="entries_by_change")

_SHARING_A_SKETCH = " UNION ALL ".join(
    f"SELECT * FROM (SELECT i.entry FROM index_records i CROSS JOIN entries e ON e.no = i.entry "
    f"WHERE i.{column} = ? AND i.{column} <> 0 AND i.partition = ? AND e.state IN ('active', 'flagged') "
    "ORDER BY i.entry DESC LIMIT ?)"
    for column in ("near_a", "near_b")
)
_SHARES_A_SKETCH = "SELECT " + ", ".join(
    f"EXISTS (SELECT 1 FROM index_records WHERE {column} = ? AND {column} <> 0 AND partition = ?)"
    for column in ("near_a", "near_b")
)

HIDDEN = ""
"""The tenant of partitions that are being removed: a name that no scope can have."""
BEING_REMOVED = f"(SELECT no FROM partitions WHERE tenant = '{HIDDEN}')"
MOST_HEADS = 8
"""Partitions asked for in one statement: as many as a scope has, and one."""
RECENT_PER_TAG = 64
"""Entries looked at per tag: a tag that ten thousand entries have must not make the next one slow."""


@lru_cache(maxsize=MOST_HEADS)
def _heads(count: int) -> str:
    """One statement for several partitions: each of its own would take a lock of its own."""
    one = "SELECT {}, no, seq FROM partitions WHERE tenant = ? AND layer = ? AND layer_id = ?"
    return " UNION ALL ".join(one.format(place) for place in range(count))


class SqliteReader(StoreReader):
    """Queries. The store runs them on pooled connections, a transaction on its own. What is damaged is left out."""

    damage: Damage

    @abstractmethod
    def _reading(self, *, snapshot: bool = False) -> AbstractContextManager[sqlite3.Connection]:
        """A connection; with `snapshot`, several queries see the same moment."""

    def _number(self, db: sqlite3.Connection, partition: Partition) -> int:
        """The number of a partition; -1, which none has, when it is not there."""
        row = db.execute(
            "SELECT no FROM partitions WHERE tenant = ? AND layer = ? AND layer_id = ?",
            (partition.tenant, partition.layer, partition.layer_id),
        ).fetchone()
        return -1 if row is None else int(row[0])

    def _met(self, entry_id: str, no: int, partition_no: int) -> None:
        """An entry was read: a transaction remembers its number."""

    # -- partitions ----------------------------------------------------------------------------------------------

    def partitions(self, tenant: str | None = None, *, layer: Layer | None = None, prefix: str = "") -> list[Partition]:
        where, values = f"WHERE tenant <> '{HIDDEN}'", list[str | bytes]()
        for column, wanted in (("tenant", tenant), ("layer", layer)):
            if wanted is not None:
                where += f" AND {column} = ?"
                values.append(wanted)
        if prefix:  # a range, which the index of names serves; it ends at a byte that no text has
            where += " AND layer_id >= ? AND layer_id < CAST(? AS TEXT)"
            values += [prefix, prefix.encode() + b"\xff"]
        with self._reading() as db:
            rows = fetched(db, f"SELECT tenant, layer, layer_id FROM partitions {where} ORDER BY no", values)
        return self.damage.read(rows, partition_from, lambda row: f"partition {row!r:.120}")

    def heads(self, partitions: Sequence[Partition]) -> list[Head | None]:
        found: dict[int, Head] = {}
        with self._reading() as db:
            for start in range(0, len(partitions), MOST_HEADS):
                part = partitions[start : start + MOST_HEADS]
                values = [
                    value for partition in part for value in (partition.tenant, partition.layer, partition.layer_id)
                ]
                for place, no, seq in db.execute(_heads(len(part)), values):
                    found[start + place] = Head(partition_no=no, seq=seq)
        return [found.get(place) for place in range(len(partitions))]

    def delta(self, partition_no: int, since: int, *, after: int = 0, limit: int | None = None) -> Delta:
        with self._reading(snapshot=True) as db:
            head = db.execute("SELECT seq FROM partitions WHERE no = ?", (partition_no,)).fetchone()
            if head is None:
                return Delta(seq=0, rows=[], removed=[])
            query = _SLIM_CHANGED if since else _SLIM_ALL
            found = fetched(db, query, (partition_no, since, after, -1 if limit is None else limit))
            width = db.execute("SELECT width FROM models WHERE current = 1").fetchone()
            vector_bytes = 4 * width[0] if width else 0
            removed = db.execute(
                "SELECT entry FROM removed WHERE partition = ? AND seq > ?", (partition_no, since)
            ).fetchall()
        rows = self.damage.read(found, partial(slim_from, vector_bytes=vector_bytes), index_name)
        return Delta(seq=head[0], rows=rows, removed=[no for (no,) in removed])

    def counts(self, partitions: Sequence[Partition], *, only: Sequence[str] = ()) -> dict[str, int]:
        with self._reading(snapshot=True) as db:
            values = list[Any]()
            here = in_list([self._number(db, partition) for partition in partitions], values)
            mine = f"IN (SELECT no FROM entries WHERE partition {here})"
            queries = {
                "entries": f"SELECT count(*) FROM entries WHERE partition {here}",
                "vectors": f"SELECT count(vector) FROM index_records WHERE partition {here}",
                "links": f"SELECT count(*) FROM links WHERE source {mine}",
                "versions": f"SELECT count(*) FROM replaced WHERE entry {mine}",
                "sessions": f"SELECT count(*) FROM sessions WHERE partition {here}",
                "turns": f"SELECT count(*) FROM turns WHERE session IN (SELECT no FROM sessions WHERE partition {here})",
            }
            wanted = only or queries
            counted = {name: int(db.execute(queries[name], values).fetchone()[0]) for name in wanted}
            if only:
                return counted
            for column in ("kind", "state"):
                rows = fetched(
                    db, f"SELECT {column}, count(*) FROM entries WHERE partition {here} GROUP BY 1 ORDER BY 1", values
                )
                counted.update({f"{column}:{value}": number for value, number in rows})
            (pages,), (size,) = (db.execute(f"PRAGMA page_{what}").fetchone() for what in ("count", "size"))
        return {**counted, "bytes": pages * size}

    # -- entries -------------------------------------------------------------------------------------------------

    def select(
        self,
        partitions: Sequence[Partition] | None,
        selection: Selection,
        *,
        after: int = 0,
        skip: int = 0,
        limit: int | None = None,
    ) -> list[tuple[int, Entry]]:
        with self._reading() as db:
            numbers = None if partitions is None else [self._number(db, partition) for partition in partitions]
            where, values = self._matching(db, numbers, selection)
            if after:
                where += " AND e.no > ?"
                values.append(after)
            if skip:  # the numbers alone lie in an index: no entry is read for them
                last = f"SELECT e.no FROM entries e WHERE {where} ORDER BY e.no LIMIT 1 OFFSET ?"
                found_no = db.execute(last, (*values, skip - 1)).fetchone()
                if found_no is None:
                    return []
                where += " AND e.no > ?"
                values.append(found_no[0])
            rows = fetched(
                db,
                f"SELECT {SELECT_ENTRY}, e.partition, e.no FROM entries e JOIN partitions s ON s.no = e.partition "
                f"WHERE {where} ORDER BY e.no LIMIT ?",
                (*values, -1 if limit is None else limit),
            )
        for row in rows:
            self._met(row[0], row[-1], row[-2])
        found = self.damage.read(rows, numbered_entry, entry_name)
        if limit is not None and len(found) < len(rows) == limit:  # some cannot be read: a page is full all the same
            found += self.select(partitions, selection, after=rows[-1][-1], limit=limit - len(found))
        return found

    def rows(self, selection: Selection, *, partition_no: int | None = None) -> set[int]:
        with self._reading() as db:
            where, values = self._matching(db, None if partition_no is None else [partition_no], selection)
            return {no for (no,) in db.execute(f"SELECT e.no FROM entries e WHERE {where}", values)}

    def _matching(
        self, db: sqlite3.Connection, partitions: Sequence[int] | None, selection: Selection
    ) -> tuple[str, list[Any]]:
        """The condition on `entries e`, and its values. What finds few rows leads; the plus keeps SQLite to that."""
        where, values = list[str](), list[Any]()
        few = selection.ids is not None or selection.nos is not None
        for column, wanted in (
            ("e.no", selection.nos),
            ("e.id", selection.ids),
            ("+e.partition" if few else "e.partition", partitions),
            ("e.kind", selection.kinds),
            ("e.state", selection.states),
        ):
            if wanted is not None:
                where.append(f"{column} {in_list(wanted, values)}")
        if partitions is None:
            where.append(f"e.partition NOT IN {BEING_REMOVED}")
        if selection.content_hash is not None:
            where.append("e.content_hash = ? AND e.state IN ('active', 'flagged')")
            values.append(selection.content_hash)
        if (
            selection.id_prefix is not None
        ):  # a range, which the index of ids serves; it ends at a byte that no text has
            where.append("e.id >= ? AND e.id < CAST(? AS TEXT)")
            values += [selection.id_prefix, selection.id_prefix.encode() + b"\xff"]
        if selection.session_id is not None:
            where.append("e.session_id = ?")
            values.append(selection.session_id)
        for tag in selection.tags or ():
            where.append(
                "EXISTS (SELECT 1 FROM entry_tags t WHERE t.partition = e.partition AND t.tag = ? AND t.entry = e.no)"
            )
            values.append(tag)
        if selection.without_vector_of is not None:
            where.append(self._without_vector(db, selection.without_vector_of, values))
        return " AND ".join(where) or "1", values

    def _without_vector(self, db: sqlite3.Connection, model: EmbeddingModel, values: list[Any]) -> str:
        row = db.execute("SELECT no, current FROM models WHERE name = ? AND width = ?", (model.name, model.width))
        no, current = row.fetchone() or (-1, 0)
        if current:  # its vectors lie with the index records
            return "EXISTS (SELECT 1 FROM index_records i WHERE i.entry = e.no AND i.vector IS NULL)"
        values.append(no)
        return "NOT EXISTS (SELECT 1 FROM new_vectors v WHERE v.entry = e.no AND v.model = ?)"

    def find_same(self, partition: Partition, content_hash: str) -> Entry | None:
        with self._reading() as db:  # asked for every new entry, and most are not there
            there = db.execute(
                "SELECT 1 FROM entries WHERE partition = ? AND content_hash = ? AND state IN ('active', 'flagged')",
                (self._number(db, partition), content_hash),
            ).fetchone()
        return None if there is None else super().find_same(partition, content_hash)

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
        with self._reading() as db:
            partition_no = self._number(db, partition)
            if near is not None:
                return self._near(db, partition_no, near, limit)
            where, values = "e.partition = ?", list[Any]([partition_no])
            if session_id is not None:
                where += " AND e.session_id = ?"
                values.append(session_id)
            if tags is not None:
                values = []
                where = f"e.no {in_list(_sharing(db, partition_no, tags, shared), values)}"
            rows = fetched(
                db,
                f"SELECT e.no, e.id, e.at, e.tags FROM entries e WHERE {where} "
                "AND e.state IN ('active', 'flagged') ORDER BY e.no DESC LIMIT ?",
                (*values, limit),
            )
        return self.damage.read(rows, partial(self._neighbour, partition_no), lambda row: f"entry {row[1]}")

    def _near(self, db: sqlite3.Connection, partition_no: int, near: tuple[int, int], limit: int) -> list[Neighbour]:
        # Asked for every new entry, and most have none: a short question first.
        if db.execute(_SHARES_A_SKETCH, (near[0], partition_no, near[1], partition_no)).fetchone() == (0, 0):
            return []
        found = db.execute(_SHARING_A_SKETCH, (near[0], partition_no, limit, near[1], partition_no, limit)).fetchall()
        if not found:
            return []
        values = list[Any]()
        rows = fetched(
            db,
            f"""
            SELECT e.no, e.id, e.at, e.tags, i.near_a, i.near_b, i.length, i.chars, i.traits, i.speaker, i.terms,
                   i.counts
            FROM entries e JOIN index_records i ON i.entry = e.no
            WHERE e.no {in_list([*{no for (no,) in found}], values)} ORDER BY e.no DESC LIMIT ?
            """,
            (*values, limit),
        )
        return self.damage.read(rows, partial(self._neighbour, partition_no), lambda row: f"entry {row[1]}")

    def _neighbour(self, partition_no: int, row: tuple[Any, ...]) -> Neighbour:
        found = neighbour_from(row)
        self._met(found.id, row[0], partition_no)
        return found

    def replaced(self, entry_id: str) -> list[Replaced]:
        with self._reading() as db:
            rows = fetched(
                db,
                """
                SELECT r.snapshot, r.change, r.changed_at, s.tenant, s.layer, s.layer_id, r.no
                FROM replaced r JOIN entries e ON e.no = r.entry JOIN partitions s ON s.no = e.partition
                WHERE e.id = ? ORDER BY r.no
                """,
                (entry_id,),
            )
        return self.damage.read(rows, replaced_from, lambda row: f"version {row[-1]} of entry {entry_id}")

    def index_of(self, nos: Sequence[int]) -> dict[int, tuple[IndexRecord | None, Vector | None]]:
        values = list[Any]()
        with self._reading() as db:
            rows = fetched(
                db,
                "SELECT near_a, near_b, length, chars, traits, i.speaker, terms, counts, vector, e.no, i.entry "
                f"FROM entries e LEFT JOIN index_records i ON i.entry = e.no WHERE e.no {in_list(nos, values)}",
                values,
            )
        readable = dict(self.damage.read(rows, numbered_index, lambda row: f"index record {row[9]}"))
        return {row[9]: readable.get(row[9], (None, None)) for row in rows}

    def model(self) -> EmbeddingModel | None:
        with self._reading() as db:
            row = db.execute("SELECT name, width FROM models WHERE current = 1").fetchone()
        return None if row is None else EmbeddingModel(name=row[0], width=row[1])

    # -- links ---------------------------------------------------------------------------------------------------

    def links(self, ids: Sequence[str], *, types: Sequence[str] | None = None) -> list[Link]:
        found: set[tuple[Any, ...]] = set()
        with self._reading() as db:
            for end in ("source", "target"):
                values = list[Any]()
                where = f"x.id {in_list(ids, values)}"
                where += "" if types is None else f" AND l.type {in_list(types, values)}"
                found.update(
                    fetched(
                        db,
                        "SELECT a.id, b.id, l.type, l.confidence, l.automatic, l.created_at "
                        f"FROM entries x JOIN links l ON l.{end} = x.no "
                        f"JOIN entries a ON a.no = l.source JOIN entries b ON b.no = l.target WHERE {where}",
                        values,
                    )
                )
        return self.damage.read(sorted(found, key=repr), link_from, lambda row: f"link {row[0]} {row[2]} {row[1]}")

    def edges(self, nos: Sequence[int], *, types: Sequence[str] | None = None) -> list[Edge]:
        # Links by hand have indexes of their own: they are few, and asked for at every recall.
        ends = {"source": "", "target": "INDEXED BY links_by_target"}
        if types is None:
            ends = {"source": "INDEXED BY links_by_hand", "target": "INDEXED BY links_by_hand_to"}
        found: set[Edge] = set()
        with self._reading() as db:
            some = "SELECT 1 FROM links INDEXED BY links_by_hand WHERE automatic = 0 LIMIT 1"
            if types is None and db.execute(some).fetchone() is None:
                return []
            for end, index in ends.items():
                values = list[Any]()
                where = f"{end} {in_list(nos, values)} AND "
                where += "automatic = 0" if types is None else f"type {in_list(types, values)}"
                found.update(
                    db.execute(f"SELECT source, target, type, confidence FROM links {index} WHERE {where}", values)
                )
        return sorted(found)

    # -- sessions ------------------------------------------------------------------------------------------------

    def sessions(
        self,
        partition: Partition | None = None,
        *,
        session_id: str | None = None,
        tenant: str | None = None,
        idle_since: datetime | None = None,
        limit: int | None = None,
    ) -> list[SessionHead]:
        where, values, order, index = f"s.tenant <> '{HIDDEN}'", list[Any](), "n.no", ""
        if partition is not None:
            where += " AND s.tenant = ? AND s.layer = ? AND s.layer_id = ?"
            values += [partition.tenant, partition.layer, partition.layer_id]
        for column, wanted in (("n.session_id", session_id), ("s.tenant", tenant)):
            if wanted is not None:
                where += f" AND {column} = ?"
                values.append(wanted)
        if idle_since is not None:
            where += " AND n.reflected < n.turns AND n.touched_at <= ? AND n.ended_at IS NULL"
            values.append(to_micros(idle_since))
            order = "n.touched_at, s.tenant, s.layer, s.layer_id, n.session_id"
            index = "INDEXED BY sessions_unreflected"
        with self._reading() as db:
            rows = fetched(
                db,
                f"SELECT {SELECT_SESSION} FROM sessions n {index} JOIN partitions s ON s.no = n.partition "
                f"WHERE {where} ORDER BY {order} LIMIT ?",
                (*values, -1 if limit is None else limit),
            )
        return self.damage.read(rows, session_from, lambda row: f"session {row[3]!r:.80}")

    def turns(self, partition: Partition, session_id: str) -> list[Turn]:
        with self._reading() as db:
            rows = fetched(
                db,
                """
                SELECT t.number, t.role, t.text, t.at, t.speaker, e.id
                FROM turns t JOIN sessions n ON n.no = t.session LEFT JOIN entries e ON e.no = t.entry
                WHERE n.partition = ? AND n.session_id = ? ORDER BY t.number
                """,
                (self._number(db, partition), session_id),
            )
        make = partial(turn_from, session_id=session_id)
        return self.damage.read(rows, make, lambda row: f"turn {row[0]} of session {session_id}")

    # -- records -------------------------------------------------------------------------------------------------

    def records(self, wanted: RecordFilter) -> list[Record]:
        with self._reading() as db:
            return records.select(db, wanted, self.damage)


def _sharing(db: sqlite3.Connection, partition_no: int, tags: Sequence[str], at_least: int) -> list[int]:
    """Rows that have so many of the tags."""
    shared: Counter[int] = Counter()
    for tag in dict.fromkeys(tags):
        rows = db.execute(
            "SELECT entry FROM entry_tags WHERE partition = ? AND tag = ? ORDER BY entry DESC LIMIT ?",
            (partition_no, tag, RECENT_PER_TAG),
        )
        shared.update(no for (no,) in rows)
    return [no for no, number in shared.items() if number >= at_least]
