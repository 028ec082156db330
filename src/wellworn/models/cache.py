"""A cache around any embedder: the same text is not embedded twice.

It is in the process; a Redis that machines share can stand behind it. Vectors are kept under a hash of their text, never
the text. Whoever forgets something calls `clear`, which reaches both.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from wellworn.core.cache import LruCache
from wellworn.core.errors import InvalidInput, MissingExtra
from wellworn.core.locks import fork_lock
from wellworn.core.values import CacheLevel
from wellworn.models.port import Embedder, Matrix

_log = logging.getLogger("wellworn.models")
MAX_BYTES = 32 * 1024 * 1024
TTL_S = 3600
REST_S = 30.0
"""How long a Redis that failed is left alone: a recall must not wait for a dead server again and again."""
TIMEOUT_S = 0.25
PREFIX = "wellworn:vector:"
_AT_ONCE = 500
_ENTRY_OVERHEAD = 256  # bytes of key, array object and dictionary slot, measured on CPython 3.11
_TEXT, _QUERY = b"text", b"query"
T = TypeVar("T")


class RedisVectors:
    """Vectors that stay in a Redis for `ttl_s`; safe between threads.

    `client` is a URL (extra `redis`) or a client of `redis`, which its owner closes. A fault never fails the caller: it
    is a miss, logged and counted. A Redis that could not be cleared is not read again until it was.
    """

    def __init__(self, client: Any, *, ttl_s: int = TTL_S, clock: Callable[[], float] = time.monotonic) -> None:
        if ttl_s < 1:
            raise InvalidInput("ttl_s", f"{ttl_s} is less than a second", "leave the Redis out instead")
        self.hits = self.misses = self.errors = 0
        self._redis = connect_redis(client) if isinstance(client, str) else client
        self._ttl_s = ttl_s
        self._clock = clock
        self._rest_until = float("-inf")
        self._must_clear = False

    def get(self, keys: Sequence[bytes], *, width: int) -> dict[bytes, Matrix]:
        """The vectors it has of these, by key."""
        nothing: list[bytes | None] = []
        rows = self._try(lambda: self._redis.mget([PREFIX + key.hex() for key in keys]), nothing)
        pairs = zip(keys, rows, strict=False)
        found = {key: np.frombuffer(row, dtype="<f4") for key, row in pairs if row and len(row) == 4 * width}
        self.hits += len(found)
        self.misses += len(keys) - len(found)
        return found

    def put(self, vectors: Mapping[bytes, Matrix]) -> None:
        self._try(lambda: self._write(vectors), None)

    def clear(self) -> None:
        self._must_clear = True  # until it worked, now or when the Redis is asked next
        self._try(lambda: None, None)

    def _try(self, ask: Callable[[], T], otherwise: T) -> T:
        """The answer, or `otherwise` while the Redis rests, cannot be cleared, or fails."""
        if self._clock() < self._rest_until:
            return otherwise
        try:
            if self._must_clear:
                keys = list(self._redis.scan_iter(match=PREFIX + "*", count=_AT_ONCE))
                for start in range(0, len(keys), _AT_ONCE):
                    self._redis.unlink(*keys[start : start + _AT_ONCE])
                self._must_clear = False
            return ask()
        except Exception as error:  # of the driver, or of whatever client was given
            self.errors += 1
            self._rest_until = self._clock() + REST_S
            _log.warning("the shared vector cache failed: %s", type(error).__name__)
            return otherwise

    def _write(self, vectors: Mapping[bytes, Matrix]) -> None:
        with self._redis.pipeline(transaction=False) as pipe:
            for key, vector in vectors.items():
                pipe.set(PREFIX + key.hex(), np.asarray(vector, dtype="<f4").tobytes(), ex=self._ttl_s)
            pipe.execute()


def connect_redis(url: str, *, timeout_s: float = TIMEOUT_S) -> Any:
    """A client of the redis package, connected on first use. It tries once: whoever waits for a Redis can do without."""
    try:
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry
    except ImportError:
        raise MissingExtra("a Redis", "redis") from None
    once = Retry(NoBackoff(), 0)
    try:
        return redis.Redis.from_url(url, socket_timeout=timeout_s, socket_connect_timeout=timeout_s, retry=once)
    except ValueError as error:
        raise InvalidInput("redis", f"is not a Redis URL: {error}", "as in redis://localhost:6379/0") from None


class CachedEmbedder:
    """The most recently used vectors of `inner`, within `max_bytes`; safe between threads.

    Texts and questions are kept apart, as some models embed them differently. `shared` is asked for what this process
    does not have, and gets what it learns.
    """

    def __init__(self, inner: Embedder, *, max_bytes: int = MAX_BYTES, shared: RedisVectors | None = None) -> None:
        self.inner = inner
        self.hits = 0
        """Texts that this process had, repeats within one call included."""
        self.misses = 0
        """Texts that the shared cache or the inner embedder was asked for."""
        self._shared = shared
        self._near: LruCache[bytes, Matrix] = LruCache(max_bytes, size_of=lambda row: row.nbytes + _ENTRY_OVERHEAD)
        self._lock = fork_lock()  # of the counts, and of what is kept while something is forgotten
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
        return self._rows(_TEXT, texts, self.inner.embed)

    def embed_query(self, text: str) -> Matrix:
        """As the inner embedder."""
        row: Matrix = self._rows(_QUERY, [text], lambda asked: self.inner.embed_query(asked[0])[None])[0]
        return row

    def clear(self) -> int:
        """Drop every vector, here and in the shared cache; returns how many were here. `hits` and `misses` count on."""
        with self._lock:
            self._clearings += 1
            dropped = self._near.clear()
        if self._shared is not None:
            self._shared.clear()
        return dropped

    def metrics(self) -> list[CacheLevel]:
        """What the process's cache and the shared one were asked for and had, since they were made."""
        found = [CacheLevel(level="process", hits=self.hits, misses=self.misses)]
        if (shared := self._shared) is not None:
            found.append(CacheLevel(level="redis", hits=shared.hits, misses=shared.misses, errors=shared.errors))
        return found

    def _rows(self, role: bytes, texts: Sequence[str], ask: Callable[[list[str]], Matrix]) -> Matrix:
        if not texts:
            return ask([])
        keys = [self._key(role, text) for text in texts]
        with self._lock:
            clearings = self._clearings
            found = self._near.get_many(keys)
            missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
            self.hits += len(keys) - len(missing)
            self.misses += len(missing)
        if missing and self._shared is not None:
            there = self._shared.get([*missing], width=self.width)
            self._keep(there, clearings)
            found |= there
            missing = {key: text for key, text in missing.items() if key not in found}
        if missing:
            new = dict(zip(missing, ask([*missing.values()]), strict=True))
            self._keep(new, clearings)
            if self._shared is not None and self._clearings == clearings:
                self._shared.put(new)
                if self._clearings != clearings:  # while it was put there
                    self._shared.clear()
            found |= new
        return np.stack([found[key] for key in keys])

    def _keep(self, rows: Mapping[bytes, Matrix], clearings: int) -> None:
        """In this process, unless the cache was cleared since: it may be one of these."""
        with self._lock:
            if self._clearings == clearings:
                for key, row in rows.items():
                    self._near.put(key, row.copy())  # a view would keep the whole batch alive

    def _key(self, role: bytes, text: str) -> bytes:
        """20 bytes that stand for a text in a role, as this model embeds it: a Redis may serve several models."""
        said = f"{self.name}\x1f{text}".encode("utf-8", "surrogatepass")
        return hashlib.blake2b(said, digest_size=20, person=role).digest()
