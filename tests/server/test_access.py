"""Who may call: keys, roles, scopes, limits, and what a browser may be made to send."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from wellworn import (
    AccessDenied,
    Client,
    InvalidInput,
    Memory,
    NotFound,
    RetentionPolicy,
    Scope,
    StoreError,
    StoreUnreachable,
)
from wellworn.ingest import remember
from wellworn.server.access import GUESSES, Caller
from wellworn.server.guard import LOOPBACK, Rules
from wellworn.server.keys import create_key, find_key, id_in, list_keys, opens, revoke_key, rotate_key
from wellworn.server.wire import error_of
from wellworn.store.port import Record, RecordFilter

from .conftest import Running, serving

NOW = datetime(2026, 5, 1, tzinfo=UTC)


class Ticks:
    """Seconds that pass when the test says so."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def keyed() -> Iterator[Running]:
    """A server that asks everybody for a key."""
    with serving(local=None, rules=Rules(hosts=None)) as running:
        yield running


# -- keys ----------------------------------------------------------------------------------------------------------


def test_without_a_known_key_nothing_is_answered(keyed: Running) -> None:
    http = keyed.http()
    for given in (
        None,
        "",
        "Bearer",
        "Bearer ww_0123456789abcdef_x",
        "Bearer ww__",
        "Basic d3c6d3c=",
        f"Bearer {'ww_' * 2000}",
        "Bearer \xe9\xff",
    ):
        headers = {} if given is None else {b"authorization": given.encode("latin-1")}
        for path in ("/v1/stats?user=ada", "/metrics", "/mcp", "/v1/nothing"):
            answer = http.get(path, headers=headers)
            assert answer.status_code in (401, 429), (given, path)
            assert answer.headers["content-type"] == "application/problem+json"
    assert http.get("/healthz").status_code == 200


def test_a_key_ends_by_time_revocation_and_rotation() -> None:
    with serving(local=None, clock=lambda: NOW) as running:
        store = running.service.memory.engine.store

        def status(token: str) -> int:
            return running.http(token).get("/v1/stats?user=ada").status_code

        short = create_key(store, tenant="t", role="reader", now=NOW - timedelta(days=2), expires_at=NOW)[1]
        assert status(short) == 401
        key, token = create_key(store, tenant="t", role="reader", now=NOW)
        assert status(token) == 200
        new, renewed = rotate_key(store, key.id[:6], now=NOW, grace=timedelta(0))
        assert (status(token), status(renewed)) == (401, 200)
        late, _ = rotate_key(store, new.id, now=NOW, grace=timedelta(days=1))
        with pytest.raises(InvalidInput, match=f"rotate {late.id}"):
            rotate_key(store, new.id, now=NOW, grace=timedelta(days=1))
        assert rotate_key(store, late.id, now=NOW, grace=timedelta(days=1))[0].expires_at is None
        assert (new.role, new.tenant, new.layers) == (key.role, key.tenant, key.layers)
        revoke_key(store, new.id, now=NOW)
        assert status(renewed) == 401
        assert token.split("_", 2)[2] not in str(list_keys(store))


def test_a_database_that_is_slow_to_find_a_key_keeps_nobody_else_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(local=None) as running:
        http, store, freezing = running.http(running.key()), running.service.memory.engine.store, []
        find = store.records

        def records(wanted: RecordFilter) -> list[Record]:
            with suppress(RuntimeError):  # on a thread of its own
                freezing.append(asyncio.get_running_loop())
            return find(wanted)

        monkeypatch.setattr(store, "records", records)
        assert http.get("/v1/stats?user=ada").status_code == 200
        assert http.post("/ui/sign-in", data={"key": http.headers["authorization"].split()[1]}).status_code == 303
        assert http.get("/?user=ada", headers={"authorization": ""}).status_code == 200
        assert not freezing


class Lost(StoreUnreachable):
    """As a store of its own makes it."""


@pytest.mark.parametrize(
    ("kind", "status", "retry", "said"),
    [(StoreError, 500, None, "store failed"), (Lost, 503, "1", "cannot be reached")],
)
def test_a_store_that_fails_shows_nobody_where_it_is(
    kind: type[StoreError], status: int, retry: str | None, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def records(wanted: RecordFilter) -> list[Record]:
        raise kind("cannot reach postgresql://owner@db.internal:5432/memory")

    with serving(local=None) as running:
        monkeypatch.setattr(running.service.memory.engine.store, "records", records)
        key = "ww_0123456789abcdef_x"
        answers = [running.http(key).get("/v1/stats"), running.http().post("/ui/sign-in", data={"key": key})]
    for answer in answers:
        assert answer.status_code == status
        assert said in answer.text
        assert "internal" not in answer.text
    assert answers[0].headers.get("retry-after") == retry
    assert type(error_of(status, answers[0].json())) is (StoreUnreachable if retry else StoreError)


def test_keys_are_changed_one_after_the_other(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", embedder="hash", background=False) as mem, ThreadPoolExecutor(9) as pool:
        store = mem.engine.store

        def rotated(id: str) -> str:
            try:
                return rotate_key(store, id, now=NOW, grace=timedelta(days=1))[0].id
            except InvalidInput:
                return ""

        for _ in range(5):
            key, token = create_key(store, tenant="t", role="reader", now=NOW)
            with store.transact():  # all of them have begun before the first can write
                waiting = [pool.submit(rotated, key.id) for _ in range(8)]
                revoking = pool.submit(revoke_key, store, key.id, now=NOW)
                wait(waiting, timeout=0.1)
            revoking.result()
            new = [id for one in waiting if (id := one.result())]
            assert len(new) <= 1
            assert not opens(find_key(store, key.id), token, NOW)


def test_the_secret_is_nowhere_in_the_file(tmp_path: Any) -> None:
    with serving(tmp_path / "memory.db", local=None) as running:
        secret = running.key().split("_", 2)[2]
    assert all(secret.encode() not in path.read_bytes() for path in tmp_path.iterdir())


def test_a_key_of_a_person_reaches_nobody_else(keyed: Running) -> None:
    everyone = keyed.client(keyed.key(tenant="acme"))
    everyone.for_user("ben").remember("Ben's secret is blue")
    ada = keyed.client(keyed.key(tenant="acme", user=["ada"], team=["core"]))
    (mine,) = ada.remember("Ada likes tea")
    assert ada.get(mine).partition.layer_id == "ada"
    assert [one.text for one in ada.entries()] == ["Ada likes tea"]
    assert [one.text for one in ada.for_scope(Scope(user="ada")).entries()] == ["Ada likes tea"]
    assert everyone.for_scope(Scope(tenant="acme", user="ada")).get(mine).text == "Ada likes tea"
    for scope in (Scope(user="ben"), Scope(user="ada", org="x"), Scope(tenant="other", user="ada"), Scope(team="web")):
        with pytest.raises(AccessDenied):
            ada.recall("secret", scope=scope)
    with pytest.raises(AccessDenied):
        ada.admin.events()
    with pytest.raises(AccessDenied):
        ada.verify()


def test_the_audit_log_says_who_wrote_and_who_read(keyed: Running) -> None:
    token = keyed.key(tenant="audited")
    client: Client = keyed.client(token).for_user("ada")
    (id,) = client.remember("Ada likes tea")
    client.edit(id, text="Ada likes coffee")
    client.get(id)
    found = client.recall("what does Ada like")
    client.outcome(found.id, cited=[0])
    client.forget([id])
    with pytest.raises(NotFound):
        client.get(id)
    actor = f"key:{token.split('_')[1]}"
    events = [event for event in client.admin.events() if event.detail.get("actor") == actor]
    assert {("remember", id), ("edit", id), ("forget", None)} <= {(one.action, one.entry_id) for one in events}
    calls = [(one.action, one.detail["id"], one.detail["status"]) for one in events if "id" in one.detail]
    assert calls == [
        ("get_entry", id, 404),
        ("report_outcome", found.id, 200),
        ("recall", found.id, 200),
        ("get_entry", id, 200),
        ("edit_entry", id, 200),
    ]
    (asked,) = [one for one in events if one.action == "recall"]
    assert (asked.detail["scope"], asked.detail["count"]) == ("user=ada", 1)
    assert "tea" not in str(client.admin.events())
    refused = keyed.http(keyed.key(tenant="audited", role="reader")).get("/v1/events")
    assert refused.status_code == 403
    assert ("events", 403) in [(one.action, one.detail.get("status")) for one in client.admin.events()]


def test_calls_in_the_audit_log_are_kept_as_long_as_the_policy_says() -> None:
    clock = [NOW]
    with serving(clock=lambda: clock[0], background=False) as running:
        client = running.client()
        (id,) = client.remember("Ada likes tea")
        client.get(id)
        assert "get_entry" in [event.action for event in client.admin.events()]
        client.admin.retention(RetentionPolicy(calls=1))
        for _ in range(4):  # a jump of the clock deletes nothing
            clock[0] += timedelta(hours=20)
            assert client.admin.expire(dry_run=True).calls >= 0
        assert client.admin.expire(dry_run=True).calls >= 2
        assert client.admin.expire().calls >= 2
        left = [event.action for event in client.admin.events()]
        assert "remember" in left
        assert "get_entry" not in left


def test_an_admin_makes_keys_of_the_own_tenant_over_the_service(keyed: Running) -> None:
    admin = keyed.client(keyed.key(tenant="keys"))
    stranger = keyed.client(keyed.key(tenant="strangers"))
    made = admin.keys.create("laptop", layers={"user": ["ada"]}, expires_at="2099-01-01")
    assert (made.info.tenant, made.info.role, made.info.layers) == ("keys", "writer", {"user": ["ada"]})
    keyed.client(made.key).remember("Ada likes tea")
    new = admin.keys.rotate(made.info.id, grace=timedelta(0))
    assert keyed.client(new.key).entries()[0].text == "Ada likes tea"
    with pytest.raises(AccessDenied):
        keyed.client(made.key).entries()
    with pytest.raises(NotFound):
        stranger.keys.revoke(new.info.id)
    for part in ("", new.info.id[:6], new.info.id[:-1]):
        with pytest.raises(NotFound):
            admin.keys.revoke(part)
        with pytest.raises(NotFound):
            admin.keys.rotate(part)
    assert {key.id for key in admin.keys.list()} > {made.info.id, new.info.id}
    assert {key.tenant for key in stranger.keys.list()} == {"strangers"}
    assert admin.keys.revoke(new.info.id).revoked_at is not None
    with pytest.raises(AccessDenied):
        keyed.client(new.key).entries()
    assert {"create_key", "rotate_key", "revoke_key"} <= {event.action for event in admin.admin.events()}
    for wrong in ({"role": "owner"}, {"layers": {"planet": ["x"]}}, {"layers": {"user": ["a", "b"]}}, {"name": "\x00"}):
        with pytest.raises(InvalidInput):
            admin.keys.create(**wrong)
    for wrong_time in ("2020-01-01", "soon"):
        with pytest.raises(InvalidInput):
            admin.keys.create(expires_at=wrong_time)


def test_an_import_ends_with_its_key(keyed: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    token, engine = keyed.key(tenant="imports"), keyed.service.memory.engine
    monkeypatch.setattr(remember, "BATCH_ENTRIES", 2)
    check = keyed.service.gate.check

    def revoked_meanwhile(caller: Caller) -> None:
        if engine.store.counts(Scope(tenant="imports", user="ada").partitions())["entries"]:
            revoke_key(engine.store, id_in(token), now=engine.clock())
        check(caller)

    monkeypatch.setattr(keyed.service.gate, "check", revoked_meanwhile)
    with pytest.raises(AccessDenied, match="revoked"):
        keyed.client(token).for_user("ada").remember_many([f"text number {n}" for n in range(6)])
    assert len(keyed.client(keyed.key(tenant="imports")).for_user("ada").entries()) == 2


def test_an_answer_with_a_secret_is_not_kept(keyed: Running) -> None:
    http = keyed.http(keyed.key(tenant="secrets"))
    texts = [http.post("/v1/keys", json={}).json()["key"] for _ in range(2)]
    assert texts[0] != texts[1]
    for path in ("/v1/keys", f"/v1/keys/{id_in(texts[0])}/rotate", "/v1/load", "/v1/import?user=ada"):
        refused = http.post(path, json={}, headers={"idempotency-key": "twice"})
        assert (refused.status_code, "Idempotency-Key" in refused.json()["detail"]) == (422, True), path
    records = keyed.service.memory.engine.store.records(RecordFilter(tenant="secrets"))
    assert all(text.split("_", 2)[2] not in str(records) for text in texts)


# -- limits --------------------------------------------------------------------------------------------------------


def test_guessing_ends_even_with_the_right_secret() -> None:
    ticks = Ticks()
    with serving(local=None, ticks=ticks) as running:
        good, other = running.key(), running.key()
        wrong = good[:-4] + ("AAAA" if good[-4:] != "AAAA" else "BBBB")

        def status(token: str) -> int:
            return running.http(token).get("/v1/stats?user=ada").status_code

        assert [status(wrong) for _ in range(GUESSES + 2)] == [401] * GUESSES + [429] * 2
        assert status(good) == 429
        assert status(other) == 200
        assert [status(f"ww_{n:016x}_x") for n in range(GUESSES + 1)] == [401] * GUESSES + [429]
        ticks.now += 3600
        assert status(good) == 200


def test_a_key_may_call_so_often() -> None:
    ticks = Ticks()
    with serving(local=None, rate=2, ticks=ticks) as running:
        http, other = running.http(running.key()), running.http(running.key())
        answers = [http.get("/v1/stats?user=ada") for _ in range(5)]
        assert [one.status_code for one in answers] == [200] * 4 + [429]
        assert answers[-1].headers["retry-after"] == "1"
        assert other.get("/v1/stats?user=ada").status_code == 200
        ticks.now += 1
        assert [http.get("/v1/stats?user=ada").status_code for _ in range(3)] == [200, 200, 429]


# -- browsers ------------------------------------------------------------------------------------------------------


def test_a_page_on_another_port_cannot_use_the_cookie_of_a_visitor() -> None:
    cookie = {"host": "localhost:8765", "cookie": "wellworn=x"}
    for site, mode in (("same-site", "navigate"), ("same-origin", "cors")):  # a link that one follows; our own page
        Rules(hosts=None).check({**cookie, "sec-fetch-site": site, "sec-fetch-mode": mode})
    with pytest.raises(AccessDenied, match="a page of another site"):
        Rules(hosts=None).check({**cookie, "sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors"})


CALLERS: list[tuple[dict[str, str], int]] = [
    ({"host": "localhost:1"}, 200),
    ({"host": "[::1]:8765"}, 200),
    ({"host": "evil.example"}, 421),
    ({"host": "127.0.0.1.evil.example:8765"}, 421),
    ({"host": "localhost@evil.example"}, 421),
    ({"host": "[::1"}, 421),
    ({"origin": "http://localhost"}, 200),
    ({"origin": "http://localhost:3000"}, 403),
    ({"origin": "null"}, 403),
    ({"sec-fetch-site": "cross-site"}, 403),
    ({"sec-fetch-site": "same-site"}, 403),
    ({"sec-fetch-site": "same-origin"}, 200),
    ({"sec-fetch-site": "none"}, 200),
    ({"x-forwarded-for": "203.0.113.9"}, 401),
    ({"forwarded": "for=203.0.113.9"}, 401),
    ({"x-forwarded-proto": "https"}, 401),
    ({"x-real-ip": "203.0.113.9"}, 401),
    ({"via": "1.1 gate"}, 401),
    ({"cf-ray": "1"}, 401),
    ({"true-client-ip": "203.0.113.9"}, 401),
]


def test_a_page_of_somebody_else_cannot_call(server: Running) -> None:
    """The guard stands before every route: one of each kind is tried."""
    http = server.http()
    for number, (given, status) in enumerate(CALLERS):
        headers = {"host": "localhost", **given}
        assert http.get("/v1/stats", headers=headers).status_code == status, given
        assert status == 200 or http.get("/mcp", headers=headers).status_code == status, given
        written = http.post("/v1/entries", json={"text": f"x {number}"}, headers=headers)
        assert written.status_code == max(201, status), given
        if status in (403, 421):
            assert http.post("/ui/doctor", data={"token": "x"}, headers=headers).status_code == status, given


@pytest.mark.parametrize("path", ["/v1/stats", "/ui/doctor"])
def test_a_request_in_http_1_0_comes_from_a_proxy(path: str, server: Running) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    statuses = []
    for version in ("1.0", "1.1"):
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(f"GET {path} HTTP/{version}\r\nhost: localhost\r\n\r\n".encode())
            statuses.append(connection.recv(12)[9:])
    assert statuses == [b"401" if path == "/v1/stats" else b"303", b"200"]


def test_other_origins_are_allowed_when_named_and_only_then() -> None:
    rules = Rules(hosts=LOOPBACK, origins=("https://app.example",))
    with serving(rules=rules) as running:
        for origin, status in (("https://app.example", 200), ("https://evil.example", 403)):
            answer = running.http().get("/v1/stats", headers={"origin": origin})
            allowed = answer.headers.get("access-control-allow-origin")
            assert (answer.status_code, allowed) == (status, origin if status == 200 else None)


def test_answers_carry_security_headers(server: Running) -> None:
    for answer in (server.http().get("/v1/stats"), server.http().get("/nothing"), server.http().get("/healthz")):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in answer.headers


def test_the_owner_of_the_machine_needs_no_key(server: Running) -> None:
    client = server.client()
    client.remember("Ada likes tea")
    assert client.entries()[0].partition.layer_id == "me"
    assert client.for_user("ben").entries() == []
    assert client.verify().ok
    with pytest.raises(AccessDenied):
        client.recall("tea", scope=Scope(tenant="other", user="me"))


def test_nobody_is_removed_who_is_not_named(server: Running) -> None:
    http = server.http()
    for user in ("ada", "bob"):
        http.post("/v1/entries", params={"user": user}, json={"text": f"{user} likes tea."})
    for path, body in (("/v1/erase", {}), ("/v1/forget", {"everything": True})):
        assert http.post(path, json=body).status_code == 422
        refused = http.post(path, params={"user_id": "bob"}, json=body)
        assert (refused.status_code, "user_id" in refused.json()["detail"]) == (422, True)
    assert [http.get("/v1/stats", params={"user": user}).json()["entries"] for user in ("ada", "bob")] == [1, 1]
    assert http.post("/v1/erase", params={"user": "bob"}).json()["receipt"]["entries"] == 1
