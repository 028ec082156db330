"""Who calls, what they may do, and how often.

The tenant comes from the credential alone. Ids of layers may be named by a request, within what the key is bound to.
Failed keys are counted by address and key id, so that guessing ends after a few tries, even with the right secret, while
other keys of the same address work on. Failed tokens of an issuer are counted by address; good ones work on, too.

Limits are kept in this process or in a Redis that servers share. A Redis that fails or does not answer at once is left
alone for a while; until then each server counts for itself. So it can make a limit looser, but it never refuses a
request.
"""

from __future__ import annotations

import hashlib
import logging
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from threading import Lock
from typing import Any

from wellworn.core.clock import Clock
from wellworn.core.dataclass import dataclass
from wellworn.core.errors import AccessDenied, ServiceFailed
from wellworn.core.values import Scope
from wellworn.models.cache import REST_S, connect_redis
from wellworn.server.keys import ROLES, ApiKey, Role, find_key, id_in, opens, scope_of
from wellworn.store.port import StoreReader

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


# -- who calls ---------------------------------------------------------------------------------------------------------

UNKNOWN_CALLER = 401
GUESSES = 10
GUESSES_WINDOW_S = 60.0
_PROXY_HEADERS = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip")


@dataclass(frozen=True, kw_only=True)
class Caller:
    """Whoever sends a request."""

    actor: str
    """`local`, `key:` and the id of the key, or `oidc:` and the user: what the audit log says."""
    tenant: str
    role: Role
    bound: Scope | None = None
    """Nothing outside of this is seen; None: all of the tenant."""
    usual: Scope | None = None
    """What a request means that names no layer."""

    def scope(self, layers: Mapping[str, Sequence[str]], tenant: str | None) -> Scope:
        """The scope of a request that names these ids."""
        if tenant is not None and tenant != self.tenant:
            raise AccessDenied(f"tenant: {tenant!r:.80} is not the tenant of this credential (leave it out)")
        usual = self.bound or self.usual
        if not layers and usual is not None:
            return usual
        wanted = scope_of(self.tenant, layers)
        if self.bound is not None and not wanted.within(self.bound):
            raise AccessDenied("scope: it names ids that this key is not bound to (leave them out)")
        return wanted

    def require(self, role: str) -> None:
        if ROLES.index(self.role) < ROLES.index(role):
            raise AccessDenied(f"role: this needs {role}, and the key is of a {self.role}")


class Gate:
    """Finds out who calls."""

    def __init__(
        self,
        store: StoreReader,
        *,
        clock: Clock,
        local: Caller | None,
        rate: float,
        ticks: Callable[[], float],
        tokens: Callable[[str], Caller] | None = None,
        redis: Any = None,
    ) -> None:
        """`local` is who calls without a key; None: nobody may. `rate` is requests per second and key. `tokens` says whose
        a token is that is no key of ours. With a `redis` (URL or client) servers share the limits."""
        self._tokens = tokens
        self._store = store
        self._clock = clock
        self._local = local
        limiter = Limiter if redis is None else partial(SharedLimiter, redis)
        self._requests = limiter(rate=rate, burst=2 * rate, clock=ticks)
        self._failures = limiter(rate=GUESSES / GUESSES_WINDOW_S, burst=GUESSES, clock=ticks)

    def admit(self, headers: Mapping[str, str], address: str) -> Caller:
        """The caller of a request; an error for anybody else."""
        given = headers.get("authorization", "")
        if not given:
            return self._without_key(headers)
        kind, _, token = given.partition(" ")
        if self._tokens is not None and self.is_token(headers):
            try:
                return self._within_rate(self._tokens(token.strip()))
            except AccessDenied as error:
                if error.status == UNKNOWN_CALLER:
                    self._check_failures(f"{address} token")
                    self._failures.take(f"{address} token")
                raise
        key = find_key(self._store, id_in(token.strip())) if kind.lower() == "bearer" else None
        guesser = f"{address} {'' if key is None else key.id}"
        self._check_failures(guesser)
        if not opens(key, token.strip(), self._clock()) or key is None:
            self._failures.take(guesser)
            raise AccessDenied("key: unknown, expired or revoked (see `wellworn keys list`)", status=UNKNOWN_CALLER)
        return self._within_rate(_caller(key))

    def waits(self, headers: Mapping[str, str]) -> bool:
        """Whether `admit` may take a while: it asks a Redis, or now and then the issuer of a token."""
        return ("authorization" in headers and self._requests.waits) or self.is_token(headers)

    def is_token(self, headers: Mapping[str, str]) -> bool:
        """Whether the caller shows a token of an issuer."""
        kind, _, token = headers.get("authorization", "").partition(" ")
        return self._tokens is not None and kind.lower() == "bearer" and token.count(".") == 2

    def admit_key(self, id: str) -> Caller:
        """The caller whose key was checked before, as long as it is active."""
        key = find_key(self._store, id)
        if key is None or not key.active(self._clock()):
            raise AccessDenied("key: expired or revoked (see `wellworn keys list`)", status=401)
        return self._within_rate(_caller(key))

    def _check_failures(self, guesser: str) -> None:
        wait_s = self._failures.wait_s(guesser)
        if wait_s:
            raise ServiceFailed("key: too many failed tries (wait)", status=429, retry_after_s=math.ceil(wait_s))

    def _within_rate(self, caller: Caller) -> Caller:
        wait_s = self._requests.take(caller.actor)
        if wait_s:
            raise ServiceFailed(
                "rate: too many requests of this key (wait)", status=429, retry_after_s=math.ceil(wait_s)
            )
        return caller

    def _without_key(self, headers: Mapping[str, str]) -> Caller:
        if self._local is None:
            raise AccessDenied("key: is missing (send `Authorization: Bearer ww_…`)", status=401)
        if any(name in headers for name in _PROXY_HEADERS):
            raise AccessDenied(
                "key: is missing, and the request came through a proxy, so it may come from anywhere "
                "(send `Authorization: Bearer ww_…`; see `wellworn keys create`)",
                status=401,
            )
        return self._local


def _caller(key: ApiKey) -> Caller:
    return Caller(actor=f"key:{key.id}", tenant=key.tenant, role=key.role, bound=key.scope)
