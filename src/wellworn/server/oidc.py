"""Bearer tokens of an OpenID Connect issuer: whether they hold, and whose they are.

A token is a JWT that one of the issuer's published keys signed, for our audience. Keys are fetched from the issuer, kept
for ten minutes, and fetched again when a token names one that is not among them. No token is sent anywhere.

What the claims mean: `sub` is the user. Other claims count only where a setting names them, and a claim that is named
must be there. Readers and writers see themselves and the teams of their token; an admin sees the whole tenant.
"""

from __future__ import annotations

import ipaddress
import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import field
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import AccessDenied, InvalidInput, MissingExtra, ServiceFailed
from wellworn.core.scope import SHARED_LAYERS
from wellworn.core.values import LAYERS
from wellworn.server.access import Caller
from wellworn.server.keys import ROLES, scope_of

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
MOST_BYTES = 1_000_000
MOST_TOKEN_CHARS = 16_384
CLAIMS = ("tenant", "role", *LAYERS)
"""What a claim may be read for."""
_log = logging.getLogger("wellworn.server")


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
        with self._fetching:
            since = self._ticks() - self._tried
            known = kid in self._keys or (not kid and len(self._keys) == 1)
            if self._ticks() - self._fetched > KEYS_S or not known:
                if since > AGAIN_S:
                    self._fetch()
                elif self._ticks() - self._fetched > STALE_S:
                    raise ServiceFailed("token: the issuer cannot be reached to check it (try again)")
            if not kid and len(self._keys) == 1:
                return next(iter(self._keys.values()))
            if kid not in self._keys:
                raise _refused("is signed with a key that the issuer does not publish")
            return self._keys[kid]

    def _fetch(self) -> None:
        import httpx
        import jwt

        self._tried = self._ticks()
        try:
            with httpx.Client(timeout=FETCH_S) as http:
                place = _document(http, f"{self._settings.issuer.rstrip('/')}/.well-known/openid-configuration")
                if place.get("issuer") != self._settings.issuer:
                    raise ValueError(f"its configuration is that of {place.get('issuer')!r:.80}")
                found = jwt.PyJWKSet.from_dict(_document(http, checked_url("jwks_uri", str(place.get("jwks_uri")))))
        except (httpx.HTTPError, httpx.InvalidURL, jwt.PyJWTError, ValueError) as error:
            _log.warning("keys of %s cannot be fetched: %s", self._settings.issuer, error)
            if self._ticks() - self._fetched > STALE_S:
                raise ServiceFailed("token: the issuer cannot be reached to check it (try again)") from None
            return
        signing = [
            key for key in found.keys if key.public_key_use in (None, "sig") and key.algorithm_name in ALGORITHMS
        ]
        self._keys = {key.key_id or "": key for key in signing}
        self._fetched = self._tried


def _document(http: Any, url: str) -> dict[str, Any]:  # an httpx.Client
    with http.stream("GET", url) as response:
        response.raise_for_status()
        data = b""
        for part in response.iter_bytes():
            data += part
            if len(data) > MOST_BYTES:
                raise ValueError(f"{url} is larger than {MOST_BYTES:,} bytes")
    found = json.loads(data)
    if not isinstance(found, dict):
        raise ValueError(f"{url} is no JSON object")
    return found


def checked_url(name: str, url: str) -> str:
    """An address whose answers can be trusted: https, or this machine."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        here = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        here = False
    if not host or parts.scheme not in ("https", "http") or (parts.scheme == "http" and not here):
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
