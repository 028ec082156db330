"""Level 3: vectors in Redis, shared by every process of a deployment, each for an hour.

Needs the extra `redis`. A Redis that fails is left alone for a while and never fails a caller. One that could not be
told to let go of vectors is not read again until it was.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from wellworn.core.errors import InvalidInput, MissingExtra
from wellworn.core.locks import ForkLock
from wellworn.models.embedders.base import Matrix

_log = logging.getLogger("wellworn.models.embedders")
TTL_S = 3600
REST_S = 30.0
"""How long a Redis that failed is left alone: a recall must not wait for a dead server again and again."""
TIMEOUT_S = 0.25
_PAGE = 1000

T = TypeVar("T")


class RedisVectors:
    """Vectors under `prefix`; safe between threads and processes. `client` is a URL or a client of `redis`."""

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
        self._owes_clear = False
        self.errors = 0

    def get(self, keys: Sequence[bytes], *, width: int) -> dict[bytes, Matrix]:
        rows = self._tried(lambda: self._redis.mget([self._prefix + key.hex().encode() for key in keys]), None)
        found: dict[bytes, Matrix] = {}
        for key, row in zip(keys, rows or [], strict=False):
            if row is not None and len(row) == 4 * width:
                found[key] = np.frombuffer(row, dtype="<f4")
        return found

    def put(self, vectors: Mapping[bytes, Matrix]) -> None:
        def write() -> None:
            with self._redis.pipeline(transaction=False) as pipe:
                for key, row in vectors.items():
                    pipe.set(self._prefix + key.hex().encode(), np.asarray(row, dtype="<f4").tobytes(), ex=self._ttl_s)
                pipe.execute()

        self._tried(write, None)

    def drop(self, keys: Sequence[bytes]) -> int:
        if not keys:
            return 0
        named = [self._prefix + key.hex().encode() for key in keys]
        dropped = self._tried(lambda: int(self._redis.unlink(*named)), -1)
        if dropped < 0:
            self._owes_clear = True
        return max(dropped, 0)

    def clear(self) -> int:
        with self._lock:
            self._owes_clear = True  # until it worked, at once or when the server is asked next
            return 0 if self._resting() else max(self._settle(), 0)

    def close(self) -> None:
        self._redis.close()

    def _resting(self) -> bool:
        return self._clock() < self._rest_until

    def _settle(self) -> int:
        """Clear, and owe nothing when that worked; -1 when it did not."""
        dropped = self._asked(self._cleared, -1)
        if dropped >= 0:
            self._owes_clear = False
        return dropped

    def _cleared(self) -> int:
        dropped, page = 0, []
        for key in self._redis.scan_iter(match=_literal(self._prefix) + b"*", count=_PAGE):
            page.append(key)
            if len(page) == _PAGE:
                dropped, page = dropped + int(self._redis.unlink(*page)), []
        return dropped + (int(self._redis.unlink(*page)) if page else 0)

    def _tried(self, ask: Callable[[], T], otherwise: T) -> T:
        """The answer, or `otherwise` while the server rests, still owes a clearing, or fails."""
        with self._lock:
            if self._resting() or (self._owes_clear and self._settle() < 0):
                return otherwise
        return self._asked(ask, otherwise)

    def _asked(self, ask: Callable[[], T], otherwise: T) -> T:
        try:
            return ask()
        except Exception as error:  # the client's own errors, and whatever a wrapped client raises
            self.errors += 1
            self._rest_until = self._clock() + REST_S
            _log.warning("Redis failed with %s; vectors are not shared for %g s", type(error).__name__, REST_S)
            return otherwise


def _literal(prefix: bytes) -> bytes:
    """A prefix whose signs mean themselves in a pattern."""
    return b"".join(b"\\" + bytes([char]) if chr(char) in "*?[]\\^" else bytes([char]) for char in prefix)


def _connected(url: str) -> Any:  # a client of the redis package, connected on first use
    try:
        import redis
    except ImportError:
        raise MissingExtra("RedisVectors", "redis") from None
    try:
        return redis.Redis.from_url(url, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S)
    except ValueError as error:
        raise InvalidInput("client", f"is not a Redis URL: {error}", "as in redis://localhost:6379/0") from None
