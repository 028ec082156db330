"""Who calls, what they may do, and how often.

The tenant comes from the credential alone. Ids of layers may be named by a request, within what the key is bound to.
Failed keys are counted by address and key id, so that guessing ends after a few tries, even with the right secret, while
other keys of the same address work on. Failed tokens of an issuer are counted by address; good ones work on, too.

Limits are kept in this process or in a Redis that servers share. A Redis that fails or does not answer at once is left
alone for a while; until then each server counts for itself. So it can make a limit looser, but it never refuses a
request.

Beside keys, bearer tokens of an OpenID Connect issuer are taken. A token is a JWT that one of the issuer's published keys
signed, for our audience. Keys are fetched from the issuer, kept for ten minutes, and fetched again when a token names one
that is not among them. No token is sent anywhere. `sub` is the user. Other claims count only where a setting names them,
and a claim that is named must be there. Readers and writers see themselves and the teams of their token; an admin sees
the whole tenant.
"""

from __future__ import annotations

import hashlib
import ipaddress
import logging
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

from wellworn.core.clock import Clock
from wellworn.core.dataclass import dataclass
from wellworn.core.errors import AccessDenied, InvalidInput, MissingExtra, ServiceFailed
from wellworn.core.lazy import regex
from wellworn.core.scope import SHARED_LAYERS
from wellworn.core.values import LAYERS, Scope
from wellworn.models.cache import REST_S, connect_redis
from wellworn.server.keys import ROLES, ApiKey, Role, find_key, id_in, opens, scope_of
from wellworn.store.port import Store

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

    def __init__(self, *, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._filled: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = Lock()

    def wait_s(self, name: str) -> float:
        """Seconds until `take` would be allowed; 0: now."""
        return self.take(name, look=True)

    def take(self, name: str, *, look: bool = False) -> float:
        """Take one if there is one; else seconds until there is. With `look` nothing is taken."""
        with self._lock:
            now = self._clock()
            left, at = self._filled.get(name, (self._burst, now))
            left = min(self._burst, left + (now - at) * self._rate)
            if left < 1.0:
                return (1.0 - left) / self._rate
            if not look:
                self._filled[name] = (left - 1.0, now)
                self._filled.move_to_end(name)
                if len(self._filled) > _MOST_NAMES:
                    self._filled.popitem(last=False)
            return 0.0


class SharedLimiter(Limiter):
    """The same buckets in a Redis (URL or client), for all servers. Names are hashed: they tell addresses."""

    def __init__(self, redis: Any, *, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(rate=rate, burst=burst, clock=clock)
        self._rest_until = float("-inf")
        client = connect_redis(redis, timeout_s=TIMEOUT_S) if isinstance(redis, str) else redis
        self._run = client.register_script(_TAKE)

    def take(self, name: str, *, look: bool = False) -> float:
        """As `Limiter.take`: as the Redis says, or as this server counts while that fails or rests."""
        if self._clock() < self._rest_until:
            return super().take(name, look=look)
        rate, burst = self._rate, self._burst
        bucket = hashlib.blake2b(f"{rate} {burst} {name}".encode(), digest_size=16).hexdigest()
        try:
            return float(self._run(keys=[PREFIX + bucket], args=[rate, burst, 0 if look else 1]))
        except Exception as error:  # of the driver, or of whatever client was given
            self._rest_until = self._clock() + REST_S
            _log.warning("the shared rate limit failed, this server counts for itself: %s", type(error).__name__)
            return super().take(name, look=look)


# -- who calls ---------------------------------------------------------------------------------------------------------

UNKNOWN_CALLER = 401
GUESSES = 10
GUESSES_WINDOW_S = 60.0
_OF_PROXY = regex(r"via|forwarded|cdn-loop|(?:x-forwarded|x-original|x-envoy|cf)-.*|.*(?:-|client)ip")
"""Names of headers that proxies add."""


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

    def require(self, role: str, *, whole: bool = False) -> None:
        """Refuse whoever has a lesser role, or where it is about the `whole` tenant, a key that is bound to a part of it."""
        if ROLES.index(self.role) < ROLES.index(role):
            raise AccessDenied(f"role: this needs {role}, and the key is of a {self.role}")
        if whole and self.bound is not None:
            raise AccessDenied("key: this is about the whole tenant, and the key is bound to a part of it")


class Gate:
    """Finds out who calls."""

    def __init__(
        self,
        store: Store,
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

    def admit(self, headers: Mapping[str, str], address: str, http_version: str = "1.1") -> Caller:
        """The caller of a request; an error for anybody else. With a key it asks the store, maybe a Redis or an issuer."""
        given = headers.get("authorization", "")
        if not given:
            return self._without_key(headers, http_version)
        kind, _, token = given.partition(" ")
        if self._tokens is not None and kind.lower() == "bearer" and token.count(".") == 2:
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
            raise AccessDenied("key: is unknown, expired or revoked (see `wellworn keys list`)", status=UNKNOWN_CALLER)
        return self._within_rate(_caller(key))

    def admit_key(self, id: str) -> Caller:
        """The caller whose key was checked before, as long as it is active."""
        return self._within_rate(_caller(self._active(id)))

    def check(self, caller: Caller) -> None:
        """Refuse a caller whose key has ended since they were admitted."""
        kind, _, id = caller.actor.partition(":")
        if kind == "key":
            self._active(id)

    def _active(self, id: str) -> ApiKey:
        key = find_key(self._store, id)
        if key is None or not key.active(self._clock()):
            raise AccessDenied("key: is expired or revoked (see `wellworn keys list`)", status=401)
        return key

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

    def _without_key(self, headers: Mapping[str, str], http_version: str) -> Caller:
        if self._local is None:
            raise AccessDenied("key: is missing (send `Authorization: Bearer ww_…`)", status=401)
        if http_version == "1.0" or any(map(_OF_PROXY.fullmatch, headers)):  # nginx asks in HTTP/1.0
            raise AccessDenied(
                "key: is missing, and the request came through a proxy, so it may come from anywhere "
                "(send `Authorization: Bearer ww_…`; see `wellworn keys create`)",
                status=401,
            )
        return self._local


def _caller(key: ApiKey) -> Caller:
    return Caller(actor=f"key:{key.id}", tenant=key.tenant, role=key.role, bound=key.scope)


# -- tokens of an issuer -----------------------------------------------------------------------------------------------


ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures with a private key only: `none` and shared secrets are refused, whatever a token says."""
LEEWAY_S = 60
KEYS_S = 600.0
"""How long fetched keys serve: a key that the issuer withdraws is refused after that."""
STALE_S = 3600.0
"""How long they serve while the issuer cannot be reached."""
AGAIN_S = 30.0
"""How soon a token with an unknown key may make us ask the issuer again."""
FETCH_S = 5.0
MOST_TOKEN_CHARS = 16_384
CLAIMS = ("tenant", "role", *LAYERS)
"""What a claim may be read for."""


@dataclass(frozen=True, kw_only=True)
class OidcSettings:
    """Whom to trust, and what its claims mean."""

    issuer: str
    audience: str
    tenant: str = "default"
    """The tenant of every token, unless a claim names it."""
    claims: Mapping[str, str] = field(default_factory=dict)
    """By what they say (`tenant`, `role`, `user`, `team`, …), the names of claims."""

    def __post_init__(self) -> None:
        checked_url("oidc", self.issuer)
        if not self.audience.strip():
            raise InvalidInput("audience", "is missing", "say for whom the issuer makes the tokens (--audience)")
        for name in self.claims:
            if name not in CLAIMS:
                raise InvalidInput("claim", f"{name!r:.60} is not read from a token", f"use one of {', '.join(CLAIMS)}")


class OidcVerifier:
    """Checks tokens. Safe to share between threads."""

    def __init__(self, settings: OidcSettings, ticks: Callable[[], float] = time.monotonic) -> None:
        try:
            import jwt
        except ImportError:
            raise MissingExtra("`wellworn serve --oidc`", "oidc") from None
        self._settings = settings
        self._ticks = ticks
        self._decoder = jwt.PyJWT({"enforce_minimum_key_length": True})
        self._keys: dict[str, Any] = {}  # PyJWK by its id
        self._fetched = self._tried = -STALE_S - 1
        self._fetching = Lock()

    def caller(self, token: str) -> Caller:
        """Whose token this is; `AccessDenied` when it does not hold. It may ask the issuer for its keys."""
        import jwt

        if len(token) > MOST_TOKEN_CHARS:
            raise _refused("is too long")
        try:
            key = self._key(str(jwt.get_unverified_header(token).get("kid") or ""))
            claims = self._decoder.decode(
                token,
                key,
                algorithms=ALGORITHMS,
                issuer=self._settings.issuer,
                audience=self._settings.audience,
                leeway=LEEWAY_S,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except (jwt.PyJWTError, ValueError) as error:
            raise _refused(f"does not hold: {error}") from None
        return self._caller(claims)

    def _caller(self, claims: Mapping[str, Any]) -> Caller:
        named = {"user": "sub", **self._settings.claims}
        if named["user"] == "email" and claims.get("email_verified") is False:
            raise _refused("names an email address that the issuer has not verified")
        layers: dict[str, list[str]] = {layer: _texts(named[layer], claims) for layer in LAYERS if layer in named}
        tenant = _texts(named["tenant"], claims) if "tenant" in named else [self._settings.tenant]
        several = [layer for layer, ids in {**layers, "tenant": tenant}.items() if len(ids) != 1]
        if any(layer not in SHARED_LAYERS for layer in several):
            raise _refused(f"names no single {', '.join(one for one in several if one not in SHARED_LAYERS)}")
        said = _texts(named["role"], claims) if "role" in named else ["writer"]
        role = next((one for one in reversed(ROLES) if one in said), None)
        if role is None:
            raise AccessDenied(f"role: the claim {named['role']!r} of the token names none of {', '.join(ROLES)}")
        try:
            scope = scope_of(tenant[0], layers)
        except InvalidInput as error:
            raise _refused(f"names a scope that cannot be: {error}") from None
        bound = None if role == "admin" else scope
        return Caller(actor=f"oidc:{layers['user'][0]}", tenant=tenant[0], role=role, bound=bound)  # type: ignore[arg-type]

    # -- keys of the issuer --------------------------------------------------------------------------------------

    def _key(self, kid: str) -> Any:  # a PyJWK
        age_s, key = self._ticks() - self._fetched, self._published(kid)
        if age_s > KEYS_S or key is None:
            if self._fetching.acquire(blocking=age_s > STALE_S or key is None):  # else another thread fetches
                try:
                    if self._ticks() - self._tried > AGAIN_S:
                        self._fetch()
                finally:
                    self._fetching.release()
            if self._ticks() - self._fetched > STALE_S:
                raise ServiceFailed("token: the issuer cannot be reached to check it (try again)")
            key = self._published(kid)
        if key is None:
            raise _refused("is signed with a key that the issuer does not publish")
        return key

    def _published(self, kid: str) -> Any:  # a PyJWK, or None
        keys = self._keys
        return next(iter(keys.values())) if not kid and len(keys) == 1 else keys.get(kid)

    def _fetch(self) -> None:
        import httpx
        import jwt

        self._tried = self._ticks()
        try:
            place = _document(f"{self._settings.issuer.rstrip('/')}/.well-known/openid-configuration")
            if place.get("issuer") != self._settings.issuer:
                raise ValueError(f"its configuration is that of {place.get('issuer')!r:.80}")
            found = jwt.PyJWKSet.from_dict(_document(checked_url("jwks_uri", str(place.get("jwks_uri")))))
        except (httpx.HTTPError, httpx.InvalidURL, jwt.PyJWTError, ValueError) as error:
            _log.warning("keys of %s cannot be fetched: %s", self._settings.issuer, error)
            return
        signing = [
            key for key in found.keys if key.public_key_use in (None, "sig") and key.algorithm_name in ALGORITHMS
        ]
        self._keys = {key.key_id or "": key for key in signing}
        self._fetched = self._tried


def _document(url: str) -> dict[str, Any]:
    import httpx

    found = httpx.get(url, timeout=FETCH_S).raise_for_status().json()
    if not isinstance(found, dict):
        raise ValueError(f"{url} is no JSON object")
    return found


def is_loopback(host: str) -> bool:
    """Whether only programs of this machine can reach the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def checked_url(name: str, url: str) -> str:
    """An address whose answers can be trusted: https, or this machine."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if not host or parts.scheme not in ("https", "http") or (parts.scheme == "http" and not is_loopback(host)):
        raise InvalidInput(name, f"{url!r:.80} is not an https address", "as in https://login.example.com")
    return url


def _texts(name: str, claims: Mapping[str, Any]) -> list[str]:
    """The texts of a claim, which may lie inside another, as in `realm_access.roles`."""
    found: Any = claims.get(name)
    if name not in claims:
        found = claims
        for part in name.split("."):
            found = found.get(part) if isinstance(found, dict) else None
    texts = [found] if isinstance(found, str) else found
    if not isinstance(texts, list) or not all(isinstance(one, str) and one for one in texts):
        raise _refused(f"has no claim {name!r} that is a text, or several")
    return texts


def _refused(problem: str) -> AccessDenied:
    return AccessDenied(f"token: {problem} (get a new one from the issuer)", status=401)
