"""A connection to Postgres as the shared statements use it. What belongs together is written in one statement, because each
one is a round trip; entries that are announced are sent together, before whatever comes next."""

from __future__ import annotations

import struct
import sys
from array import array
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from wellworn.core.errors import MissingExtra, StoreError
from wellworn.core.lazy import regex
from wellworn.store import convert
from wellworn.store.port import NewEntry, Vector
from wellworn.store.postgres.seal import Sealer
from wellworn.store.sql.db import HIDDEN, Row

try:
    import psycopg
    from psycopg.abc import Params
    from psycopg.adapt import Buffer, Dumper, Loader
    from psycopg.pq import Format
    from psycopg.rows import RowFactory, tuple_row
    from psycopg.types import TypeInfo
    from psycopg.types.numeric import Int8
except ImportError:
    raise MissingExtra("a memory in Postgres", "postgres") from None

_HINTS = regex(r"INDEXED BY \w+|CROSS (?=JOIN)|\+(?=[a-z]\.tenant)")
"""What SQLite alone understands, see `store.sql.db`; a plus is for numbers."""
_ADD_ENTRY = f"""
WITH e AS (
  INSERT INTO entries (partition, seq, index_seq, {", ".join(convert.ENTRY_COLUMNS)})
  VALUES ({", ".join("?" * (len(convert.ENTRY_COLUMNS) + 3))}) RETURNING no, partition
), i AS (
  INSERT INTO index_records (entry, partition, near_a, near_b, length, chars, traits, speaker, terms, counts, vector, parts)
  SELECT no, partition, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM e
), t AS (
  INSERT INTO entry_tags SELECT e.partition, w.tag, e.no FROM e, unnest(?::text[]) AS w (tag)
)
SELECT no FROM e
"""


_TYPES = {int: "int8", float: "float8", str: "text"}
_ENTRIES = dict.fromkeys(("no", "partition", "seq", "index_seq"), "int8") | {
    name: _TYPES[types[0]] for name, types in zip(convert.ENTRY_COLUMNS, convert.COLUMN_TYPES, strict=False)
}
_INDEX = dict.fromkeys(("entry", "partition", "near_a", "near_b", "length", "chars", "traits", "speaker"), "int8") | {
    "terms": "bytea",
    "counts": "bytea",
    "vector": "vector",
    "parts": "bytea",
}
_TAGS = {"partition": "int8", "tag": "text", "entry": "int8"}
_ADD_LINKS = """
INSERT INTO links (source, target, confidence, automatic, created_at, type)
SELECT * FROM unnest(%s::int8[], %s::int8[], %s::float8[], %s::int8[], %s::int8[], %s::text[]) ON CONFLICT DO NOTHING
"""
"""Takes a list for each column: a statement for each row took twice as long, and a COPY knows no conflicts."""
_LINE = dict.fromkeys(("no", *convert.RECORD_COLUMNS), "text") | {"blob": "bytea", "rows": "int8[]"}
_LINE |= dict.fromkeys(("no", "due_at", "updated_at", "partition", "created_at"), "int8")
_COPIED = {"entries": _ENTRIES, "index_records": _INDEX, "entry_tags": _TAGS, "records": _LINE}
"""Tables that are copied into, their columns and the types of these."""
_ADD_LINE = f"""
INSERT INTO records ({", ".join(convert.RECORD_COLUMNS)}) VALUES ({", ".join("?" * len(convert.RECORD_COLUMNS))}) RETURNING no
"""
_NUMBERS = """
WITH sequence AS MATERIALIZED (
  SELECT s FROM (SELECT pg_get_serial_sequence('{0}', 'no')::regclass AS s) AS q
  WHERE has_sequence_privilege(s, 'USAGE') AND NOT row_security_active('{0}')
) SELECT nextval(s) FROM sequence, generate_series(1, ?)
"""
"""Row numbers for what is new in a table; none for a role that may not copy."""
MOST_WAITING = 1000
FEW = 16
"""Row numbers that are written one by one, so that a statement is planned once: of a list the server knows no size. So many
lines of logs take fewer round trips without a COPY."""


@lru_cache(maxsize=512)
def _as_postgres(statement: str) -> str:
    return _HINTS.sub("", statement).replace("ifnull(", "coalesce(").replace("?", "%s")


def _listed(wanted: Sequence[Any]) -> list[Any]:
    return Numbers(wanted) if wanted and isinstance(wanted[0], int) else [*wanted]


class PostgresDb(psycopg.Connection[Row]):
    """See `store.sql.db.Db`."""

    size = """
    SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'
    """
    sealer = Sealer()
    """That of the store, once it is known."""

    def __init__(self, pgconn: psycopg.pq.abc.PGconn, row_factory: RowFactory[Row] = tuple_row) -> None:
        super().__init__(pgconn, row_factory)
        self._numbers: list[int] = []
        """Taken for entries that will be added in this transaction."""
        self._waiting: defaultdict[str, list[Row]] = defaultdict(list)
        """Rows of entries that were added and not sent, by table."""

    def execute(self, query: Any, params: Params | None = None, **how: Any) -> psycopg.Cursor[Row]:
        if query in ("COMMIT", "ROLLBACK"):
            self._numbers.clear()
        if query == "ROLLBACK":
            self._waiting.clear()
        self._send()
        return super().execute(query, params, **how)

    def _send(self) -> None:
        if self._waiting:
            waiting, self._waiting = self._waiting, defaultdict(list)
            for table, rows in waiting.items():
                self._copy(table, rows)

    def _copy(self, table: str, rows: Sequence[Row]) -> None:
        columns = _COPIED[table]
        into = f"COPY {table} ({', '.join(columns)}) FROM STDIN (FORMAT BINARY)"
        with self.cursor() as cursor, cursor.copy(into.encode()) as copy:
            copy.set_types([*columns.values()])
            for row in rows:
                copy.write_row(row)

    def ask(self, query: str, values: Sequence[Any] = ()) -> list[Row]:
        return self.execute(_as_postgres(query), values, binary=True).fetchall()

    def run(self, statement: str, values: Sequence[Any] = ()) -> int:
        return self.execute(_as_postgres(statement), values).rowcount

    def many(self, statement: str, rows: Sequence[Sequence[Any]]) -> int:
        self._send()
        with self.cursor() as cursor:
            cursor.executemany(_as_postgres(statement), rows)
            return cursor.rowcount if rows else 0

    def ask_each(self, query: str, rows: Sequence[Sequence[Any]]) -> list[list[Row]]:
        self._send()
        with self.cursor(binary=True) as cursor:
            cursor.executemany(_as_postgres(query), rows, returning=True)  # sends all before it reads an answer
            found = [cursor.fetchall()] if rows else []
            while cursor.nextset():
                found.append(cursor.fetchall())
        return found

    def among(self, wanted: Sequence[Any], values: list[Any]) -> str:
        if len(wanted) == 1:  # an index can give the order of the rows then
            values.append(wanted[0])
            return "= ?"
        if 1 < len(wanted) <= FEW and isinstance(wanted[0], int):
            values.extend(map(Int8, wanted))
            return f"IN ({', '.join('?' * len(wanted))})"
        values.append(_listed(wanted))
        return "= ANY(?)"

    def each(self, wanted: Sequence[Any], values: list[Any]) -> str:
        values.append(_listed(wanted))
        return f"unnest(?::{'bigint' if isinstance(values[-1], Numbers) else 'text'}[]) AS w (value)"

    def begins(self, column: str, prefix: str, values: list[Any]) -> str:
        values.append(prefix)
        return f"{column} ^@ ?"

    def seal(self, text: str | None) -> str | None:
        return self.sealer.seal(text)

    def opened(self, rows: list[Row], places: Sequence[int]) -> list[Row]:
        return self.sealer.open_columns(rows, places)

    def vector(self, vector: Vector | None) -> VectorBytes | None:
        return None if vector is None else VectorBytes(_HEAD.pack(len(vector), 0) + vector.astype(">f4").tobytes())

    def numbers(self, nos: Sequence[int]) -> list[int] | None:
        return [*nos] or None

    def expect(self, count: int) -> None:
        if count > 1:
            self._numbers = self._new_numbers("entries", count)[::-1]

    def _new_numbers(self, table: str, count: int) -> list[int]:
        return sorted(no for (no,) in self.ask(_NUMBERS.format(table), (count,)))

    def add_entry(self, partition_no: int, seq: int, new: NewEntry) -> int:
        row = self.sealer.seal_columns(convert.entry_row(new.entry), convert.SEALED)
        index = (*convert.index_row(new.index, None)[:-1], self.vector(new.vector), new.parts)
        tags = new.entry.tags
        if not self._numbers:
            ((no,),) = self.ask(_ADD_ENTRY, (partition_no, seq, seq, *row, *index, tags))
            return int(no)
        number, waiting = self._numbers.pop(), self._waiting
        waiting["entries"].append((number, partition_no, seq, seq, *row))
        waiting["index_records"].append((number, partition_no, *index))
        if tags:
            waiting["entry_tags"] += [(partition_no, tag, number) for tag in tags]
        if len(waiting["entries"]) >= MOST_WAITING:
            self._send()
        return number

    def add_lines(self, rows: Sequence[Row]) -> list[int]:
        numbers = self._new_numbers("records", len(rows)) if len(rows) > FEW else []
        if not numbers:
            return [no for ((no,),) in self.ask_each(_ADD_LINE, rows)]
        self._copy("records", [(no, *row) for no, row in zip(numbers, rows, strict=True)])
        return numbers

    def add_links(self, rows: Sequence[Row]) -> int:
        source, target, types, confidence, automatic, created_at = zip(*rows, strict=True)
        ends, when = (Numbers(source), Numbers(target)), (Numbers(automatic), Numbers(created_at))
        return self.execute(_ADD_LINKS, (*ends, [*confidence], *when, [*types])).rowcount

    def partitions_of(self, nos: Sequence[int], likely: int) -> Mapping[int, int]:
        where = f"no = ANY(?) AND partition NOT IN {HIDDEN}"
        return dict(self.ask(f"SELECT no, partition FROM entries WHERE {where}", (Numbers(nos),)))

    def blank(self, tenant: str, gone: Sequence[int], but: int) -> None:
        self.run(
            "UPDATE records SET body = '{}', rows = NULL WHERE tenant = ? AND rows && ?::bigint[] "
            "AND (partition IS NULL OR partition <> ?)",
            (tenant, [*gone], but),
        )


# -- vectors and lists of row numbers as psycopg sends and receives them -----------------------------------------------
#
# A vector is little-endian float32 bytes on our side, as in every other store. On the wire pgvector's type is its width,
# an unused number, and big-endian float32.

_HEAD = struct.Struct(">HH")
_ARRAY = struct.Struct(">iiIii")
"""Dimensions, whether there are NULLs, type of the items, how many, number of the first."""
_ITEM = np.dtype([("bytes", ">i4"), ("number", ">i8")])
_INT8, _INT8_ARRAY = 20, 1016


class Numbers(list[int]):
    """Row numbers, to be sent as one array; psycopg would look at each of them several times."""


class _NumbersDumper(Dumper):
    format, oid = Format.BINARY, _INT8_ARRAY

    def dump(self, obj: Numbers) -> Buffer:
        items = np.empty(len(obj), dtype=_ITEM)
        items["bytes"], items["number"] = 8, obj
        return _ARRAY.pack(1, 0, _INT8, len(obj), 1) + items.tobytes()


class VectorBytes(bytes):
    """A vector as pgvector reads it."""


class _VectorDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: VectorBytes) -> Buffer:
        return obj


class _VectorLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> bytes:
        numbers = array("f", bytes(data[_HEAD.size :]))  # a third of what numpy takes for so few
        if sys.byteorder == "little":
            numbers.byteswap()
        return numbers.tobytes()


def fetch_vector_type(connection: psycopg.Connection[Any]) -> TypeInfo:
    """The type as this database knows it."""
    found = TypeInfo.fetch(connection, "vector")
    if found is None:
        raise StoreError("this database has no pgvector: let its administrator run CREATE EXTENSION vector")
    return found


def register_vector(connection: psycopg.Connection[Any], info: TypeInfo) -> None:
    info.register(connection)
    dumper = type("_Dumper", (_VectorDumper,), {"oid": info.oid})
    connection.adapters.register_dumper(VectorBytes, dumper)
    connection.adapters.register_loader(info.oid, _VectorLoader)
    connection.adapters.register_dumper(Numbers, _NumbersDumper)
