"""How often a name may do something: token buckets, in this process or in a Redis that servers share.

A Redis that fails or does not answer at once is left alone for a while; until then each server counts for itself. So it can
make a limit looser, but it never refuses a request.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Any

from wellworn.models.cache import REST_S, connect_redis

PREFIX = "wellworn:limit:"
TIMEOUT_S = 0.1
_MOST_NAMES = 10_000
_log = logging.getLogger("wellworn.server")
_TAKE = """
local clock = redis.call('TIME')
local now = clock[1] + clock[2] / 1000000
local rate, burst, wanted = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local held = redis.call('HMGET', KEYS[1], 'left', 'at')
local left = burst
if held[1] then left = math.min(burst, held[1] + math.max(0, now - held[2]) * rate) end
local wait = math.max(0, (1 - left) / rate)
if wait == 0 and wanted == 1 then
  redis.call('HSET', KEYS[1], 'left', tostring(left - 1), 'at', string.format('%.6f', now))
  redis.call('PEXPIRE', KEYS[1], math.ceil(1000 * burst / rate) + 1000)
end
return tostring(wait)
"""
"""By the clock of the Redis, so that servers whose clocks differ agree. A full bucket is not kept."""


class Limiter:
    """Token buckets by name: so many at once, refilled at a rate. Names that were not used for longest are dropped."""

    waits = False
    """Whether it may have to wait for another machine."""

    def __init__(self, *, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._filled: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = Lock()

    def wait_s(self, name: str) -> float:
        """Seconds until `take` would be allowed; 0: now."""
        with self._lock:
            return max(0.0, (1.0 - self._left(name)) / self._rate)

    def take(self, name: str) -> float:
        """Take one if there is one; else seconds until there is."""
        with self._lock:
            left = self._left(name)
            if left < 1.0:
                return (1.0 - left) / self._rate
            self._filled[name] = (left - 1.0, self._clock())
            self._filled.move_to_end(name)
            if len(self._filled) > _MOST_NAMES:
                self._filled.popitem(last=False)
            return 0.0

    def _left(self, name: str) -> float:
        left, at = self._filled.get(name, (self._burst, self._clock()))
        return min(self._burst, left + (self._clock() - at) * self._rate)


class SharedLimiter:
    """The same buckets in a Redis (URL or client), for all servers. Names are hashed: they tell addresses."""

    waits = True

    def __init__(self, redis: Any, *, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._own = Limiter(rate=rate, burst=burst, clock=clock)
        self._limits = (rate, burst)
        self._clock = clock
        self._rest_until = float("-inf")
        client = connect_redis(redis, timeout_s=TIMEOUT_S) if isinstance(redis, str) else redis
        self._run = client.register_script(_TAKE)

    def wait_s(self, name: str) -> float:
        """As `Limiter.wait_s`."""
        found = self._ask(name, 0)
        return self._own.wait_s(name) if found is None else found

    def take(self, name: str) -> float:
        """As `Limiter.take`."""
        found = self._ask(name, 1)
        return self._own.take(name) if found is None else found

    def _ask(self, name: str, wanted: int) -> float | None:
        """What the Redis says; None while it fails or rests."""
        if self._clock() < self._rest_until:
            return None
        rate, burst = self._limits
        bucket = hashlib.blake2b(f"{rate} {burst} {name}".encode(), digest_size=16).hexdigest()
        try:
            return float(self._run(keys=[PREFIX + bucket], args=[rate, burst, wanted]))
        except Exception as error:  # of the driver, or of whatever client was given
            self._rest_until = self._clock() + REST_S
            _log.warning("the shared rate limit failed, this server counts for itself: %s", type(error).__name__)
            return None
