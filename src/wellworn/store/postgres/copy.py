"""One moment of a store in Postgres as a SQLite file, row by row: both engines have the same tables and columns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from wellworn.store.convert import SEALED_COLUMNS, numbers_blob
from wellworn.store.postgres.db import PostgresDb
from wellworn.store.sql.db import Row
from wellworn.store.sqlite import SqliteStore
from wellworn.store.sqlite.driver import connect

TABLES = (
    *("partitions", "models", "entries", "index_records", "new_vectors", "entry_tags", "links", "replaced", "sessions"),
    *("turns", "removed", "records", "record_entries"),
)
_SEALED = {"entries": SEALED_COLUMNS, "replaced": ("snapshot",), "turns": ("speaker", "text"), "records": ("body",)}
_COUNTED = ("partitions", "entries", "records")
"""Tables whose numbers are never used again."""
_PAGE = 1000


def copy(db: PostgresDb, path: Path, secret: bytes | None) -> int:
    """Write what this connection sees to a new file, encrypted with this key; returns its number of entries."""
    SqliteStore(path, durability="normal", key=secret).close()
    with closing(connect(path, secret, isolation_level=None)) as file:
        file.execute("PRAGMA secure_delete = ON")
        file.execute("PRAGMA foreign_keys = OFF")  # links may lead to rows that come later
        file.execute("BEGIN")
        for table in TABLES:
            columns = [name for _, name, *_ in file.execute(f"PRAGMA table_info({table})")]
            into = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
            for page in _pages(db, table, columns):
                file.executemany(into, page)
        for table in _COUNTED:
            ((last,),) = db.ask(f"SELECT pg_sequence_last_value(pg_get_serial_sequence('{table}', 'no'))")
            file.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
            file.execute("INSERT INTO sqlite_sequence VALUES (?, ?)", (table, last or 0))
        file.execute("COMMIT")
        file.execute("PRAGMA foreign_keys = ON")
        for row in db.ask("SELECT no FROM partitions WHERE hidden"):  # what is being forgotten is not copied
            file.execute("DELETE FROM partitions WHERE no = ?", row)
        path.chmod(0o600)
        return int(file.execute("SELECT count(*) FROM entries").fetchone()[0])


def _pages(db: PostgresDb, table: str, columns: list[str]) -> Iterator[list[Row]]:
    """The rows of a table as SQLite has them."""
    sealed = [columns.index(name) for name in _SEALED.get(table, ())]
    with db.cursor(name="copied", binary=True) as cursor:
        cursor.execute(f"SELECT {', '.join(columns)} FROM {table}")
        while rows := cursor.fetchmany(_PAGE):
            yield [tuple(map(_plain, row)) for row in db.opened(rows, sealed)]


def _plain(value: Any) -> Any:  # a value of either driver
    """A text that cannot be opened becomes a value of another type: its row is damaged there, too."""
    if isinstance(value, list):
        return numbers_blob(value)
    return b"" if isinstance(value, Exception) else value
