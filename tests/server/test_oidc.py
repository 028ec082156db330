"""Tokens of an OpenID Connect issuer, which runs here: what holds, what does not, and whose memory it opens."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from wellworn import InvalidInput, Scope
from wellworn.server import access
from wellworn.server.access import GUESSES, GUESSES_WINDOW_S, OidcSettings

from .conftest import WAIT_S, Running, serving
from .test_access import Ticks

jwt = pytest.importorskip("jwt")
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa  # noqa: E402
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat  # noqa: E402

AUDIENCE = "wellworn-tests"


class Issuer:
    """An issuer with keys of its own, and how often it was asked for them."""

    def __init__(self) -> None:
        self.keys: dict[str, tuple[str, Any]] = {}
        self.asked = 0
        self.down = False
        self.asleep, self.awake = threading.Event(), threading.Event()
        """Whether somebody waits for it, and whether it answers."""
        self.awake.set()
        self.url = ""
        self.named: str | None = None
        """Whose configuration it says this is, if not its own."""

    def add(self, kid: str, algorithm: str = "RS256") -> None:
        made = {
            "RS": lambda: rsa.generate_private_key(65537, 2048),
            "ES": lambda: ec.generate_private_key(ec.SECP256R1()),
            "Ed": ed25519.Ed25519PrivateKey.generate,
        }
        self.keys[kid] = (algorithm, made[algorithm[:2]]())

    def jwks(self) -> dict[str, Any]:
        shown = []
        for kid, (name, key) in self.keys.items():
            algorithm = jwt.algorithms.get_default_algorithms()[name]
            shown.append({**algorithm.to_jwk(key.public_key(), as_dict=True), "kid": kid, "alg": name, "use": "sig"})
        return {"keys": shown}

    def token(self, kid: str = "one", headers: dict[str, Any] | None = None, **claims: Any) -> str:
        now = int(time.time())
        usual = {"iss": self.url, "aud": AUDIENCE, "sub": "ada", "iat": now, "exp": now + 3600}
        said = {name: value for name, value in {**usual, **claims}.items() if value is not None}
        name, key = self.keys[kid]
        return str(jwt.encode(said, key, name, headers={"kid": kid, **(headers or {})}))


@contextmanager
def issuing() -> Iterator[Issuer]:
    issuer = Issuer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            issuer.asked += self.path == "/jwks"
            configuration = {"issuer": issuer.named or issuer.url, "jwks_uri": f"{issuer.url}/jwks"}
            found = {"/.well-known/openid-configuration": configuration, "/jwks": issuer.jwks()}
            self.send_response(503 if issuer.down else 200)
            self.end_headers()
            if not issuer.awake.is_set():
                issuer.asleep.set()
                assert issuer.awake.wait(WAIT_S)
            with suppress(OSError):  # nobody waits for it any more
                self.wfile.write(json.dumps(found[self.path]).encode())

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        issuer.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield issuer
        finally:
            server.shutdown()
            thread.join(WAIT_S)


CLAIMS = {"tenant": "org", "team": "groups", "role": "realm_access.roles"}


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with issuing() as issuer:
        for kid, name in (("one", "RS256"), ("two", "ES256"), ("three", "EdDSA")):
            issuer.add(kid, name)
        yield issuer


TICKS = Ticks()


@pytest.fixture(scope="module")
def running(issuer: Issuer) -> Iterator[Running]:
    with serving(local=None, oidc=OidcSettings(issuer=issuer.url, audience=AUDIENCE), ticks=TICKS) as running:
        yield running


def status(running: Running, token: str, path: str = "/v1/stats") -> int:
    return running.http(token).get(path).status_code


@pytest.mark.parametrize("kid", ["one", "two", "three"])
def test_a_token_of_the_issuer_opens_its_owner_s_memory(issuer: Issuer, running: Running, kid: str) -> None:
    client = running.client(issuer.token(kid, sub=f"ada-{kid}"))
    (id,) = client.remember("Ada likes tea")
    assert client.get(id).partition.layer_id == f"ada-{kid}"
    other = running.client(issuer.token(kid, sub="ben"))
    assert other.entries() == []
    assert status(running, issuer.token(kid, sub="ben"), "/v1/entries?user=ada") == 403
    assert status(running, issuer.token(kid), "/v1/stats?tenant=acme") == 403
    assert status(running, issuer.token(kid), "/v1/keys") == 403
    assert status(running, running.key(), "/v1/stats?user=ada") == 200  # keys are taken as before


def shared_secret(issuer: Issuer, name: str) -> str:
    """A token whose "secret" is the public key, for a server that lets the token choose the algorithm."""
    key = issuer.keys["one"][1].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def part(value: Any) -> bytes:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=")

    claims = jwt.decode(issuer.token(), options={"verify_signature": False})
    signed = part({"alg": name, "typ": "JWT", "kid": "one"}) + b"." + part(claims)
    proof = b"" if name.lower() == "none" else hmac.new(key, signed, hashlib.sha256).digest()
    return (signed + b"." + base64.urlsafe_b64encode(proof).rstrip(b"=")).decode()


BAD: dict[str, Any] = {
    "another audience": lambda issuer: issuer.token(aud="someone else"),
    "no audience": lambda issuer: issuer.token(aud=None),
    "another issuer": lambda issuer: issuer.token(iss="https://evil.example"),
    "expired": lambda issuer: issuer.token(exp=int(time.time()) - 3600),
    "for ever": lambda issuer: issuer.token(exp=None),
    "not yet": lambda issuer: issuer.token(nbf=int(time.time()) + 3600),
    "nobody": lambda issuer: issuer.token(sub=None),
    "an empty name": lambda issuer: issuer.token(sub=""),
    "a name that is none": lambda issuer: issuer.token(sub="a\x00b"),
    "a list of people": lambda issuer: issuer.token(sub=["ada", "ben"]),
    "no signature": lambda issuer: shared_secret(issuer, "none"),
    "no signature, shouted": lambda issuer: shared_secret(issuer, "NONE"),
    "the public key as a secret": lambda issuer: shared_secret(issuer, "HS256"),
    "the algorithm of another key": lambda issuer: issuer.token("two", headers={"kid": "one"}),
    "a key that is not published": lambda issuer: issuer.token(headers={"kid": "other"}),
    "no key named": lambda issuer: issuer.token(headers={"kid": ""}),
    "an unknown demand": lambda issuer: issuer.token(headers={"crit": ["x"], "x": 1}),
    "another payload": lambda issuer: swapped(issuer.token(), issuer.token(sub="ben")),
    "too long": lambda issuer: issuer.token(more="x" * 20_000),
    "no JSON": lambda _: "a.b.c",
    "nothing": lambda _: "..",
}


def swapped(token: str, other: str) -> str:
    head, _, proof = token.split(".")
    return ".".join([head, other.split(".")[1], proof])


@pytest.mark.parametrize("name", BAD)
def test_what_does_not_hold_is_refused(issuer: Issuer, running: Running, name: str) -> None:
    TICKS.now += GUESSES_WINDOW_S
    with pytest.MonkeyPatch.context() as patch:
        if name == "an unknown demand":  # our library does not even write it
            patch.setattr(jwt.api_jws.PyJWS, "_validate_headers", lambda *_, **__: None)
        token = BAD[name](issuer)
    answer = running.http(token).get("/v1/stats")
    assert answer.status_code == 401, answer.text
    assert answer.json()["detail"].startswith(("token: ", "key: "))
    assert running.http(token).post("/mcp", json={}).status_code == 401
    assert running.http().get("/", headers={"authorization": f"Bearer {token}"}).status_code == 303  # to the sign-in


def test_failed_tokens_are_limited_by_address_and_good_ones_work_on(issuer: Issuer, running: Running) -> None:
    TICKS.now += GUESSES_WINDOW_S
    wrong = [status(running, f"a{number}.b.c") for number in range(GUESSES + 2)]
    assert wrong == [401] * GUESSES + [429] * 2
    assert status(running, issuer.token("one")) == 200
    TICKS.now += GUESSES_WINDOW_S
    assert status(running, "a.b.c") == 401


def test_claims_say_tenant_teams_and_role(issuer: Issuer) -> None:
    settings = OidcSettings(issuer=issuer.url, audience=AUDIENCE, claims=CLAIMS)
    with serving(local=None, oidc=settings) as running:

        def token(role: object, **claims: Any) -> str:
            return issuer.token(realm_access={"roles": role}, **{"org": "acme", "groups": ["core", "web"], **claims})

        writer = running.client(token(["writer", "other"]))
        writer.remember("Everyone deploys on Monday", layer="team", scope=Scope(user="ada", team="core"))
        assert [one.layer for one in writer.entries()] == ["team"]
        assert running.client(token(["reader"], sub="ben", groups=["core"])).entries() == writer.entries()
        assert running.client(token(["reader"], sub="ben", groups=[])).entries() == []
        assert running.client(token(["reader"], org="other")).entries() == []
        admin = running.client(token("admin", sub="cleo"))
        assert [key.tenant for key in admin.keys.list()] == []
        assert {event.detail.get("actor") for event in admin.admin.events()} >= {"oidc:ada", "oidc:ben"}
        assert running.http(token(["reader"])).post("/v1/entries", json={"text": "x"}).status_code == 403
        for wrong in ({"realm_access": None}, {"org": None}, {"org": ["a", "b"]}, {"groups": None}, {"groups": [1]}):
            assert status(running, token(["admin"], **wrong) if "realm_access" not in wrong else issuer.token()) == 401
        assert status(running, token(["nobody"])) == 403
        assert status(running, token([])) == 403


def test_an_address_that_nobody_verified_is_nobody(issuer: Issuer) -> None:
    settings = OidcSettings(issuer=issuer.url, audience=AUDIENCE, claims={"user": "email"})
    with serving(local=None, oidc=settings) as running:
        for verified, expected in ((True, 200), (None, 200), (False, 401)):
            assert status(running, issuer.token(email="ada@example.com", email_verified=verified)) == expected


def test_keys_are_kept_fetched_again_and_withdrawn() -> None:
    ticks = Ticks()
    with issuing() as issuer:
        issuer.add("one")
        settings = OidcSettings(issuer=issuer.url, audience=AUDIENCE)
        with serving(local=None, oidc=settings, ticks=ticks) as running:
            first = issuer.token()
            assert [status(running, first) for _ in range(5)] == [200] * 5
            assert issuer.asked == 1

            issuer.add("new")  # rotation: seen with the first token that it signs
            ticks.now += access.AGAIN_S + 1
            assert [status(running, issuer.token("new")), status(running, first), issuer.asked] == [200, 200, 2]

            for number in range(20):  # made up ids of keys do not make us ask the issuer
                assert status(running, issuer.token(headers={"kid": f"made up {number}"})) in (401, 429)
            assert issuer.asked == 2

            del issuer.keys["one"]  # withdrawn: refused when the kept keys are too old
            ticks.now += access.KEYS_S + 1
            assert [status(running, first), status(running, issuer.token("new"))] == [401, 200]

            issuer.down = True  # the kept keys serve on, for a while
            ticks.now += access.KEYS_S + 1
            assert status(running, issuer.token("new")) == 200
            ticks.now += access.STALE_S
            assert status(running, issuer.token("new")) == 503
            issuer.down, issuer.named = False, "https://evil.example"
            ticks.now += access.AGAIN_S + 1
            assert status(running, issuer.token("new")) == 503
            issuer.named = None
            ticks.now += access.AGAIN_S + 1
            assert status(running, issuer.token("new")) == 200


def test_a_slow_issuer_keeps_nobody_waiting_whose_key_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = Ticks()
    with issuing() as issuer:
        issuer.add("one")
        settings = OidcSettings(issuer=issuer.url, audience=AUDIENCE)
        with serving(local=None, oidc=settings, ticks=ticks) as running, monkeypatch.context() as patch:
            assert status(running, issuer.token()) == 200
            patch.setattr(access, "FETCH_S", WAIT_S)
            issuer.awake.clear()
            ticks.now += access.KEYS_S + 1
            other = threading.Thread(target=status, args=(running, issuer.token(headers={"kid": "made up"})))
            other.start()
            try:
                assert issuer.asleep.wait(WAIT_S)
                assert status(running, issuer.token()) == 200
                assert other.is_alive()
            finally:
                issuer.awake.set()
                other.join(WAIT_S)


@pytest.mark.parametrize(
    "wrong",
    [
        {"issuer": "http://login.example.com"},
        {"issuer": "login.example.com"},
        {"issuer": "ftp://login.example.com"},
        {"audience": " "},
        {"claims": {"password": "pw"}},
    ],
)
def test_settings_that_cannot_be_are_one_error(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        OidcSettings(**{"issuer": "https://login.example.com", "audience": "a", **wrong})
