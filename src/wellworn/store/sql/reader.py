"""Reading a store that speaks SQL, outside a transaction or inside one: the `StoreReader` port.

A query may be a round trip, so the name of a partition is looked up inside the query that needs its number.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import lru_cache, partial
from typing import Any

import numpy as np

from wellworn.core.clock import from_micros, to_micros
from wellworn.core.values import Entry, Layer, Link, Partition, Turn
from wellworn.store import convert
from wellworn.store.damage import Damage, slim_from, whole_page
from wellworn.store.port import (
    TELLING,
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
from wellworn.store.sql import records
from wellworn.store.sql.db import HIDDEN, NAMED, NUMBER, VISIBLE, Db, Row, limited, name_of, names_of

_SLIM = """
SELECT e.no, e.seq, e.index_seq, e.kind, e.state, e.at, e.valid_from, e.valid_to, e.confidence, e.usage_count,
       e.repeats, e.thread, e.position, i.length, i.chars, i.traits, i.speaker, {words}, {vector},
       e.source, e.tags
FROM entries e INDEXED BY {index} CROSS JOIN index_records i ON i.entry = e.no
WHERE e.partition = {partition} AND e.seq > ? AND e.no > ? AND i.entry > ? ORDER BY e.no
"""

_NO_WORDS = "substr(i.terms, 1, 0), substr(i.counts, 1, 0)"

_ENTRIES = (
    f"SELECT {{}}{convert.SELECT_ENTRY}, e.partition, e.no FROM entries e JOIN partitions s ON s.no = e.partition"
)
_TELLS = f"(automatic = 0 OR type IN ({', '.join(repr(one) for one in TELLING)}))"
"""The condition on `links` that `edges` has them."""
_LINKED = (
    " OR ".join(f"EXISTS (SELECT 1 FROM links WHERE {end} = e.no AND {_TELLS})" for end in ("source", "target")) + ", "
)

_SHARES_A_SKETCH = "SELECT " + " OR ".join(
    f"EXISTS (SELECT 1 FROM index_records WHERE {column} = ? AND {column} <> 0 AND partition = ?)"
    for column in ("near_a", "near_b")
)
WITH_SKETCH = """
SELECT i.entry FROM index_records i CROSS JOIN entries e ON e.no = i.entry
WHERE i.{0} = {1} AND i.{0} <> 0 AND i.partition = ? AND e.state IN ('active', 'flagged') ORDER BY i.entry DESC LIMIT {2}
"""
NEAR = """
SELECT e.no, e.id, e.at, e.tags, i.near_a, i.near_b, i.length, i.chars, i.traits, i.speaker, i.terms, i.counts
FROM entries e JOIN index_records i ON i.entry = e.no
"""
_SHARING_A_SKETCH = " UNION ALL ".join(
    f"SELECT * FROM ({WITH_SKETCH.format(column, '?', '?')}) AS {column}" for column in ("near_a", "near_b")
)
_LINKS_AT = """
SELECT a.id, b.id, l.type, l.confidence, l.automatic, l.created_at FROM entries x JOIN links l ON l.{} = x.no
JOIN entries a ON a.no = l.source JOIN entries b ON b.no = l.target WHERE x.id {}
"""
_EDGES = "SELECT source, target, type, confidence, automatic FROM links {} WHERE"
_ENDS = {"source": "", "target": "INDEXED BY links_by_target"}
_WITHOUT_VECTOR = """
CASE WHEN EXISTS (SELECT 1 FROM models WHERE name = ? AND width = ? AND current)
THEN EXISTS (SELECT 1 FROM index_records i WHERE i.entry = e.no AND i.vector IS NULL)
ELSE NOT EXISTS (SELECT 1 FROM new_vectors v JOIN models m ON m.no = v.model
                 WHERE v.entry = e.no AND m.name = ? AND m.width = ?) END
"""
MOST_AT_ONCE = 64
"""Partitions or tags that are asked for in one statement."""
RECENT_PER_TAG = 64
"""Entries looked at per tag: a tag that ten thousand entries have must not make the next one slow."""


@lru_cache(maxsize=256)
def heads_query(count: int) -> str:
    """One statement for several partitions: each of its own would take a lock or a round trip of its own."""
    one = f"SELECT {{}}, s.no, s.seq FROM partitions s WHERE {VISIBLE} AND {NAMED}"
    return " UNION ALL ".join(one.format(place) for place in range(count))


class SqlReader(StoreReader):
    """Queries. The store runs them on pooled connections, a transaction on its own. What is damaged is left out."""

    damage: Damage

    @abstractmethod
    def _reading(self, *, snapshot: bool = False) -> AbstractContextManager[Db]:
        """A connection; with `snapshot`, several queries see the same moment."""

    def _met(self, entry_id: str, no: int, partition_no: int) -> None:
        """An entry was read: a transaction remembers its number."""

    # -- partitions ----------------------------------------------------------------------------------------------

    def partitions(self, tenant: str | None = None, *, layer: Layer | None = None, prefix: str = "") -> list[Partition]:
        with self._reading() as db:
            where, values = VISIBLE, list[Any]()
            for column, wanted in (("tenant", tenant), ("layer", layer)):
                if wanted is not None:
                    where += f" AND s.{column} = ?"
                    values.append(wanted)
            if prefix:
                where += f" AND {db.begins('s.layer_id', prefix, values)}"
            rows = db.ask(f"SELECT s.tenant, s.layer, s.layer_id FROM partitions s WHERE {where} ORDER BY s.no", values)
        return self.damage.read(rows, convert.partition_from, lambda row: f"partition {row!r:.120}")

    def heads(self, partitions: Sequence[Partition]) -> list[Head | None]:
        with self._reading() as db:
            found = _heads_of(db, partitions)
        return [found.get(place) for place in range(len(partitions))]

    def delta(
        self,
        partition_no: int,
        since: int,
        *,
        after: int = 0,
        limit: int | None = None,
        vectors: bool = True,
        words: bool = True,
    ) -> Delta:
        with self._reading(snapshot=True) as db:
            head = db.ask(
                "SELECT s.seq, (SELECT width FROM models WHERE current), "
                "EXISTS (SELECT 1 FROM links INDEXED BY links_by_hand WHERE automatic = 0) "
                f"FROM partitions s WHERE s.no = ? AND {VISIBLE}",
                (partition_no,),
            )
            if not head:
                return Delta(seq=0, rows=[], removed=[])
            # A whole partition is read along the index of partitions, in row order; a few changes along that of changes. Its
            # number is written out, and both tables are told where to begin: else Postgres reads all rows before that.
            values: list[Any] = [partition_no, since, after, after] if since else [since, after, after]
            whole = {"partition": "?" if since else int(partition_no)}
            index = "entries_by_change" if since else "entries_by_partition"
            read = {"words": "i.terms, i.counts" if words else _NO_WORDS, "vector": "i.vector" if vectors else "NULL"}
            query = _SLIM.format(index=index, **read, **whole)
            found = db.ask(query + limited(limit, values), values)
            removed = db.ask("SELECT entry FROM removed WHERE partition = ? AND seq > ?", (partition_no, since))
        ((seq, width, linked),) = head
        rows = whole_page(found, vector_bytes := 4 * (width or 0))
        if rows is None:
            make = partial(slim_from, vector_bytes=vector_bytes)
            rows = self.damage.read(found, make, lambda row: f"index record {row[0]}")
        return Delta(seq=seq, rows=rows, removed=[no for (no,) in removed], linked=bool(linked))

    def counts(self, partitions: Sequence[Partition], *, only: Sequence[str] = ()) -> dict[str, int]:
        with self._reading(snapshot=True) as db:
            values: list[Any] = []
            here = db.among([head.partition_no for head in _heads_of(db, partitions).values()], values)
            mine = f"IN (SELECT no FROM entries WHERE partition {here})"
            tables = {
                "entries": f"count(*) FROM entries WHERE partition {here}",
                "vectors": f"count(vector) FROM index_records WHERE partition {here}",
                "links": f"count(*) FROM links WHERE source {mine}",
                "versions": f"count(*) FROM replaced WHERE entry {mine}",
                "sessions": f"count(*) FROM sessions WHERE partition {here}",
                "turns": f"count(*) FROM turns WHERE session IN (SELECT no FROM sessions WHERE partition {here})",
            }
            wanted = only or [*tables]
            rows = db.ask(
                " UNION ALL ".join(f"SELECT '{name}', {tables[name]}" for name in wanted), values * len(wanted)
            )
            if only:
                return dict(rows)
            for column in ("kind", "state"):
                counted = f"SELECT {column}, count(*) FROM entries WHERE partition {here} GROUP BY 1 ORDER BY 1"
                rows += [(f"{column}:{value}", number) for value, number in db.ask(counted, values)]
            ((size,),) = db.ask(db.size)
        return {**dict(rows), "bytes": size}

    def _number(self, db: Db, partition: Partition) -> int:
        """The number of a partition; -1, which none has, when it is not there."""
        rows = db.ask(NUMBER[1:-1], name_of(partition))
        return int(rows[0][0]) if rows else -1

    def _number_of(self, db: Db, partition: Partition, values: list[Any]) -> str:
        """The number of a partition as an expression; no row equals it when the partition is not there."""
        values += name_of(partition)
        return NUMBER

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
            values: list[Any] = []
            on = None
            if partitions is not None and len(partitions) == 1:
                on = f"= {self._number_of(db, partitions[0], values)}"
            elif partitions is not None:
                on = db.among([head.partition_no for head in _heads_of(db, partitions).values()], values)
            where = matching(db, on, selection, values)
            if after:
                where += " AND e.no > ?"
                values.append(after)
            if skip:  # the numbers alone lie in an index: no entry is read for them
                where += f" AND e.no > (SELECT e.no FROM entries e WHERE {where} ORDER BY e.no LIMIT 1 OFFSET ?)"
                values += [*values, skip - 1]
            plus = "+" * (selection.content_hash is not None)  # one row, which is not looked for along the numbers
            rows = db.ask(f"{_ENTRIES.format('')} WHERE {where} ORDER BY {plus}e.no {limited(limit, values)}", values)
            opened = db.opened(rows, convert.SEALED)
        for row in rows:
            self._met(row[0], row[-1], row[-2])
        found = self.damage.read(opened, convert.numbered_entry, convert.entry_name)
        if limit is not None and len(found) < len(rows) == limit:  # some cannot be read: a page is full all the same
            found += self.select(partitions, selection, after=rows[-1][-1], limit=limit - len(found))
        return found

    def read_linked(self, nos: Sequence[int]) -> dict[int, tuple[Entry, bool]]:
        with self._reading() as db:
            values: list[Any] = []
            where = matching(db, None, Selection(nos=nos), values)
            rows = db.ask(f"{_ENTRIES.format(_LINKED)} WHERE {where} ORDER BY e.no", values)
            opened = db.opened([row[1:] for row in rows], convert.SEALED)
        linked = {row[-1]: bool(row[0]) for row in rows}
        for row in opened:
            self._met(row[0], row[-1], row[-2])
        found = self.damage.read(opened, convert.numbered_entry, convert.entry_name)
        return {no: (entry, linked[no]) for no, entry in found}

    def rows(self, selection: Selection, *, partition_no: int | None = None) -> set[int]:
        with self._reading() as db:
            values = [] if partition_no is None else [partition_no]
            where = matching(db, None if partition_no is None else "= ?", selection, values)
            return {no for (no,) in db.ask(f"SELECT e.no FROM entries e WHERE {where}", values)}

    def find_same(self, partition: Partition, content_hash: str) -> Entry | None:
        with self._reading() as db:  # asked for every new entry, and most are not there
            values: list[Any] = []
            there = db.ask(
                f"SELECT 1 FROM entries WHERE partition = {self._number_of(db, partition, values)} "
                "AND content_hash = ? AND state IN ('active', 'flagged')",
                (*values, content_hash),
            )
        return super().find_same(partition, content_hash) if there else None

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
                where = f"e.no {db.among(_sharing(db, partition_no, tags, shared), values)}"
            # By what they are not: for IN, Postgres would sort all rows of the partition until it has statistics.
            rows = db.ask(
                f"SELECT e.no, e.id, e.at, e.tags FROM entries e WHERE {where} "
                "AND e.state NOT IN ('superseded', 'pruned') ORDER BY e.no DESC LIMIT ?",
                (*values, limit),
            )
        return self._neighbours(partition_no, rows)

    def _near(self, db: Db, partition_no: int, near: tuple[int, int], limit: int) -> list[Neighbour]:
        # Asked for every new entry, and most have none: a short question first.
        ((some,),) = db.ask(_SHARES_A_SKETCH, (near[0], partition_no, near[1], partition_no))
        if not some:
            return []
        query = f"{NEAR} WHERE e.no IN ({_SHARING_A_SKETCH}) ORDER BY e.no DESC LIMIT ?"
        rows = db.ask(query, (near[0], partition_no, limit, near[1], partition_no, limit, limit))
        return self._neighbours(partition_no, rows)

    def _neighbours(self, partition_no: int, rows: list[Row]) -> list[Neighbour]:
        def make(row: Row) -> Neighbour:
            found = convert.neighbour_from(row)
            self._met(found.id, row[0], partition_no)
            return found

        return self.damage.read(rows, make, lambda row: f"entry {row[1]}")

    def replaced(self, entry_id: str) -> list[Replaced]:
        with self._reading() as db:
            rows = db.ask(
                """
                SELECT r.snapshot, r.change, r.changed_at, s.tenant, s.layer, s.layer_id, r.no
                FROM replaced r JOIN entries e ON e.no = r.entry JOIN partitions s ON s.no = e.partition
                WHERE e.id = ? ORDER BY r.no
                """,
                (entry_id,),
            )
            rows = db.opened(rows, (0,))
        return self.damage.read(rows, convert.replaced_from, lambda row: f"version {row[-1]} of entry {entry_id}")

    def index_of(self, nos: Sequence[int]) -> dict[int, tuple[IndexRecord | None, Vector | None]]:
        values: list[Any] = []
        with self._reading() as db:
            rows = db.ask(
                "SELECT near_a, near_b, length, chars, traits, i.speaker, terms, counts, vector, e.no, i.entry "
                "FROM entries e LEFT JOIN index_records i ON i.entry = e.no "
                f"WHERE e.no {db.among(nos, values)} ORDER BY e.no",
                values,
            )
        readable = dict(self.damage.read(rows, convert.numbered_index, lambda row: f"index record {row[9]}"))
        return {row[9]: readable.get(row[9], (None, None)) for row in rows}

    def vectors(self, nos: Sequence[int]) -> dict[int, Vector]:
        values: list[Any] = []
        with self._reading() as db:
            rows = db.ask(f"SELECT vector, entry FROM index_records WHERE entry {db.among(nos, values)}", values)
        return {
            no: np.frombuffer(blob, dtype="<f4") for blob, no in rows if isinstance(blob, bytes) and not len(blob) % 4
        }

    def parts(self, nos: Sequence[int]) -> dict[int, bytes]:
        values: list[Any] = []
        with self._reading() as db:
            rows = db.ask(f"SELECT parts, entry FROM index_records WHERE entry {db.among(nos, values)}", values)
        return {no: blob for blob, no in rows if isinstance(blob, bytes)}

    def model(self) -> EmbeddingModel | None:
        with self._reading() as db:
            rows = db.ask("SELECT name, width FROM models WHERE current")
        return EmbeddingModel(name=rows[0][0], width=rows[0][1]) if rows else None

    # -- links ---------------------------------------------------------------------------------------------------

    def links(self, ids: Sequence[str], *, types: Sequence[str] | None = None) -> list[Link]:
        queries: list[str] = []
        values: list[Any] = []
        with self._reading() as db:
            for end in ("source", "target"):
                query = _LINKS_AT.format(end, db.among(ids, values))
                queries.append(query if types is None else f"{query} AND l.type {db.among(types, values)}")
            rows = db.ask(" UNION ".join(queries), values)
        return self.damage.read(
            sorted(rows, key=repr), convert.link_from, lambda row: f"link {row[0]} {row[2]} {row[1]}"
        )

    def edges(self, nos: Sequence[int]) -> list[Edge]:
        if not nos:
            return []
        values: list[Any] = []
        with self._reading() as db:
            queries = [
                f"{_EDGES.format(hint)} {end} {db.among(nos, values)} AND {_TELLS}" for end, hint in _ENDS.items()
            ]
            found = db.ask(" UNION ALL ".join(queries), values)
        return sorted({(*edge, not automatic) for *edge, automatic in found})

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
        with self._reading() as db:
            where, values, order, index = VISIBLE, list[Any](), "n.no", ""
            if partition is not None:
                where += f" AND {NAMED}"
                values += name_of(partition)
            for column, wanted in (("n.session_id", session_id), ("s.tenant", tenant)):
                if wanted is not None:
                    where += f" AND {column} = ?"
                    values.append(wanted)
            if idle_since is not None:
                where += " AND n.reflected < n.turns AND n.touched_at <= ? AND n.ended_at IS NULL"
                values.append(to_micros(idle_since))
                order = "n.touched_at, s.tenant, s.layer, s.layer_id, n.session_id"
                index = "INDEXED BY sessions_unreflected"
            rows = db.ask(
                f"SELECT {convert.SELECT_SESSION} FROM sessions n {index} JOIN partitions s ON s.no = n.partition "
                f"WHERE {where} ORDER BY {order} {limited(limit, values)}",
                values,
            )
        return self.damage.read(rows, convert.session_from, lambda row: f"session {row[3]!r:.80}")

    def turns(self, partition: Partition, session_id: str) -> list[Turn]:
        with self._reading() as db:
            values: list[Any] = []
            rows = db.ask(
                f"""
                SELECT t.number, t.role, t.text, t.at, t.speaker, e.id
                FROM turns t JOIN sessions n ON n.no = t.session LEFT JOIN entries e ON e.no = t.entry
                WHERE n.partition = {self._number_of(db, partition, values)} AND n.session_id = ?
                ORDER BY t.number
                """,
                (*values, session_id),
            )
            rows = db.opened(rows, (2, 4))
        make = partial(convert.turn_from, session_id=session_id)
        return self.damage.read(rows, make, lambda row: f"turn {row[0]} of session {session_id}")

    def last_said(self, partition: Partition) -> dict[str, datetime]:
        with self._reading() as db:
            values: list[Any] = []
            rows = db.ask(
                "SELECT n.session_id, t.at FROM sessions n JOIN turns t ON t.session = n.no AND t.number = n.turns - 1 "
                f"WHERE n.partition = {self._number_of(db, partition, values)}",
                values,
            )
        found = self.damage.read(
            rows, lambda row: (row[0], from_micros(row[1])), lambda row: f"the last turn of session {row[0]}"
        )
        return dict(found)

    # -- records -------------------------------------------------------------------------------------------------

    def records(self, wanted: RecordFilter) -> list[Record]:
        with self._reading() as db:
            return records.select(db, wanted, self.damage)


def _heads_of(db: Db, partitions: Sequence[Partition]) -> dict[int, Head]:
    """Heads by place in the list, of those partitions that are there."""
    found: dict[int, Head] = {}
    for start in range(0, len(partitions), MOST_AT_ONCE):
        part = partitions[start : start + MOST_AT_ONCE]
        for place, no, seq in db.ask(heads_query(len(part)), names_of(part)):
            found[start + place] = Head(partition_no=no, seq=seq)
    return found


def matching(db: Db, on: str | None, selection: Selection, values: list[Any]) -> str:
    """The condition on `entries e`. `on` is that on the partition, whose values are there already; None: on any."""
    # What finds few rows leads; the plus keeps SQLite to that.
    few = selection.ids is not None or selection.nos is not None
    where = [f"e.partition NOT IN {HIDDEN}" if on is None else f"{'+' * few}e.partition {on}"]
    for column, several in (
        ("no", selection.nos),
        ("id", selection.ids),
        ("kind", selection.kinds),
        ("state", selection.states),
    ):
        if several is not None:
            where.append(f"e.{column} {db.among(several, values)}")
    if selection.content_hash is not None:
        where.append("e.content_hash = ? AND e.state IN ('active', 'flagged')")
        values.append(selection.content_hash)
    if selection.id_prefix is not None:
        where.append(db.begins("e.id", selection.id_prefix, values))
    if selection.session_id is not None:
        where.append("e.session_id = ?")
        values.append(selection.session_id)
    for tag in selection.tags or ():
        where.append(
            "EXISTS (SELECT 1 FROM entry_tags t WHERE t.partition = e.partition AND t.tag = ? AND t.entry = e.no)"
        )
        values.append(tag)
    if selection.without_vector_of is not None:
        where.append(_WITHOUT_VECTOR)
        values += [*selection.without_vector_of.key] * 2
    return " AND ".join(where)


def _sharing(db: Db, partition_no: int, tags: Sequence[str], at_least: int) -> list[int]:
    """Rows that have so many of the tags."""
    one = (
        "SELECT * FROM (SELECT entry FROM entry_tags WHERE partition = ? AND tag = ? "
        f"ORDER BY entry DESC LIMIT {RECENT_PER_TAG}) AS t"
    )
    distinct, shared = [*dict.fromkeys(tags)], Counter[int]()
    for start in range(0, len(distinct), MOST_AT_ONCE):
        part = distinct[start : start + MOST_AT_ONCE]
        values = [value for tag in part for value in (partition_no, tag)]
        shared.update(no for (no,) in db.ask(" UNION ALL ".join([one] * len(part)), values))
    return [no for no, number in shared.items() if number >= at_least]
