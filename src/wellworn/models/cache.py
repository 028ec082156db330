"""A cache around any embedder: the same text is not embedded twice.

The first level is in the process. A SQLite file that outlives it and a Redis that machines share can stand behind it.
Vectors are kept under a hash of their text, never the text. Whoever forgets something calls `clear`, which reaches
every level.
"""

from __future__ import annotations

import hashlib
import logging
import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from wellworn.core.cache import LruCache
from wellworn.core.errors import InvalidInput, MissingExtra
from wellworn.core.locks import ForkLock
from wellworn.core.values import CacheLevel
from wellworn.models.port import Embedder, Matrix

_log = logging.getLogger("wellworn.models")
TTL_S = 3600
REST_S = 30.0
"""How long a Redis that failed is left alone: a recall must not wait for a dead server again and again."""
TIMEOUT_S = 0.25
PREFIX = "wellworn:vector:"
_AT_ONCE = 500
_ENTRY_OVERHEAD = 256  # bytes of key, array object and dictionary slot, measured on CPython 3.11
_TEXT, _QUERY = b"text", b"query"
T = TypeVar("T")


class VectorLevel(ABC):
    """A place for vectors behind the process; safe between threads.

    It may lose anything and never fails its caller: a fault is a miss, logged and counted. One that could not be
    cleared is not read again until it was.
    """

    label: str
    """What metrics call it."""
    rest_s = 0.0
    """How long it is left alone after a fault."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.hits = self.misses = self.errors = 0
        self._clock = clock
        self._rest_until = float("-inf")
        self._must_clear = False

    def get(self, keys: Sequence[bytes], *, width: int) -> dict[bytes, Matrix]:
        """The vectors it has of these, by key."""
        nothing: dict[bytes, bytes] = {}
        rows = self._try(lambda: self._read(keys), nothing)
        found = {key: np.frombuffer(row, dtype="<f4") for key, row in rows.items() if len(row) == 4 * width}
        self.hits += len(found)
        self.misses += len(keys) - len(found)
        return found

    def put(self, vectors: Mapping[bytes, Matrix]) -> None:
        rows = {key: np.asarray(vector, dtype="<f4").tobytes() for key, vector in vectors.items()}
        self._try(lambda: self._write(rows), None)

    def clear(self) -> None:
        self._must_clear = True  # until it worked, now or when the level is asked next
        self._try(lambda: None, None)

    def _try(self, ask: Callable[[], T], otherwise: T) -> T:
        """The answer, or `otherwise` while the level rests, cannot be cleared, or fails."""
        if self._clock() < self._rest_until:
            return otherwise
        try:
            if self._must_clear:
                self._remove_all()
                self._must_clear = False
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
    def _remove_all(self) -> None: ...


class DiskVectors(VectorLevel):
    """The `max_entries` most recently used vectors in a file; safe between processes.

    A file of its own, because it is a cache: it needs no backup and no durability, may be deleted at any time, and must
    not hold up a writer of memories. Removed vectors are overwritten.
    """

    label = "l2"

    def __init__(self, path: str | Path, *, max_entries: int = 100_000) -> None:
        if max_entries < 1:
            raise InvalidInput("max_entries", f"{max_entries} is less than 1", "leave the level out instead")
        super().__init__()
        self._path = path
        self._max_entries = max_entries

    def _read(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        with self._transaction() as db:
            rows = {key: db.execute("SELECT vector FROM vectors WHERE key = ?", (key,)).fetchone() for key in keys}
            found = {key: row[0] for key, row in rows.items() if row is not None}
            db.executemany("UPDATE vectors SET used = ? WHERE key = ?", [(time.time_ns(), key) for key in found])
        return found

    def _write(self, rows: Mapping[bytes, bytes]) -> None:
        new = [(key, row, time.time_ns()) for key, row in rows.items()]
        oldest = "SELECT key FROM vectors ORDER BY used, key LIMIT max(0, (SELECT count(*) FROM vectors) - ?)"
        with self._transaction() as db:
            db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", new)
            db.execute(f"DELETE FROM vectors WHERE key IN ({oldest})", (self._max_entries,))  # noqa: S608

    def _remove_all(self) -> None:
        with self._transaction() as db:
            db.execute("DELETE FROM vectors")

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """On a connection of its own, which no thread shares and no fork carries over."""
        with closing(sqlite3.connect(self._path, timeout=1.0)) as db, db:
            db.execute("PRAGMA synchronous = OFF")
            db.execute("PRAGMA secure_delete = ON").fetchall()
            db.execute(  # keys are hashes of model and text, vectors little-endian float32, times nanoseconds
                "CREATE TABLE IF NOT EXISTS vectors"
                " (key BLOB PRIMARY KEY, vector BLOB NOT NULL, used INTEGER NOT NULL) WITHOUT ROWID"
            )
            yield db


class RedisVectors(VectorLevel):
    """Vectors that stay for `ttl_s`; `client` is a URL (extra `redis`) or a client of `redis`, which its owner closes."""

    label = "l3"
    rest_s = REST_S

    def __init__(self, client: Any, *, ttl_s: int = TTL_S, clock: Callable[[], float] = time.monotonic) -> None:
        if ttl_s < 1:
            raise InvalidInput("ttl_s", f"{ttl_s} is less than a second", "leave the level out instead")
        super().__init__(clock)
        self._redis = _connected(client) if isinstance(client, str) else client
        self._ttl_s = ttl_s

    def _read(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        rows = self._redis.mget([PREFIX + key.hex() for key in keys])
        return {key: row for key, row in zip(keys, rows, strict=True) if row is not None}

    def _write(self, rows: Mapping[bytes, bytes]) -> None:
        with self._redis.pipeline(transaction=False) as pipe:
            for key, row in rows.items():
                pipe.set(PREFIX + key.hex(), row, ex=self._ttl_s)
            pipe.execute()

    def _remove_all(self) -> None:
        keys = list(self._redis.scan_iter(match=PREFIX + "*", count=_AT_ONCE))
        for start in range(0, len(keys), _AT_ONCE):
            self._redis.unlink(*keys[start : start + _AT_ONCE])


def _connected(url: str) -> Any:  # a client of the redis package, connected on first use
    try:
        import redis
    except ImportError:
        raise MissingExtra("RedisVectors", "redis") from None
    try:
        return redis.Redis.from_url(url, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S)
    except ValueError as error:
        raise InvalidInput("client", f"is not a Redis URL: {error}", "as in redis://localhost:6379/0") from None


class CachedEmbedder:
    """The most recently used vectors of `inner`, within `max_entries` and `max_bytes`; safe between threads.

    Texts and questions are kept apart, as some models embed them differently. `levels` are asked in their order for
    what this process does not have, and get what it learns.
    """

    def __init__(
        self,
        inner: Embedder,
        *,
        max_entries: int = 10_000,
        max_bytes: int = 32 * 1024 * 1024,
        levels: Sequence[VectorLevel] = (),
    ) -> None:
        if max_entries < 0 or max_bytes < 0:
            raise InvalidInput("max_entries", f"{max_entries} entries, {max_bytes} bytes", "use 0 to keep nothing")
        self.inner = inner
        self.hits = 0
        """Texts that this process had, repeats within one call included."""
        self.misses = 0
        """Texts that a further level or the inner embedder was asked for."""
        self._levels = tuple(levels)
        # Both limits in one: an entry counts with its share of the tighter one.
        self._near: LruCache[bytes, Matrix] = LruCache(
            max_bytes * max_entries, size_of=lambda row: max((row.nbytes + _ENTRY_OVERHEAD) * max_entries, max_bytes, 1)
        )
        self._lock = ForkLock()  # of the counts, and of what is kept while something is forgotten
        self._clearings = 0

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def width(self) -> int:
        return self.inner.width

    def __len__(self) -> int:
        return len(self._near)

    def embed(self, texts: Sequence[str]) -> Matrix:
        """As the inner embedder; what is missing is asked for in one batch, each text once."""
        keys = [_key(_TEXT, text) for text in texts]
        found, clearings = self._look_up(keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        if missing or not texts:
            rows = self.inner.embed(list(missing.values()))
            self._keep(dict(zip(missing, rows, strict=True)), self._levels, clearings)
            if len(missing) == len(texts):
                return rows
            found.update(zip(missing, rows, strict=True))
        return np.stack([found[key] for key in keys])

    def embed_query(self, text: str) -> Matrix:
        """As the inner embedder."""
        key = _key(_QUERY, text)
        found, clearings = self._look_up([key])
        if key in found:
            return found[key].copy()
        row = self.inner.embed_query(text)
        self._keep({key: row}, self._levels, clearings)
        return row

    def clear(self) -> int:
        """Drop every vector on every level; returns how many this one had. `hits` and `misses` count on."""
        with self._lock:
            self._clearings += 1
            dropped = self._near.clear()
        for level in self._levels:
            level.clear()
        return dropped

    def metrics(self) -> list[CacheLevel]:
        """What each level was asked for and had, since it was made."""
        further = [
            CacheLevel(level=level.label, hits=level.hits, misses=level.misses, errors=level.errors)
            for level in self._levels
        ]
        return [CacheLevel(level="l1", hits=self.hits, misses=self.misses), *further]

    def _look_up(self, keys: list[bytes]) -> tuple[dict[bytes, Matrix], int]:
        """What any level has of these, and how often the cache was cleared before we looked."""
        with self._lock:
            clearings = self._clearings
            rows = {key: self._near.get(key) for key in keys}
            found = {key: row for key, row in rows.items() if row is not None}
            missing = [key for key in rows if key not in found]
            self.hits += len(keys) - len(missing)
            self.misses += len(missing)
        for number, level in enumerate(self._levels):
            wanted = {self._far(key): key for key in missing if key not in found}
            if not wanted:
                break
            there = {wanted[far]: row for far, row in level.get([*wanted], width=self.width).items()}
            self._keep(there, self._levels[:number], clearings)  # nearer levels get what a farther one had
            found |= there
        return found, clearings

    def _keep(self, rows: Mapping[bytes, Matrix], levels: Sequence[VectorLevel], clearings: int) -> None:
        """In this process and on these levels, unless the cache was cleared since: it may be one of these."""
        with self._lock:
            if not rows or self._clearings != clearings:
                return
            for key, row in rows.items():
                self._near.put(key, row.copy())  # a view would keep the whole batch alive
        for level in levels:
            level.put({self._far(key): row for key, row in rows.items()})
            if self._clearings != clearings:  # while it was put there
                level.clear()

    def _far(self, key: bytes) -> bytes:
        """A key as further levels have it: they may serve several models."""
        return hashlib.blake2b(f"{self.name}\x1f{self.width}".encode(), digest_size=4).digest() + key


def _key(role: bytes, text: str) -> bytes:
    """16 bytes that stand for a text in a role."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, person=role).digest()
