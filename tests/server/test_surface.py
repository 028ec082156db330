"""What holds for every route, whatever it does. The routes come from the schema, so that a new one is tried as well."""

from __future__ import annotations

import http.client
import re
from collections.abc import Iterator
from functools import cache
from itertools import product

import httpx
import pytest

from contract.few import few
from wellworn import Memory
from wellworn.server.app import build_app
from wellworn.server.guard import LOOPBACK, Rules
from wellworn.server.keys import ROLES
from wellworn.server.service import MemoryService
from wellworn.server.verbs import BESIDE_STORE
from wellworn.views import AdminView

from .conftest import ME, WAIT_S, Running, serving
from .made import Route, routes_of


@cache
def all_routes() -> list[Route]:
    with Memory(":memory:", embedder="hash", background=False) as memory:
        return routes_of(build_app(MemoryService(memory, rules=Rules(hosts=LOOPBACK), local=ME)))


def writes() -> list[Route]:
    return [route for route in all_routes() if route.writes]


READING = {"POST /v1/recall", "POST /v1/reason", "POST /v1/context", "POST /v1/items/search"}
"""Questions are sent as a POST, because they are long."""


@pytest.fixture(scope="module")
def keyed() -> Iterator[Running]:
    with serving(local=None, background=False) as running:
        yield running


@pytest.fixture(scope="module")
def local() -> Iterator[Running]:
    with serving(background=False) as running:
        yield running


def send(client: httpx.Client, route: Route, **options: object) -> httpx.Response:
    body = next(route.bodies("x"))
    given = {"json": body} if body is not None else {}
    query = {"user": "ada", **route.query("x")}
    return client.request(route.method, route.url("x"), **{"params": query, **given, **options})


def test_every_route_has_a_role_that_fits() -> None:
    for route in all_routes():
        needs = ROLES.index(route.operation["x-role"])
        assert needs >= (1 if route.writes and str(route) not in READING else 0), route
        assert needs == 2 or "/keys" not in route.path


@pytest.mark.parametrize("role", [None, *ROLES])
def test_a_route_is_for_its_role_and_those_above(keyed: Running, role: str | None) -> None:
    client = keyed.http(None if role is None else keyed.key(role=role))
    for route in all_routes():
        allowed = role is not None and ROLES.index(role) >= ROLES.index(route.operation["x-role"])
        answer = send(client, route)
        if role is None:
            assert answer.status_code == 401, route
        else:
            assert (answer.status_code != 403) == allowed, (route, answer.text)
        if not allowed:
            assert answer.headers["content-type"] == "application/problem+json"


def test_a_key_of_a_person_does_nothing_that_concerns_the_tenant(keyed: Running) -> None:
    """Keys, the audit log, the ledger, policies, the queue and the whole store are not a person's."""
    client = keyed.http(keyed.key(user=["ada"]))
    refused = {route.path for route in all_routes() if send(client, route).status_code == 403}
    assert refused >= {"/v1/keys", "/v1/keys/{id}", "/v1/events", "/v1/costs", "/v1/retention", "/v1/verify"}
    assert refused >= {"/v1/learning/reset", "/v1/learning/relearn", "/v1/jobs/run", "/v1/expire"}
    assert refused.isdisjoint({"/v1/entries", "/v1/recall", "/v1/export", "/v1/load", "/v1/erase"})


def test_a_simple_request_of_a_browser_that_tells_no_origin_cannot_write(local: Running) -> None:
    client = local.http()
    for route in writes():
        if route.kind == "application/json":
            for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
                answer = send(client, route, json=None, content=b'{"text": "x"}', headers={"content-type": kind})
                assert answer.status_code in (404, 422), (route, kind)


BROKEN = [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"unknown": 1}', b"[" * 5000, b'{"a":' * 5000, b'"x"', b"1e999"]
BROKEN_ENTRIES = [
    b'{"text": NaN}',
    b'{"text": 1' + b"0" * 5000 + b"}",
    b'{"text": "\\ud800"}',
    b'{"text": "\\u0000"}',
    b'{"text": "x", "confidence": 1e999}',
    b'{"text": "x", "metadata": {"a": Infinity}}',
    b'{"text": "x", "at": "99999-01-01"}',
    b'{"text": "x", "tags": "notalist"}',
    b'{"entries": []}',
    b'{"entries": {"text": "x"}}',
    b'{"text": "x", "user": "ben"}',
]


def test_a_malformed_body_is_one_clear_error(local: Running) -> None:
    client = local.http()
    entries = [route for route in writes() if str(route) == "POST /v1/entries"]
    for route, content in [*product([one for one in writes() if one.kind], BROKEN), *product(entries, BROKEN_ENTRIES)]:
        optional = not route.operation["requestBody"].get("required")
        if route.kind != "application/json" and content in (b"", b'"x"', b"null", b"[]"):
            continue  # nothing to import, or one text
        if optional and content in (b"", b"null"):
            continue
        answer = send(client, route, json=None, content=content, headers={"content-type": str(route.kind)})
        if answer.status_code == 200 and answer.headers["content-type"].startswith("text/event-stream"):
            assert "event: error" in answer.text, (route, content)
            continue
        assert 400 <= answer.status_code < 500, (route, content[:20], answer.text)
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["detail"]


WRONG = [7, -1, "superseded", [7], {}, 1.5]
PYTHON = re.compile(r"\w\(|\w=[^\w]|\bNone\b|\bTrue\b|\bScope\b|`wellworn (?!export)|`record`")
"""Words of the Python interface and of the command line, which a caller of the service may not have."""


@pytest.mark.parametrize("wrong", few(WRONG, 2))
def test_an_error_names_its_remedy_in_words_of_the_service(local: Running, wrong: object) -> None:
    client = local.http()
    for route in writes():
        for body in [one for one in route.bodies("x") if isinstance(one, dict)]:
            for name in ["", *body]:
                given = {**body, name: wrong} if name else body
                answer = send(client, route, json=given)
                assert answer.status_code < 500, (route, given, answer.text)
                detail = answer.json()["detail"] if answer.status_code >= 400 else ""
                assert not PYTHON.search(detail), (route, given, detail)
    missing = client.post("/v1/tasks/none/finish", json={"trajectory": "x"})
    assert missing.json()["remedy"] == "begin it first: POST /v1/tasks"


def test_a_body_that_is_too_large_is_refused_before_it_is_sent(local: Running) -> None:
    host = local.url.removeprefix("http://")
    for route, length in product(writes(), ("99999999999", "-1", "1e3", "٣")):
        connection = http.client.HTTPConnection(host, timeout=WAIT_S)
        try:
            connection.putrequest(route.method, route.url("x"))
            connection.putheader("content-type", "application/json")
            connection.putheader("content-length", length.encode())
            connection.endheaders()
            assert connection.getresponse().status in ((413,) if length[0] == "9" else (400, 413))
        finally:
            connection.close()


def test_head_is_answered_where_get_is(local: Running) -> None:
    http = local.http()
    http.post("/v1/entries", params={"user": "ada"}, json={"text": "Ada likes tea"})
    for path in ("/", "/healthz", "/openapi.json", "/v1/entries", "/v1/stats", "/v1/nothing"):
        get, head = http.get(path, params={"user": "ada"}), http.head(path, params={"user": "ada"})
        told = [answer.headers.get("content-type") for answer in (get, head)]
        assert (head.status_code, told[1], head.content) == (get.status_code, told[0], b""), path
    assert http.head("/v1/recall").status_code == 405


def test_a_client_has_every_verb_of_admin_or_says_what_to_do_instead(local: Running) -> None:
    admin = local.client().admin
    verbs = {name for name in vars(AdminView) if not name.startswith("_")}
    assert verbs == {name for name in verbs if hasattr(admin, name)} | {*BESIDE_STORE}
    for name in BESIDE_STORE:
        with pytest.raises(AttributeError, match=rf"admin\.{name}: .+"):
            getattr(admin, name)
