"""Copying what can still be read of a file with broken pages into a new one, row by row. The old file is not touched.

Rows are read in order; behind a broken page they are looked up one by one, since each lookup takes its own way through
the tree. Where not even the list of tables can be read, that of an empty store is put in its place: files made by one
release have their tables at the same places. Tags and the list of entries that records name follow from the rows.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from wellworn.core.errors import StoreCorrupt
from wellworn.core.values import Progress
from wellworn.store.sqlite.connection import Connections
from wellworn.store.sqlite.driver import connect

TABLES = (
    *("partitions", "models", "entries", "index_records", "new_vectors", "replaced", "sessions", "turns", "records"),
    *("links", "removed"),
)
_BY_KEY = {"links": "source", "removed": None}
"""Tables without row numbers, and the column by which their rows are looked up."""
_ONE_BY_ONE = 500
"""Row numbers that are looked up before reading in order is tried again."""
_IN_VAIN = 2_000
"""Lookups that fail one after the other before the rest of a table is given up."""
_FARTHEST = 2_000_000
"""Row numbers that are looked up at most: a damaged number may be anything."""
_PAGE_BYTES = 4096


@dataclass(frozen=True, kw_only=True)
class Salvaged:
    """Rows that were copied, and how many places could not be read (each at most one row), by table."""

    rows: dict[str, int] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=dict)


def salvage(source: Path, target: Path, *, secret: bytes | None = None, progress: Progress | None = None) -> Salvaged:
    """Copy every readable row of a damaged file into a new one."""
    rows: dict[str, int] = {}
    lost: dict[str, int] = {}
    Connections(target, durability="off", secret=secret).close()
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".salvage-") as folder:
        copy = _copied(source, Path(folder))
        with closing(connect(target, secret, isolation_level=None)) as new, _readable(copy, target, secret) as old:
            new.execute("BEGIN")
            for number, table in enumerate(TABLES):
                columns = [name for _, name, *_ in new.execute(f"PRAGMA table_info({table})")]
                marks = ", ".join("?" * len(columns))
                reader = _Reader(old, table, columns)
                for row in reader.rows():
                    with suppress(sqlite3.Error):  # what breaks a rule of the new file, as a number that is no number
                        new.execute(f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({marks})", row)
                rows[table] = new.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                lost[table] = reader.lost
                if progress is not None:
                    progress(number + 1, len(TABLES))
            new.execute(
                "INSERT OR IGNORE INTO record_entries SELECT r.no, e.no FROM records r, json_each(r.names) j "
                "JOIN entries e ON e.id = j.value WHERE json_valid(r.names) AND r.names <> '[]'"
            )
            new.execute("COMMIT")
    return Salvaged(rows=rows, lost={table: number for table, number in lost.items() if number})


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
            except sqlite3.Error:
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
        except sqlite3.Error:
            self.lost += 1

    def _rows_by_key(self, column: str | None) -> Iterator[tuple[object, ...]]:
        try:
            yield from self._db.execute(f"SELECT {self._columns} FROM {self._table}")
        except sqlite3.Error:
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
            with suppress(sqlite3.Error):
                found += [row[0] for row in self._db.execute(query) if isinstance(row[0], int)]
        return min(max(found) if max(found) else _FARTHEST // 100, _FARTHEST)


def _copied(source: Path, folder: Path) -> Path:
    """The file with its log, where it may be written to."""
    copy = folder / "damaged.db"
    for ending in ("", "-wal"):
        with suppress(FileNotFoundError):
            shutil.copyfile(f"{source}{ending}", f"{copy}{ending}")
    if not copy.exists():
        raise StoreCorrupt(f"there is no file {str(source)!r}")
    return copy


@contextmanager
def _readable(path: Path, empty: Path, secret: bytes | None) -> Iterator[sqlite3.Connection]:
    """A connection that knows the tables."""
    if secret is None and not _knows_tables(path, secret):
        with path.open("r+b") as file, empty.open("rb") as pattern:
            file.write(pattern.read(_PAGE_BYTES))
        Path(f"{path}-wal").unlink(missing_ok=True)  # it might bring the damaged page back
    with closing(connect(path, secret, isolation_level=None)) as connection:
        connection.text_factory = lambda value: value.decode("utf-8", "replace")
        yield connection


def _knows_tables(path: Path, secret: bytes | None) -> bool:
    try:
        with closing(connect(path, secret)) as connection:
            names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            return names.issuperset(TABLES)
    except sqlite3.Error:
        return False
