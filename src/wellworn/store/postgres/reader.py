"""Reading the database, outside a transaction or inside one: the `StoreReader` port.

A query is a round trip, so names of partitions are looked up inside the query that needs them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import partial
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
from wellworn.store.postgres import records
from wellworn.store.postgres.connection import Connection, ask
from wellworn.store.postgres.seal import Sealer
from wellworn.store.rows import (
    ENTRY_COLUMNS,
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

_SLIM = """
SELECT e.no, e.seq, e.index_seq, e.kind, e.state, e.at, e.valid_from, e.valid_to, e.confidence, e.usage_count,
       e.repeats, e.thread, e.position, i.length, i.chars, i.traits, i.speaker, i.terms, i.counts, i.vector,
       e.source, e.tags
FROM entries e JOIN index_records i ON i.entry = e.no
WHERE e.partition = %s AND e.seq > %s AND e.no > %s ORDER BY e.no LIMIT %s
"""
_NAMES = "unnest(%s::text[], %s::text[], %s::text[])"
_HEADS = f"""
SELECT w.place, p.no, p.seq FROM {_NAMES} WITH ORDINALITY AS w (tenant, layer, layer_id, place)
JOIN partitions p ON NOT p.hidden AND p.tenant = w.tenant AND p.layer = w.layer AND p.layer_id = w.layer_id
"""
_NEAR = " UNION ".join(
    f"(SELECT i.entry FROM index_records i JOIN entries e ON e.no = i.entry WHERE i.{column} = %s AND i.{column} <> 0 "
    "AND i.partition = %s AND e.state IN ('active', 'flagged') ORDER BY i.entry DESC LIMIT %s)"
    for column in ("near_a", "near_b")
)
_COUNTS = """
SELECT 'entries', count(*) FROM entries WHERE partition = ANY(%(here)s)
UNION ALL SELECT 'vectors', count(vector) FROM index_records WHERE partition = ANY(%(here)s)
UNION ALL SELECT 'links', count(*) FROM links l JOIN entries e ON e.no = l.source WHERE e.partition = ANY(%(here)s)
UNION ALL SELECT 'versions', count(*) FROM replaced r JOIN entries e ON e.no = r.entry WHERE e.partition = ANY(%(here)s)
UNION ALL SELECT 'sessions', count(*) FROM sessions WHERE partition = ANY(%(here)s)
UNION ALL SELECT 'turns', count(*) FROM turns t JOIN sessions n ON n.no = t.session WHERE n.partition = ANY(%(here)s)
UNION ALL SELECT * FROM (SELECT 'kind:' || kind, count(*) FROM entries WHERE partition = ANY(%(here)s) GROUP BY 1
                         ORDER BY 1) AS kinds
UNION ALL SELECT * FROM (SELECT 'state:' || state, count(*) FROM entries WHERE partition = ANY(%(here)s) GROUP BY 1
                         ORDER BY 1) AS states
UNION ALL SELECT 'bytes', coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
          WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'
"""
SEALED = ("speaker", "title", "metadata", "text", "evidence")
"""Columns of entries that a key seals."""
_SEALED = tuple(ENTRY_COLUMNS.index(name) for name in SEALED)
PARTITION_NO = "(SELECT no FROM partitions WHERE NOT hidden AND tenant = %s AND layer = %s AND layer_id = %s)"
BEING_REMOVED = "(SELECT no FROM partitions WHERE hidden)"
RECENT_PER_TAG = 64
"""Entries looked at per tag: a tag that ten thousand entries have must not make the next one slow."""


def name_of(partition: Partition) -> tuple[str, str, str]:
    return partition.tenant, partition.layer, partition.layer_id


class PostgresReader(StoreReader):
    """Queries. The store runs them on pooled connections, a transaction on its own. What is damaged is left out."""

    damage: Damage
    sealer: Sealer

    @abstractmethod
    def _reading(self, *, snapshot: bool = False) -> AbstractContextManager[Connection]:
        """A connection; with `snapshot`, several queries see the same moment."""

    def _met(self, entry_id: str, no: int, partition_no: int) -> None:
        """An entry was read: a transaction remembers its number."""

    # -- partitions ----------------------------------------------------------------------------------------------

    def partitions(self, tenant: str | None = None, *, layer: Layer | None = None, prefix: str = "") -> list[Partition]:
        where, values = "NOT hidden", list[str]()
        for column, wanted in (("tenant", tenant), ("layer", layer)):
            if wanted is not None:
                where += f" AND {column} = %s"
                values.append(wanted)
        if prefix:
            where += " AND layer_id ^@ %s"
            values.append(prefix)
        with self._reading() as db:
            rows = ask(db, f"SELECT tenant, layer, layer_id FROM partitions WHERE {where} ORDER BY no", values)
        return self.damage.read(rows, partition_from, lambda row: f"partition {row!r:.120}")

    def heads(self, partitions: Sequence[Partition]) -> list[Head | None]:
        with self._reading() as db:
            rows = ask(db, _HEADS, _columns(partitions)) if partitions else []
        found = {place: Head(partition_no=no, seq=seq) for place, no, seq in rows}
        return [found.get(place) for place in range(1, len(partitions) + 1)]

    def delta(self, partition_no: int, since: int, *, after: int = 0, limit: int | None = None) -> Delta:
        with self._reading(snapshot=True) as db:
            head = ask(
                db,
                "SELECT seq, (SELECT width FROM models WHERE current) FROM partitions WHERE no = %s AND NOT hidden",
                (partition_no,),
            )
            if not head:
                return Delta(seq=0, rows=[], removed=[])
            found = ask(db, _SLIM, (partition_no, since, after, limit))
            removed = ask(db, "SELECT entry FROM removed WHERE partition = %s AND seq > %s", (partition_no, since))
        ((seq, width),) = head
        rows = self.damage.read(found, partial(slim_from, vector_bytes=4 * (width or 0)), index_name)
        return Delta(seq=seq, rows=rows, removed=[no for (no,) in removed])

    def counts(self, partitions: Sequence[Partition], *, only: Sequence[str] = ()) -> dict[str, int]:
        with self._reading(snapshot=True) as db:
            here = [no for _, no, _ in ask(db, _HEADS, _columns(partitions))]
            return dict(db.execute(_COUNTS, {"here": here}).fetchall())

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
        values = list[Any]()
        where = f"{self._on(partitions, values)} AND {self._matching(selection, values)}"
        if after:
            where += " AND e.no > %s"
            values.append(after)
        with self._reading() as db:
            rows = ask(
                db,
                f"SELECT {SELECT_ENTRY}, e.partition, e.no FROM entries e JOIN partitions s ON s.no = e.partition "
                f"WHERE {where} ORDER BY e.no LIMIT %s OFFSET %s",
                (*values, limit, skip),
            )
        for row in rows:
            self._met(row[0], row[-1], row[-2])
        found = self.damage.read(self.sealer.open_columns(rows, _SEALED), numbered_entry, entry_name)
        if limit is not None and len(found) < len(rows) == limit:  # some cannot be read: a page is full all the same
            found += self.select(partitions, selection, after=rows[-1][-1], limit=limit - len(found))
        return found

    def rows(self, selection: Selection, *, partition_no: int | None = None) -> set[int]:
        values = list[Any]()
        where = self._on(None, values)
        if partition_no is not None:
            where = "e.partition = %s"
            values = [partition_no]
        where += f" AND {self._matching(selection, values)}"
        with self._reading() as db:
            return {no for (no,) in ask(db, f"SELECT e.no FROM entries e WHERE {where}", values)}

    def _on(self, partitions: Sequence[Partition] | None, values: list[Any]) -> str:
        """The condition that `entries e` are on these partitions; what it needs is appended to `values`."""
        if partitions is None:
            return f"e.partition NOT IN {BEING_REMOVED}"
        if len(partitions) == 1:
            values += name_of(partitions[0])
            return f"e.partition = {PARTITION_NO}"
        values += _columns(partitions)
        return f"e.partition = ANY(ARRAY(SELECT heads.no FROM ({_HEADS}) AS heads))"

    def _matching(self, selection: Selection, values: list[Any]) -> str:
        """The condition on `entries e`; what it needs is appended to `values`."""
        where = ["TRUE"]
        for column, wanted in (
            ("no", selection.nos),
            ("id", selection.ids),
            ("kind", selection.kinds),
            ("state", selection.states),
        ):
            if wanted is not None:
                where.append(f"e.{column} = ANY(%s)")
                values.append([*wanted])
        if selection.content_hash is not None:
            where.append("e.content_hash = %s AND e.state IN ('active', 'flagged')")
            values.append(selection.content_hash)
        if selection.id_prefix is not None:
            where.append("e.id ^@ %s")
            values.append(selection.id_prefix)
        if selection.session_id is not None:
            where.append("e.session_id = %s")
            values.append(selection.session_id)
        for tag in selection.tags or ():
            where.append(
                "EXISTS (SELECT 1 FROM entry_tags t WHERE t.partition = e.partition AND t.tag = %s AND t.entry = e.no)"
            )
            values.append(tag)
        if selection.without_vector_of is not None:
            model = selection.without_vector_of
            where.append(
                "CASE WHEN EXISTS (SELECT 1 FROM models WHERE name = %s AND width = %s AND current) "
                "THEN EXISTS (SELECT 1 FROM index_records i WHERE i.entry = e.no AND i.vector IS NULL) "
                "ELSE NOT EXISTS (SELECT 1 FROM new_vectors v JOIN models m ON m.no = v.model "
                "WHERE v.entry = e.no AND m.name = %s AND m.width = %s) END"
            )
            values += [*model.key, *model.key]
        return " AND ".join(where)

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
            columns, index = "e.no, e.id, e.at, e.tags", ""
            where, values = "e.partition = %s", list[Any]([partition_no])
            if near is not None:
                columns += ", i.near_a, i.near_b, i.length, i.chars, i.traits, i.speaker, i.terms, i.counts"
                index = "JOIN index_records i ON i.entry = e.no"
                where = f"e.no IN ({_NEAR})"
                values = [near[0], partition_no, limit, near[1], partition_no, limit]
            elif session_id is not None:
                where += " AND e.session_id = %s"
                values.append(session_id)
            elif tags is not None:
                where, values = "e.no = ANY(%s)", [_sharing(db, partition_no, tags, shared)]
            rows = ask(
                db,
                f"SELECT {columns} FROM entries e {index} WHERE {where} "
                "AND e.state IN ('active', 'flagged') ORDER BY e.no DESC LIMIT %s",
                (*values, limit),
            )
        for row in rows:
            self._met(row[1], row[0], partition_no)
        return self.damage.read(rows, neighbour_from, lambda row: f"entry {row[1]}")

    def _number(self, db: Connection, partition: Partition) -> int:
        """The number of a partition; -1, which none has, when it is not there."""
        rows = ask(db, f"SELECT {PARTITION_NO}", name_of(partition))
        return -1 if rows[0][0] is None else int(rows[0][0])

    def replaced(self, entry_id: str) -> list[Replaced]:
        with self._reading() as db:
            rows = ask(
                db,
                """
                SELECT r.snapshot, r.change, r.changed_at, s.tenant, s.layer, s.layer_id, r.no
                FROM replaced r JOIN entries e ON e.no = r.entry JOIN partitions s ON s.no = e.partition
                WHERE e.id = %s ORDER BY r.no
                """,
                (entry_id,),
            )
        rows = self.sealer.open_columns(rows, (0,))
        return self.damage.read(rows, replaced_from, lambda row: f"version {row[-1]} of entry {entry_id}")

    def index_of(self, nos: Sequence[int]) -> dict[int, tuple[IndexRecord | None, Vector | None]]:
        with self._reading() as db:
            rows = ask(
                db,
                "SELECT near_a, near_b, length, chars, traits, i.speaker, terms, counts, vector, e.no, i.entry "
                "FROM entries e LEFT JOIN index_records i ON i.entry = e.no WHERE e.no = ANY(%s) ORDER BY e.no",
                ([*nos],),
            )
        readable = dict(self.damage.read(rows, numbered_index, lambda row: f"index record {row[9]}"))
        return {row[9]: readable.get(row[9], (None, None)) for row in rows}

    def model(self) -> EmbeddingModel | None:
        with self._reading() as db:
            rows = ask(db, "SELECT name, width FROM models WHERE current")
        return EmbeddingModel(name=rows[0][0], width=rows[0][1]) if rows else None

    # -- links ---------------------------------------------------------------------------------------------------

    def links(self, ids: Sequence[str], *, types: Sequence[str] | None = None) -> list[Link]:
        values, kept = list[Any]([[*ids]]), ""
        if types is not None:
            kept = "AND l.type = ANY(%s)"
            values.append([*types])
        one = (
            "SELECT a.id, b.id, l.type, l.confidence, l.automatic, l.created_at FROM entries x "
            "JOIN links l ON l.{} = x.no JOIN entries a ON a.no = l.source JOIN entries b ON b.no = l.target "
            f"WHERE x.id = ANY(%s) {kept}"
        )
        with self._reading() as db:
            rows = ask(db, f"{one.format('source')} UNION {one.format('target')}", values * 2)
        return self.damage.read(sorted(rows, key=repr), link_from, lambda row: f"link {row[0]} {row[2]} {row[1]}")

    def edges(self, nos: Sequence[int], *, types: Sequence[str] | None = None) -> list[Edge]:
        values, kept = list[Any]([[*nos]]), "automatic = 0"
        if types is not None:
            kept = "type = ANY(%s)"
            values.append([*types])
        one = f"SELECT source, target, type, confidence FROM links WHERE {{}} = ANY(%s) AND {kept}"
        with self._reading() as db:
            found = ask(db, f"{one.format('source')} UNION {one.format('target')}", values * 2)
        return sorted((source, target, type_, confidence) for source, target, type_, confidence in found)

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
        where, values, order = "NOT s.hidden", list[Any](), "n.no"
        if partition is not None:
            where += " AND s.tenant = %s AND s.layer = %s AND s.layer_id = %s"
            values += name_of(partition)
        for column, wanted in (("n.session_id", session_id), ("s.tenant", tenant)):
            if wanted is not None:
                where += f" AND {column} = %s"
                values.append(wanted)
        if idle_since is not None:
            where += " AND n.reflected < n.turns AND n.touched_at <= %s AND n.ended_at IS NULL"
            values.append(to_micros(idle_since))
            order = "n.touched_at, s.tenant, s.layer, s.layer_id, n.session_id"
        with self._reading() as db:
            rows = ask(
                db,
                f"SELECT {SELECT_SESSION} FROM sessions n JOIN partitions s ON s.no = n.partition "
                f"WHERE {where} ORDER BY {order} LIMIT %s",
                (*values, limit),
            )
        return self.damage.read(rows, session_from, lambda row: f"session {row[3]!r:.80}")

    def turns(self, partition: Partition, session_id: str) -> list[Turn]:
        with self._reading() as db:
            rows = ask(
                db,
                f"""
                SELECT t.number, t.role, t.text, t.at, t.speaker, e.id
                FROM turns t JOIN sessions n ON n.no = t.session LEFT JOIN entries e ON e.no = t.entry
                WHERE n.partition = {PARTITION_NO} AND n.session_id = %s ORDER BY t.number
                """,
                (*name_of(partition), session_id),
            )
        make, rows = partial(turn_from, session_id=session_id), self.sealer.open_columns(rows, (2, 4))
        return self.damage.read(rows, make, lambda row: f"turn {row[0]} of session {session_id}")

    # -- records -------------------------------------------------------------------------------------------------

    def records(self, wanted: RecordFilter) -> list[Record]:
        with self._reading() as db:
            return records.select(db, wanted, self.damage, self.sealer)


def _columns(partitions: Sequence[Partition]) -> list[list[str]]:
    """Tenants, layers and ids, for `_NAMES`."""
    names = [name_of(partition) for partition in partitions]
    return [[name[place] for name in names] for place in range(3)]


def _sharing(db: Connection, partition_no: int, tags: Sequence[str], at_least: int) -> list[int]:
    """Rows that have so many of the tags."""
    rows = ask(
        db,
        "SELECT t.entry FROM unnest(%s::text[]) AS w (tag) CROSS JOIN LATERAL (SELECT entry FROM entry_tags "
        "WHERE partition = %s AND tag = w.tag ORDER BY entry DESC LIMIT %s) AS t",
        ([*dict.fromkeys(tags)], partition_no, RECENT_PER_TAG),
    )
    shared = Counter(no for (no,) in rows)
    return [no for no, number in shared.items() if number >= at_least]
