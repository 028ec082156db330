"""Levels of the vector cache behind the process: a SQLite file that outlives it, and a Redis that machines share.

A level keeps vectors under hashes, never texts. It may lose anything at any time and never fails its caller: a fault
is a miss, logged and counted. One that could not be told to forget is not read again until it was cleared.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
_AT_ONCE = 500
T = TypeVar("T")


class VectorLevel(ABC):
    """A place for vectors that outlives the process, or that several processes share; safe between threads."""

    label: str
    """What metrics call it."""
    rest_s = 0.0
    """How long it is left alone after a fault."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.errors = 0
        self._clock = clock
        self._lock = ForkLock()
        self._rest_until = float("-inf")
        self._must_clear = False

    def get(self, keys: Sequence[bytes], *, width: int) -> dict[bytes, Matrix]:
        """The vectors it has of these, by key."""
        nothing: dict[bytes, bytes] = {}
        rows = self._try(lambda: self._read(keys), nothing)
        return {key: np.frombuffer(row, dtype="<f4") for key, row in rows.items() if len(row) == 4 * width}

    def put(self, vectors: Mapping[bytes, Matrix]) -> None:
        rows = {key: np.asarray(vector, dtype="<f4").tobytes() for key, vector in vectors.items()}
        self._try(lambda: self._write(rows), None)

    def drop(self, keys: Sequence[bytes]) -> int:
        """Remove these; returns how many there were."""
        dropped = self._try(lambda: self._remove(keys), -1) if keys else 0
        self._must_clear |= dropped < 0
        return max(dropped, 0)

    def clear(self) -> int:
        """Remove all; returns how many there were."""
        with self._lock:
            self._must_clear = True  # until it worked, now or when the level is asked next
            return max(self._clear(), 0)

    def _try(self, ask: Callable[[], T], otherwise: T) -> T:
        """The answer, or `otherwise` while the level rests, cannot be cleared, or fails."""
        with self._lock:
            if self._must_clear and self._clear() < 0:
                return otherwise
        return self._ask(ask, otherwise)

    def _clear(self) -> int:
        dropped = self._ask(self._remove_all, -1)
        if dropped >= 0:
            self._must_clear = False
        return dropped

    def _ask(self, ask: Callable[[], T], otherwise: T) -> T:
        if self._clock() < self._rest_until:
            return otherwise
        try:
            return ask()
        except Exception as error:  # of a driver, or of whatever client was given
            self.errors += 1
            self._rest_until = self._clock() + self.rest_s
            _log.warning("the vector cache %s failed: %s", self.label, type(error).__name__)
            return otherwise

    @abstractmethod
    def _read(self, keys: Sequence[bytes]) -> dict[bytes, bytes]: ...

    @abstractmethod
    def _write(self, rows: Mapping[bytes, bytes]) -> None: ...

    @abstractmethod
    def _remove(self, keys: Sequence[bytes]) -> int: ...

    @abstractmethod
    def _remove_all(self) -> int: ...

    @abstractmethod
    def close(self) -> None:
        """Release files and connections."""


class DiskVectors(VectorLevel):
    """The `max_entries` most recently used vectors in a file; safe between processes.

    A file of its own, because it is a cache: it needs no backup and no durability, may be deleted at any time, and must
    not hold up a writer of memories. Removed vectors are overwritten, and the log is emptied when all are removed.
    """

    label = "l2"

    def __init__(self, path: str | Path, *, max_entries: int = 100_000) -> None:
        if max_entries < 1:
            raise InvalidInput("max_entries", f"{max_entries} is less than 1", "leave the level out instead")
        super().__init__()
        self._path = Path(path)
        self._max_entries = max_entries
        self._using = ForkLock()  # one connection for all threads
        self._db: sqlite3.Connection | None = None
        self._owner = 0

    def _read(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        with self._transaction() as db:
            for start in range(0, len(keys), _AT_ONCE):
                some = keys[start : start + _AT_ONCE]
                marks = ", ".join("?" * len(some))
                found |= dict(db.execute(f"SELECT key, vector FROM vectors WHERE key IN ({marks})", some))  # noqa: S608
            now = time.time_ns()
            db.executemany("UPDATE vectors SET used = ? WHERE key = ?", [(now, key) for key in found])
        return found

    def _write(self, rows: Mapping[bytes, bytes]) -> None:
        now = time.time_ns()
        with self._transaction() as db:
            new = [(key, row, now) for key, row in rows.items()]
            db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", new)
            (count,) = db.execute("SELECT count(*) FROM vectors").fetchone()
            oldest = "SELECT key FROM vectors ORDER BY used, key LIMIT ?"
            db.execute(f"DELETE FROM vectors WHERE key IN ({oldest})", (max(0, count - self._max_entries),))  # noqa: S608

    def _remove(self, keys: Sequence[bytes]) -> int:
        with self._transaction() as db:
            return sum(db.execute("DELETE FROM vectors WHERE key = ?", (key,)).rowcount for key in keys)

    def _remove_all(self) -> int:
        with self._transaction() as db:
            dropped = db.execute("DELETE FROM vectors").rowcount
        with self._using:
            self._opened().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return dropped

    def close(self) -> None:
        with self._using:
            if self._db is not None and self._owner == os.getpid():
                self._db.close()
            self._db = None

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._using:
            db = self._opened()
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            finally:
                if db.in_transaction:
                    db.execute("ROLLBACK")

    def _opened(self) -> sqlite3.Connection:
        if self._db is None or self._owner != os.getpid():  # a connection is not carried over a fork
            db = sqlite3.connect(self._path, timeout=1.0, isolation_level=None, check_same_thread=False)
            try:
                for pragma in ("journal_mode = WAL", "synchronous = OFF", "secure_delete = ON"):
                    db.execute(f"PRAGMA {pragma}").fetchall()
                db.executescript(  # keys are hashes of model and text, vectors little-endian float32, times nanoseconds
                    "CREATE TABLE IF NOT EXISTS vectors"
                    " (key BLOB PRIMARY KEY, vector BLOB NOT NULL, used INTEGER NOT NULL) WITHOUT ROWID;"
                    "CREATE INDEX IF NOT EXISTS vectors_used ON vectors (used);"
                )
            except sqlite3.Error:
                db.close()
                raise
            self._db, self._owner = db, os.getpid()
        return self._db


class RedisVectors(VectorLevel):
    """Vectors under `prefix`, each for `ttl_s`; `client` is a URL (extra `redis`) or a client of `redis`."""

    label = "l3"
    rest_s = REST_S

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
        super().__init__(clock)
        self._redis = _connected(client) if isinstance(client, str) else client
        self._ttl_s = ttl_s
        self._prefix = prefix.encode()

    def _read(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        rows = self._redis.mget([self._named(key) for key in keys])
        return {key: row for key, row in zip(keys, rows, strict=True) if row is not None}

    def _write(self, rows: Mapping[bytes, bytes]) -> None:
        with self._redis.pipeline(transaction=False) as pipe:
            for key, row in rows.items():
                pipe.set(self._named(key), row, ex=self._ttl_s)
            pipe.execute()

    def _remove(self, keys: Sequence[bytes]) -> int:
        return int(self._redis.unlink(*map(self._named, keys)))

    def _remove_all(self) -> int:
        pattern = b"".join(b"\\" + bytes([c]) if c in b"*?[]\\^" else bytes([c]) for c in self._prefix) + b"*"
        keys = list(self._redis.scan_iter(match=pattern, count=_AT_ONCE))
        pages = [keys[start : start + _AT_ONCE] for start in range(0, len(keys), _AT_ONCE)]
        return sum(int(self._redis.unlink(*page)) for page in pages)

    def close(self) -> None:
        self._redis.close()

    def _named(self, key: bytes) -> bytes:
        return self._prefix + key.hex().encode()


def _connected(url: str) -> Any:  # a client of the redis package, connected on first use
    try:
        import redis
    except ImportError:
        raise MissingExtra("RedisVectors", "redis") from None
    try:
        return redis.Redis.from_url(url, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S)
    except ValueError as error:
        raise InvalidInput("client", f"is not a Redis URL: {error}", "as in redis://localhost:6379/0") from None
