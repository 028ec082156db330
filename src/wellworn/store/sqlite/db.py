"""A connection to SQLite as the shared statements use it, and the driver's errors as our own."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any

from wellworn.core.errors import StoreBusy, StoreCorrupt, StoreError
from wellworn.store import convert
from wellworn.store.port import NewEntry
from wellworn.store.sql.db import HIDDEN, Row

MOST_MARKS = 100
"""Values that are given one by one; more are given as one JSON list."""
ROWS_AT_ONCE = 32
"""Rows that one statement inserts: more than that gain little."""
MOST_JOINED = 500
"""Row numbers that are looked up in one join."""
BROKEN = (sqlite3.Error, UnicodeDecodeError)
"""What a damaged file ends in; the second where the message would quote the damage."""


@cache
def _insert(table: str, columns: tuple[str, ...], rows: int = 1) -> str:
    row = f"({', '.join('?' * len(columns))})"
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES {', '.join([row] * rows)}"


_INSERT_ENTRY = _insert("entries", ("partition", "seq", "index_seq", *convert.ENTRY_COLUMNS))
_INSERT_INDEX = _insert(
    "index_records",
    (
        *("entry", "partition", "near_a", "near_b", "length", "chars", "traits", "speaker"),
        *("terms", "counts", "vector", "parts"),
    ),
)
_dumps = json.JSONEncoder(ensure_ascii=False).encode

if TYPE_CHECKING:
    _Driver = sqlite3.Connection
else:  # a class of either library, see `driver`
    _Driver = object


class SqliteWords(_Driver):
    """What the shared statements need beside the driver's own methods: see `store.sql.db.Db`."""

    size = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"

    def ask(self, query: str, values: Sequence[Any] = ()) -> list[Row]:
        """Text that is not UTF-8 comes as bytes, so that it costs its own row only."""
        try:
            return self.execute(query, values).fetchall()
        except Exception as error:  # of either driver
            if "decode" not in str(error):
                raise
        self.text_factory = _text
        try:
            return self.execute(query, values).fetchall()
        finally:
            self.text_factory = str

    def run(self, statement: str, values: Sequence[Any] = ()) -> int:
        return self.execute(statement, values).rowcount

    def many(self, statement: str, rows: Sequence[Sequence[Any]]) -> int:
        return self.executemany(statement, rows).rowcount if rows else 0

    def ask_each(self, query: str, rows: Sequence[Sequence[Any]]) -> list[list[Row]]:
        return [self.ask(query, row) for row in rows]

    def among(self, wanted: Sequence[Any], values: list[Any]) -> str:
        if len(wanted) == 1:
            values.append(wanted[0])
            return "= ?"
        if len(wanted) <= MOST_MARKS:
            values.extend(wanted)
            return f"IN ({', '.join('?' * len(wanted))})"
        return f"IN (SELECT value FROM {self.each(wanted, values)})"

    def each(self, wanted: Sequence[Any], values: list[Any]) -> str:
        values.append(_dumps(list(wanted)))
        return "json_each(?)"

    def begins(self, column: str, prefix: str, values: list[Any]) -> str:
        """A range, which an index serves; it ends at a byte that no text has."""
        values += [prefix, prefix.encode() + b"\xff"]
        return f"{column} >= ? AND {column} < CAST(? AS TEXT)"

    def seal(self, text: str | None) -> str | None:
        """As it is: a key encrypts the whole file."""
        return text

    def opened(self, rows: list[Row], places: Sequence[int]) -> list[Row]:
        return rows

    vector = staticmethod(convert.vector_blob)

    def numbers(self, nos: Sequence[int]) -> bytes | None:
        return convert.numbers_blob(nos) if nos else None

    def expect(self, count: int) -> None:
        """Nothing: each is written at once."""

    def add_entry(self, partition_no: int, seq: int, new: NewEntry) -> int:
        no = self.execute(_INSERT_ENTRY, (partition_no, seq, seq, *convert.entry_row(new.entry))).lastrowid
        assert no is not None  # noqa: S101  an INSERT always has one
        self.execute(_INSERT_INDEX, (no, partition_no, *convert.index_row(new.index, new.vector), new.parts))
        self.many("INSERT INTO entry_tags VALUES (?, ?, ?)", [(partition_no, tag, no) for tag in new.entry.tags])
        return no

    def add_lines(self, rows: Sequence[Row]) -> list[int]:
        self._add("records", convert.RECORD_COLUMNS, rows)
        (last,) = self.execute("SELECT seq FROM sqlite_sequence WHERE name = 'records'").fetchone()
        return [*range(last - len(rows) + 1, last + 1)]

    def add_links(self, rows: Sequence[Row]) -> int:
        return self._add("links", ("source", "target", "type", "confidence", "automatic", "created_at"), rows)

    def _add(self, table: str, columns: tuple[str, ...], rows: Sequence[Row]) -> int:
        """Insert those of the rows that are not there, several in a statement; how many."""
        added = 0
        for start in range(0, len(rows), ROWS_AT_ONCE):
            some = rows[start : start + ROWS_AT_ONCE]
            insert = f"{_insert(table, columns, len(some))} ON CONFLICT DO NOTHING"
            added += self.execute(insert, [*chain.from_iterable(some)]).rowcount
        return added

    def partitions_of(self, nos: Sequence[int], likely: int) -> Mapping[int, int]:
        """First whether they are all on the likely partition: its index is a few pages where the entries are many; and
        joined, not IN, for which SQLite would sort the numbers into a table first: a third of the time."""
        if likely >= 0 and len(nos) <= MOST_JOINED:
            (count,) = self.execute(
                f"WITH asked (no) AS (VALUES {', '.join(['(?)'] * len(nos))}) SELECT count(*) FROM asked "
                "CROSS JOIN entries e INDEXED BY entries_by_partition ON e.partition = ? AND e.no = asked.no",
                (*nos, likely),
            ).fetchone()
            if count == len(nos):
                return dict.fromkeys(nos, likely)
        values: list[Any] = []
        where = f"no {self.among(nos, values)} AND partition NOT IN {HIDDEN}"
        return dict(self.execute(f"SELECT no, partition FROM entries WHERE {where}", values).fetchall())

    def blank(self, tenant: str, gone: Sequence[int], but: int) -> None:
        rows = self.execute(
            "SELECT no, rows FROM records INDEXED BY records_with_rows WHERE tenant = ? AND rows IS NOT NULL "
            "AND (partition IS NULL OR partition <> ?)",
            (tenant, but),
        ).fetchall()
        nos = {*gone}
        about = [(no,) for no, blob in rows if not nos.isdisjoint(convert.numbers_from(blob))]
        self.many("UPDATE records SET body = '{}', rows = NULL WHERE no = ?", about)


class SqliteDb(SqliteWords, sqlite3.Connection):
    """A connection of Python's own library."""


def _text(value: bytes) -> str | bytes:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


@contextmanager
def translated() -> Iterator[None]:
    """Driver errors as `StoreError`s: nothing of `sqlite3` escapes the store."""
    try:
        yield
    except BROKEN as error:
        raise translation(error) from error


def translation(error: Exception) -> StoreError:
    """What an error of the driver means."""
    text = str(error)
    if isinstance(error, sqlite3.OperationalError):
        if "locked" in text or "busy" in text:
            return StoreBusy(f"another writer held the file for too long ({text})")
        return StoreError(f"the store could not be read or written: {text}")
    if isinstance(error, sqlite3.IntegrityError):
        return StoreError(f"refused by the store: {text}")
    if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.ProgrammingError):
        return StoreCorrupt(f"the file is damaged or no SQLite file: {text} (`wellworn doctor` says what is lost)")
    if isinstance(error, UnicodeDecodeError):
        return StoreCorrupt("the file is damaged: its list of tables is not text (see `wellworn doctor`)")
    return StoreError(f"the store failed: {text}")
