"""A connection to Postgres as the shared statements use it. What belongs together is written in one statement, because each
one is a round trip; entries that are announced are sent together, before whatever comes next."""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from wellworn.core.errors import MissingExtra, StoreError
from wellworn.core.lazy import regex
from wellworn.store import convert
from wellworn.store.port import NewEntry, Vector
from wellworn.store.postgres.seal import Sealer
from wellworn.store.sql.db import Row

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
  INSERT INTO index_records (entry, partition, near_a, near_b, length, chars, traits, speaker, terms, counts, vector)
  SELECT no, partition, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM e
), t AS (
  INSERT INTO entry_tags SELECT e.partition, w.tag, e.no FROM e, unnest(?::text[]) AS w (tag)
)
SELECT no FROM e
"""


def _add_many(into: str, types: Sequence[str]) -> tuple[str, Sequence[str]]:
    """A statement that takes a list for each column: one of its own for each row took twice as long. And their types."""
    return f"INSERT INTO {into} SELECT * FROM unnest({', '.join(f'%b::{one}[]' for one in types)})", types


_TYPES = {int: "bigint", float: "float8", str: "text"}
_ADD_ENTRIES = _add_many(
    f"entries (no, partition, seq, index_seq, {', '.join(convert.ENTRY_COLUMNS)}) OVERRIDING SYSTEM VALUE",
    [*["bigint"] * 4, *(_TYPES[types[0]] for types in convert.COLUMN_TYPES[: len(convert.ENTRY_COLUMNS)])],
)
_ADD_INDEX = _add_many("index_records", [*["bigint"] * 8, "bytea", "bytea", "vector"])
_ADD_TAGS = _add_many("entry_tags", ["bigint", "text", "bigint"])
_ADD_LINKS = _add_many("links", ["bigint", "bigint", "text", "float8", "bigint", "bigint"])
_OF_ENTRY = len(convert.ENTRY_COLUMNS) + 2
"""Columns of a waiting entry between its partition and its index record."""
_ROWS = convert.RECORD_COLUMNS.index("rows")
_LINE = {name: "text" for name in convert.RECORD_COLUMNS if name != "rows"}  # a line of a log has none
_LINE |= dict.fromkeys(("due_at", "updated_at", "partition", "created_at"), "bigint") | {"blob": "bytea"}
_ADD_LINES = _add_many(f"records ({', '.join(_LINE)})", [*_LINE.values()])
_NUMBERS = """
SELECT nextval(s) FROM (SELECT pg_get_serial_sequence('entries', 'no')::regclass AS s) q, generate_series(1, ?)
WHERE has_sequence_privilege(s, 'USAGE')
"""
"""Row numbers for new entries; none for a role that may only write to tables."""
MOST_WAITING = 500
FEW = 16
"""Row numbers that are written one by one, so that a statement is planned once: of a list the server knows no size."""
_ADD_RECORD = (
    f"INSERT INTO records ({', '.join(convert.RECORD_COLUMNS)}) VALUES ({', '.join('?' * len(convert.RECORD_COLUMNS))}) "
    "ON CONFLICT {} RETURNING no, EXISTS (SELECT 1 FROM record_entries d WHERE d.record = records.no)"
)
_ADD_NEW_RECORD = _ADD_RECORD.format("DO NOTHING")
_PUT_RECORD = _ADD_RECORD.format(
    "(kind, key, tenant, coalesce(partition, 0)) WHERE key IS NOT NULL "
    f"DO UPDATE SET {', '.join(f'{column} = excluded.{column}' for column in convert.CHANGING)}"
)


@lru_cache(maxsize=512)
def _as_postgres(statement: str) -> str:
    return _HINTS.sub("", statement).replace("ifnull(", "coalesce(").replace("?", "%s")


def _listed(wanted: Sequence[Any]) -> list[Any]:
    return Numbers(wanted) if wanted and isinstance(wanted[0], int) else [*wanted]


class PostgresDb(psycopg.Connection[Row]):
    """See `store.sql.db.Db`."""

    visible = "NOT s.hidden"
    hidden = "(SELECT no FROM partitions WHERE hidden)"
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
        self._waiting: list[Row] = []
        """Entries that were added and not sent."""

    def execute(self, query: Any, params: Params | None = None, **how: Any) -> psycopg.Cursor[Row]:
        if query in ("COMMIT", "ROLLBACK"):
            self._numbers.clear()
        if query == "ROLLBACK":
            self._waiting.clear()
        self._send()
        return super().execute(query, params, **how)

    def _send(self) -> None:
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            nos, partitions, *columns, _ = zip(*waiting, strict=True)
            self._add_many(_ADD_ENTRIES, [nos, partitions, *columns[:_OF_ENTRY]])
            self._add_many(_ADD_INDEX, [nos, partitions, *columns[_OF_ENTRY:]])
            tagged = [(row[1], tag, row[0]) for row in waiting for tag in row[-1]]
            if tagged:
                self._add_many(_ADD_TAGS, [*zip(*tagged, strict=True)])

    def _add_many(
        self, what: tuple[str, Sequence[str]], columns: Sequence[Sequence[Any]], then: str = ""
    ) -> psycopg.Cursor[Row]:
        statement, types = what
        lists = zip(columns, types, strict=True)
        return self.execute(statement + then, [ColumnValues(column, one, self._kind(one)) for column, one in lists])

    def _kind(self, type_: str) -> int:
        """The number of a type in this database."""
        info = self.adapters.types.get(type_)
        if info is None:
            raise StoreError(f"this database has no type {type_}")
        return info.oid

    def ask(self, query: str, values: Sequence[Any] = ()) -> list[Row]:
        return self.execute(_as_postgres(query), values, binary=True).fetchall()

    def run(self, statement: str, values: Sequence[Any] = ()) -> int:
        return self.execute(_as_postgres(statement), values).rowcount

    def many(self, statement: str, rows: Sequence[Sequence[Any]]) -> int:
        self._send()
        with self.cursor() as cursor:
            cursor.executemany(_as_postgres(statement), rows)
            return cursor.rowcount if rows else 0

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
        blob = convert.vector_blob(vector)
        return None if blob is None else VectorBytes(blob)

    def numbers(self, nos: Sequence[int]) -> list[int] | None:
        return [*nos] or None

    def expect(self, count: int) -> None:
        if count > 1:
            self._numbers = sorted((no for (no,) in self.ask(_NUMBERS, (count,))), reverse=True)

    def add_entry(self, partition_no: int, seq: int, new: NewEntry) -> int:
        row = (
            self.seal(value) if place in convert.SEALED else value
            for place, value in enumerate(convert.entry_row(new.entry))
        )
        index = (*convert.index_row(new.index, None)[:-1], self.vector(new.vector))
        values = (partition_no, seq, seq, *row, *index, new.entry.tags)
        if not self._numbers:
            ((no,),) = self.ask(_ADD_ENTRY, values)
            return int(no)
        number = self._numbers.pop()
        self._waiting.append((number, *values))
        if len(self._waiting) >= MOST_WAITING:
            self._send()
        return number

    def put_record(self, row: Row, *, replace: bool) -> tuple[int, bool] | None:
        found = self.ask(_PUT_RECORD if replace else _ADD_NEW_RECORD, row)
        return (found[0][0], found[0][1]) if found else None

    def add_lines(self, rows: Sequence[Row]) -> list[int]:
        columns = [*zip(*rows, strict=True)]
        made = self._add_many(_ADD_LINES, columns[:_ROWS] + columns[_ROWS + 1 :], " RETURNING no")
        return sorted(no for (no,) in made)

    def add_links(self, rows: Sequence[Row]) -> int:
        return self._add_many(_ADD_LINKS, [*zip(*rows, strict=True)], " ON CONFLICT DO NOTHING").rowcount

    def partitions_of(self, nos: Sequence[int], likely: int) -> Mapping[int, int]:
        where = f"no = ANY(?) AND partition NOT IN {self.hidden}"
        return dict(self.ask(f"SELECT no, partition FROM entries WHERE {where}", (Numbers(nos),)))

    def hide(self, partition_no: int) -> None:
        self.run("UPDATE partitions SET hidden = TRUE, seq = seq + 1 WHERE no = ?", (partition_no,))

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
_SIZE = struct.Struct(">i")
_NULL = _SIZE.pack(-1)


class Numbers(list[int]):
    """Row numbers, to be sent as one array; psycopg would look at each of them several times."""


class _NumbersDumper(Dumper):
    format, oid = Format.BINARY, _INT8_ARRAY

    def dump(self, obj: Numbers) -> Buffer:
        items = np.empty(len(obj), dtype=_ITEM)
        items["bytes"], items["number"] = 8, obj
        return _ARRAY.pack(1, 0, _INT8, len(obj), 1) + items.tobytes()


class ColumnValues(list[Any]):
    """Values of one type or None, to be sent as one array; psycopg would look at each of them several times."""

    def __init__(self, values: Sequence[Any], type_: str, kind: int) -> None:
        """`kind` is the number of the type in the database."""
        super().__init__(values)
        self.type, self.kind = type_, kind


class _ColumnDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: ColumnValues) -> Buffer:
        size, some = _SIZE.pack, None in obj
        if obj.type in _OF_NUMBERS and not some:
            numbers = np.empty(len(obj), dtype=[("bytes", ">i4"), ("number", _OF_NUMBERS[obj.type])])
            numbers["bytes"], numbers["number"] = 8, obj
            items = numbers.tobytes()
        else:
            read = _BYTES[obj.type]
            sent = [None if value is None else read(value) for value in obj] if some else [*map(read, obj)]
            items = b"".join([_NULL if item is None else size(len(item)) + item for item in sent])
        return _ARRAY.pack(1, some, obj.kind, len(obj), 1) + items


class VectorBytes(bytes):
    """The float32 values of a vector, to be written into a column of pgvector's type."""


class _VectorDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: VectorBytes) -> Buffer:
        return as_sent(obj)


def as_sent(vector: VectorBytes) -> bytes:
    return _HEAD.pack(len(vector) // 4, 0) + np.frombuffer(vector, dtype="<f4").astype(">f4").tobytes()


_OF_NUMBERS = {"bigint": ">i8", "float8": ">f8"}
_BYTES: dict[str, Callable[[Any], bytes]] = {
    "text": str.encode,
    "bytea": bytes,
    "bigint": struct.Struct(">q").pack,
    "float8": struct.Struct(">d").pack,
    "vector": as_sent,
}


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
    connection.adapters.register_dumper(ColumnValues, _ColumnDumper)
