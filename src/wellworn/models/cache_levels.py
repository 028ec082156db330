"""Levels of the vector cache behind the process: a SQLite file that outlives it, and a Redis that machines share.

Both store vectors under hashes and count their failures instead of raising them. The file is not the memory's own,
because it is a cache: it needs no backup and no durability, may be deleted at any time, and must not hold up a writer
of memories.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from wellworn.core.errors import InvalidInput, MissingExtra
from wellworn.core.locks import ForkLock
from wellworn.models.port import Matrix

_log = logging.getLogger("wellworn.models")
TTL_S = 3600
REST_S = 30.0
"""How long a Redis that failed is left alone: a recall must not wait for a dead server again and again."""
TIMEOUT_S = 0.25

_KEYS_AT_ONCE, _PAGE = 500, 1000
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
    """At most `max_entries` vectors in a file; safe between threads and processes. A broken file is a miss.

    Removed vectors are overwritten (`secure_delete`), and the log is emptied when everything is cleared.
    """

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
            for start in range(0, len(keys), _KEYS_AT_ONCE):
                some = keys[start : start + _KEYS_AT_ONCE]
                marks = ", ".join("?" * len(some))
                rows = db.execute(f"SELECT key, vector FROM vectors WHERE key IN ({marks})", some)  # noqa: S608
                found |= {key: np.frombuffer(vector, dtype="<f4") for key, vector in rows if len(vector) == 4 * width}
            now = time.time_ns()
            db.executemany("UPDATE vectors SET used = ? WHERE key = ?", [(now, key) for key in found])
            return found

        return self._try(read) or {}

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

        self._try(write)

    def drop(self, keys: Sequence[bytes]) -> int:
        def remove(db: sqlite3.Connection) -> int:
            return sum(db.execute("DELETE FROM vectors WHERE key = ?", (key,)).rowcount for key in keys)

        return self._try(remove) or 0

    def clear(self) -> int:
        dropped = self._try(lambda db: db.execute("DELETE FROM vectors").rowcount) or 0
        self._try(lambda db: db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall(), transaction=False)
        return dropped

    def close(self) -> None:
        with self._lock:
            if self._db is not None and self._owner == os.getpid():
                self._db.close()
            self._db = None

    def _try(self, work: Callable[[sqlite3.Connection], T], *, transaction: bool = True) -> T | None:
        """The work in one transaction; a fault is counted and logged, and gives None."""
        with self._lock:
            try:
                db = self._opened()
                if transaction:
                    db.execute("BEGIN IMMEDIATE")
                done = work(db)
                if transaction:
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


class RedisVectors:
    """Vectors under `prefix`, each for `ttl_s`; `client` is a URL (extra `redis`) or a client of `redis`.

    A Redis that fails is left alone for a while. One that could not be told to drop vectors is not read again until it
    was cleared. Safe between threads and processes.
    """

    label = "l3"

    def __init__(
        self,
        client: Any,
        *,
        ttl_s: int = TTL_S,
        prefix: str = "wellworn:vector:",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if ttl_s < 1:
            raise InvalidInput("ttl_s", f"{ttl_s} is less than a second", "leave the level out instead")
        if not prefix:
            raise InvalidInput("prefix", "is empty", "clearing it would take every key of the server")
        self._redis = _connected(client) if isinstance(client, str) else client
        self._ttl_s = ttl_s
        self._prefix = prefix.encode()
        self._clock = clock
        self._lock = ForkLock()
        self._rest_until = float("-inf")
        self._must_clear = False
        self.errors = 0

    def get(self, keys: Sequence[bytes], *, width: int) -> dict[bytes, Matrix]:
        rows: list[bytes | None] = self._try(lambda: self._redis.mget([self._named(key) for key in keys]), [])
        pairs = zip(keys, rows, strict=False)
        return {key: np.frombuffer(row, dtype="<f4") for key, row in pairs if row and len(row) == 4 * width}

    def put(self, vectors: Mapping[bytes, Matrix]) -> None:
        def write() -> None:
            with self._redis.pipeline(transaction=False) as pipe:
                for key, row in vectors.items():
                    pipe.set(self._named(key), np.asarray(row, dtype="<f4").tobytes(), ex=self._ttl_s)
                pipe.execute()

        self._try(write, None)

    def drop(self, keys: Sequence[bytes]) -> int:
        if not keys:
            return 0
        dropped = self._try(lambda: int(self._redis.unlink(*map(self._named, keys))), -1)
        if dropped < 0:
            self._must_clear = True
        return max(dropped, 0)

    def clear(self) -> int:
        with self._lock:
            self._must_clear = True  # until it worked, now or when the server is asked next
            return 0 if self._resting() else max(self._clear(), 0)

    def close(self) -> None:
        self._redis.close()

    def _named(self, key: bytes) -> bytes:
        return self._prefix + key.hex().encode()

    def _resting(self) -> bool:
        return self._clock() < self._rest_until

    def _clear(self) -> int:
        """How many vectors were dropped; -1 when that failed."""

        def unlink_all() -> int:
            pattern = b"".join(b"\\" + bytes([c]) if c in b"*?[]\\^" else bytes([c]) for c in self._prefix) + b"*"
            keys = list(self._redis.scan_iter(match=pattern, count=_PAGE))
            pages = [keys[start : start + _PAGE] for start in range(0, len(keys), _PAGE)]
            return sum(int(self._redis.unlink(*page)) for page in pages)

        dropped = self._ask(unlink_all, -1)
        if dropped >= 0:
            self._must_clear = False
        return dropped

    def _try(self, ask: Callable[[], T], otherwise: T) -> T:
        """The answer, or `otherwise` while the server rests, cannot be cleared, or fails."""
        with self._lock:
            if self._resting() or (self._must_clear and self._clear() < 0):
                return otherwise
        return self._ask(ask, otherwise)

    def _ask(self, ask: Callable[[], T], otherwise: T) -> T:
        try:
            return ask()
        except Exception as error:  # the client's own errors, and whatever a wrapped client raises
            self.errors += 1
            self._rest_until = self._clock() + REST_S
            _log.warning("Redis failed with %s; vectors are not shared for %g s", type(error).__name__, REST_S)
            return otherwise


def _connected(url: str) -> Any:  # a client of the redis package, connected on first use
    try:
        import redis
    except ImportError:
        raise MissingExtra("RedisVectors", "redis") from None
    try:
        return redis.Redis.from_url(url, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S)
    except ValueError as error:
        raise InvalidInput("client", f"is not a Redis URL: {error}", "as in redis://localhost:6379/0") from None
