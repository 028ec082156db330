"""Copying what can still be read of a file with broken pages into a new one, row by row. The old file is not touched.

Rows are read in order; behind a broken page they are looked up one by one, since each lookup takes its own way through
the tree. Where rows are missing, or not even the list of tables can be read, it is all done once more with the list of an
empty store in its place: files made by one release have their tables at the same places. Tags and the list of entries
that records name follow from the rows.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import field
from pathlib import Path

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import StoreCorrupt
from wellworn.core.values import Progress, unwatched
from wellworn.store.sqlite.connection import Connections
from wellworn.store.sqlite.db import BROKEN
from wellworn.store.sqlite.driver import connect

TABLES = (
    *("partitions", "models", "entries", "index_records", "new_vectors", "replaced", "sessions", "turns", "records"),
    *("links", "removed"),
)
_BY_KEY = {"links": "source", "removed": None}
"""Tables without row numbers, and the column by which their rows are looked up."""
LOST_TENANT = "salvaged"
"""Has the entries whose partition cannot be read any more, each partition as a user."""
_OF_NOBODY = """
INSERT INTO partitions (no, tenant, layer, layer_id, seq)
SELECT partition, ?, 'user', partition, max(seq) FROM entries
WHERE partition NOT IN (SELECT no FROM partitions) GROUP BY partition
"""
_ONE_BY_ONE = 500
"""Row numbers that are looked up before reading in order is tried again."""
_IN_VAIN = 2_000
"""Lookups that fail one after the other before the rest of a table is given up."""
_FARTHEST = 2_000_000
"""Row numbers that are looked up at most: a damaged number may be anything."""
_PAGE_BYTES = 4096
_PAGE_COUNT = 28
"""Where the header of a file says how many pages it has."""


@dataclass(frozen=True, kw_only=True)
class Salvaged:
    """Rows that were copied, and how many places could not be read (each at most one row), by table."""

    rows: dict[str, int] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=dict)


def salvage(source: Path, target: Path, *, secret: bytes | None = None, progress: Progress = unwatched) -> Salvaged:
    """Copy every readable row of a damaged file into a new one."""
    rows: dict[str, int] = {}
    lost: dict[str, int] = {}
    Connections(target, durability="normal", secret=secret).close()
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        copy = _copied(source, Path(folder))
        pattern = target.read_bytes()  # an empty store
        with closing(connect(target, secret, isolation_level=None)) as new:
            new.execute("BEGIN")
            if secret is not None or _knows_tables(copy, secret):
                lost = _copy_rows(copy, new, secret)
            if secret is None and (not lost or any(lost.values())):
                _put_list_of_tables(copy, pattern)
                again = _copy_rows(copy, new, secret)
                lost = {table: min(lost.get(table, again[table]), again[table]) for table in TABLES}
            new.execute(_OF_NOBODY, (LOST_TENANT,))
            for number, table in enumerate(TABLES, 1):
                rows[table] = new.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                progress(number, len(TABLES))
            new.execute(
                "INSERT OR IGNORE INTO record_entries SELECT r.no, e.no FROM records r, json_each(r.names) j "
                "JOIN entries e ON e.id = j.value WHERE json_valid(r.names) AND r.names <> '[]'"
            )
            new.execute("COMMIT")
    return Salvaged(rows=rows, lost={table: number for table, number in lost.items() if number})


def _copy_rows(source: Path, new: sqlite3.Connection, secret: bytes | None) -> dict[str, int]:
    """Copy what is not there yet; returns how many places could not be read, by table."""
    lost: dict[str, int] = {}
    with closing(connect(source, secret, isolation_level=None)) as old:
        old.text_factory = lambda value: value.decode("utf-8", "replace")
        for table in TABLES:
            columns = [name for _, name, *_ in new.execute(f"PRAGMA table_info({table})")]
            with suppress(*BROKEN):  # a file of an earlier release has fewer
                there = {name for _, name, *_ in old.execute(f"PRAGMA table_info({table})")}
                columns = [name for name in columns if name in there] or columns
            marks = ", ".join("?" * len(columns))
            reader = _Reader(old, table, columns)
            for row in reader.rows():
                with suppress(sqlite3.Error):  # what breaks a rule of the new file, as a number that is no number
                    new.execute(f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({marks})", row)
            lost[table] = reader.lost
    return lost


class _Reader:
    """The rows of one table of a damaged file."""

    def __init__(self, db: sqlite3.Connection, table: str, columns: list[str]) -> None:
        self._db = db
        self._table = table
        self._columns = ", ".join(columns)
        self.lost = 0
        self._in_vain = 0

    def rows(self) -> Iterator[tuple[object, ...]]:
        if self._table in _BY_KEY:
            yield from self._rows_by_key(_BY_KEY[self._table])
            return
        after, top = 0, self._top()
        while True:
            try:
                query = f"SELECT rowid, {self._columns} FROM {self._table} NOT INDEXED WHERE rowid > ? ORDER BY rowid"
                for number, *row in self._db.execute(query, (after,)):
                    after = number if after < number <= top else after
                    yield tuple(row)
            except BROKEN:
                if after >= top:
                    return
            else:
                return
            before, failed = self.lost, self._in_vain
            for number in range(after + 1, min(after + _ONE_BY_ONE, top) + 1):
                yield from self._looked_up("rowid", number)
                after = number
            self._in_vain = failed + _ONE_BY_ONE if self.lost - before >= _ONE_BY_ONE else 0
            if self._in_vain >= _IN_VAIN:
                return

    def _looked_up(self, column: str, value: int) -> Iterator[tuple[object, ...]]:
        try:
            query = f"SELECT {self._columns} FROM {self._table} WHERE {column} = ?"
            yield from self._db.execute(query, (value,)).fetchall()
        except BROKEN:
            self.lost += 1

    def _rows_by_key(self, column: str | None) -> Iterator[tuple[object, ...]]:
        try:
            yield from self._db.execute(f"SELECT {self._columns} FROM {self._table}")
        except BROKEN:
            self.lost += 1
            for number in range(1, self._top("entries") + 1) if column else ():
                yield from self._looked_up(column or "", number)

    def _top(self, table: str = "") -> int:
        """The highest row number, as far as anything tells."""
        name = table or self._table
        found = [0]
        for query in (
            f"SELECT max(rowid) FROM {name}",
            f"SELECT seq FROM sqlite_sequence WHERE name = '{name}'",
            f"SELECT count(*) FROM {name}",
        ):
            with suppress(*BROKEN):
                found += [row[0] for row in self._db.execute(query) if isinstance(row[0], int)]
        return min(max(found) if max(found) else _FARTHEST // 100, _FARTHEST)


def _copied(source: Path, folder: Path) -> Path:
    """The file with its log and journal, where it may be written to."""
    copy = folder / "damaged.db"
    for ending in ("", "-wal", "-journal"):
        with suppress(FileNotFoundError):
            shutil.copyfile(f"{source}{ending}", f"{copy}{ending}")
    if not copy.exists():
        raise StoreCorrupt(f"there is no file {str(source)!r}")
    return copy


def _put_list_of_tables(path: Path, pattern: bytes) -> None:
    """Replace the pages that list the tables by those of an empty store."""
    with path.open("r+b") as file:
        for start in range(0, len(pattern), _PAGE_BYTES):
            cells = start + (100 if start == 0 else 0) + 3
            if not start or any(pattern[cells : cells + 2]):  # in an empty store only the list of tables has rows
                file.seek(start)
                file.write(pattern[start : start + _PAGE_BYTES])
        pages = file.seek(0, os.SEEK_END) // _PAGE_BYTES
        file.seek(_PAGE_COUNT)
        file.write(pages.to_bytes(4))
    Path(f"{path}-wal").unlink(missing_ok=True)  # it might bring a damaged page back


def _knows_tables(path: Path, secret: bytes | None) -> bool:
    try:
        with closing(connect(path, secret)) as connection:
            names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            return names.issuperset(TABLES)
    except BROKEN:
        return False
