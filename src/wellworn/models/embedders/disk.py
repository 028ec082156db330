"""Level 2: vectors in a SQLite file of their own, the least recently used thrown out.

Its own file, because it is a cache: it needs no backup and no durability, may be deleted at any time, may be shared by
the stores of one machine, and writing to it must not wait for, or hold up, a writer of memories. Removed vectors are
overwritten (`secure_delete`), and the log is emptied when everything goes.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from wellworn.core.errors import InvalidInput
from wellworn.core.locks import ForkLock
from wellworn.models.embedders.base import Matrix

_log = logging.getLogger("wellworn.models.embedders")
_AT_ONCE = 500
T = TypeVar("T")
_SCHEMA = """
CREATE TABLE IF NOT EXISTS vectors (
    key BLOB PRIMARY KEY,     -- model and text, hashed
    vector BLOB NOT NULL,     -- little-endian float32
    used INTEGER NOT NULL     -- nanoseconds since 1970
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS vectors_used ON vectors (used);
"""


class DiskVectors:
    """At most `max_entries` vectors in a file; safe between threads and processes. A broken file is a miss."""

    label = "l2"

    def __init__(self, path: str | Path, *, max_entries: int = 100_000) -> None:
        if max_entries < 1:
            raise InvalidInput("max_entries", f"{max_entries} is less than 1", "leave the level out instead")
        self._path = Path(path)
        self._max_entries = max_entries
        self._lock = ForkLock()
        self._db: sqlite3.Connection | None = None
        self._owner = 0
        self.errors = 0

    def get(self, keys: Sequence[bytes], *, width: int) -> dict[bytes, Matrix]:
        def read(db: sqlite3.Connection) -> dict[bytes, Matrix]:
            found: dict[bytes, Matrix] = {}
            for start in range(0, len(keys), _AT_ONCE):
                some = keys[start : start + _AT_ONCE]
                marks = ", ".join("?" * len(some))
                rows = db.execute(f"SELECT key, vector FROM vectors WHERE key IN ({marks})", some)  # noqa: S608
                vectors = {key: np.frombuffer(vector, dtype="<f4") for key, vector in rows}
                found |= {key: row for key, row in vectors.items() if row.shape == (width,)}
            if found:
                now = time.time_ns()
                db.executemany("UPDATE vectors SET used = ? WHERE key = ?", [(now, key) for key in found])
            return found

        return self._tried(read) or {}

    def put(self, vectors: Mapping[bytes, Matrix]) -> None:
        now = time.time_ns()
        rows = [(key, np.asarray(row, dtype="<f4").tobytes(), now) for key, row in vectors.items()]

        def write(db: sqlite3.Connection) -> None:
            db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)
            (count,) = db.execute("SELECT count(*) FROM vectors").fetchone()
            if count > self._max_entries:
                db.execute(
                    "DELETE FROM vectors WHERE key IN (SELECT key FROM vectors ORDER BY used, key LIMIT ?)",
                    (count - self._max_entries,),
                )

        self._tried(write)

    def drop(self, keys: Sequence[bytes]) -> int:
        def remove(db: sqlite3.Connection) -> int:
            return sum(db.execute("DELETE FROM vectors WHERE key = ?", (key,)).rowcount for key in keys)

        return self._tried(remove) or 0

    def clear(self) -> int:
        dropped = self._tried(lambda db: db.execute("DELETE FROM vectors").rowcount) or 0
        self._tried(lambda db: db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall(), within=False)
        return dropped

    def close(self) -> None:
        with self._lock:
            if self._db is not None and self._owner == os.getpid():
                self._db.close()
            self._db = None

    def _tried(self, work: Callable[[sqlite3.Connection], T], *, within: bool = True) -> T | None:
        """The work in one transaction; what goes wrong there is counted and logged, and nobody fails for it."""
        with self._lock:
            try:
                db = self._opened()
                if within:
                    db.execute("BEGIN IMMEDIATE")
                done = work(db)
                if within:
                    db.execute("COMMIT")
            except sqlite3.Error as error:
                self.errors += 1
                _log.warning("the vector cache %s failed: %s", self._path.name, type(error).__name__)
                if self._db is not None and self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                return None
            return done

    def _opened(self) -> sqlite3.Connection:
        if self._db is None or self._owner != os.getpid():  # a connection is not carried over a fork
            db = sqlite3.connect(self._path, timeout=1.0, isolation_level=None, check_same_thread=False)
            try:
                for pragma in ("journal_mode = WAL", "synchronous = OFF", "secure_delete = ON"):
                    db.execute(f"PRAGMA {pragma}").fetchall()
                db.executescript(_SCHEMA)
            except sqlite3.Error:
                db.close()
                raise
            self._db, self._owner = db, os.getpid()
        return self._db
