"""Nobody reaches another tenant: every route of the schema is tried with another tenant's ids, on every place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .conftest import Running, serving

SECRET = "the vault opens with 4711-zebra"
USERS = {"acme": "ada", "evil": "mallory"}


@dataclass(repr=False)
class World:
    """A tenant with secrets, and a key of another tenant."""

    running: Running
    ids: dict[str, str]
    """What an attacker might know of the other tenant."""
    routes: list[tuple[str, str, dict[str, Any]]]
    token: str
    before: str

    def state(self) -> str:
        memory = self.running.service.memory.for_user("ada", tenant="acme")
        entries = [repr(one) for one in memory.entries(limit=1000)]
        return repr((entries, memory.sessions(), memory.session("talk").turns(), memory.links(self.ids["entry"])))


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with serving(local=None, background=False) as running:
        victim = running.client(running.key(tenant="acme")).for_user("ada")
        entry, other = victim.remember_many([SECRET, "an ordinary note of acme"])
        victim.link(other, entry, "supports")
        victim.session("talk").add("user", SECRET)
        recall = victim.recall("vault")
        ids = {"entry": entry, "other": other, "session": "talk", "recall": recall.id}
        schema = running.http().get("/openapi.json").json()
        routes = [
            (method.upper(), path, operation)
            for path, methods in schema["paths"].items()
            for method, operation in methods.items()
        ]
        world = World(running, ids, routes, running.key(tenant="evil"), "")
        world.before = world.state()
        yield world


BODIES: dict[str, list[Any]] = {
    "/v1/entries": [{"text": "mine", "tenant": "acme"}, {"text": "mine", "metadata": {"tenant": "acme"}}],
    "/v1/entries/{id}": [{"text": "changed"}, {"state": "pruned"}],
    "/v1/entries/{id}/supersede": [{"new": "{other}"}, {"new": "{other}", "wrong": True}],
    "/v1/links": [{"source": "{entry}", "target": "{other}", "type": "contradicts"}],
    "/v1/recall": [{"query": "vault zebra"}, {"query": "vault", "session_id": "talk"}],
    "/v1/reason": [{"query": "what does the vault open with"}],
    "/v1/context": [{"message": "vault zebra"}],
    "/v1/recalls/{id}/answer": [{"answer": "It opens. [0]", "shown": 1}],
    "/v1/recalls/{id}/outcome": [{"cited": [0]}, {"success": False}],
    "/v1/sessions/{id}/turns": [{"turns": [{"role": "user", "text": "hello"}]}],
    "/v1/sessions/{id}/end": [{}],
    "/v1/reflect": [{"session_id": "talk"}, {}],
    "/v1/forget": [{"ids": ["{entry}"]}, {"session_id": "talk"}, {"everything": True}],
}


def filled(value: Any, ids: dict[str, str]) -> Any:
    if isinstance(value, str):
        return value.format(**ids) if value.startswith("{") else value
    if isinstance(value, list):
        return [filled(one, ids) for one in value]
    return {key: filled(one, ids) for key, one in value.items()} if isinstance(value, dict) else value


SCOPES = ["", "user=ada", "user=mallory", "user=ada&tenant=acme", "tenant=acme", "user=ada&team=acme", "tenant=default"]


def test_no_route_reaches_another_tenant(world: World) -> None:
    http, ids = world.running.http(world.token), world.ids
    tried = 0
    for method, path, operation in world.routes:
        places = [ids["entry"], ids["session"], ids["recall"]] if "{id}" in path else [""]
        query = {
            one["name"]: filled({"source": "{entry}", "target": "{other}"}.get(one["name"], "supports"), ids)
            for one in operation.get("parameters", [])
            if one.get("in") == "query" and one.get("required")
        }
        bodies = [filled(body, ids) for body in BODIES.get(path, [None])] if "requestBody" in operation else [None]
        for place in places:
            for scope in SCOPES:
                for body in bodies:
                    url = f"{path.replace('{id}', place)}?{scope}"
                    answer = http.request(
                        method, url, params={**dict(_pairs(scope)), **query}, json=body, headers={"if-match": "*"}
                    )
                    assert answer.status_code < 500, (method, url, answer.text)
                    assert "zebra" not in answer.text.replace("vault zebra", ""), (method, url)
                    if "tenant=" in scope and path.startswith("/v1"):
                        assert answer.status_code == 403
                    tried += 1
    assert tried > 250
    assert world.state() == world.before


def _pairs(scope: str) -> list[tuple[str, str]]:
    return [(name, value) for name, _, value in (part.partition("=") for part in scope.split("&")) if value]


@settings(max_examples=40)
@given(
    name=st.sampled_from(["tenant", "Tenant", "scope", "x-tenant", "user", "org", "company"]),
    value=st.sampled_from(["acme", "acme\x00", " acme", "ACME", "acme/../acme", "*", "%", "acme%00", "default"]),
    where=st.sampled_from(["query", "header", "body", "cookie"]),
)
def test_no_way_of_naming_a_tenant_works(world: World, name: str, value: str, where: str) -> None:
    http = world.running.http(world.token)
    body: dict[str, Any] = {"query": "vault zebra", **({name: value} if where == "body" else {})}
    said = value.replace("\x00", "").strip()
    headers = {name: said} if where == "header" else {"cookie": f"{name}={said}"} if where == "cookie" else {}
    params = {"user": "ada", **({name: value} if where == "query" else {})}
    answer = http.post("/v1/recall", json=body, params=params, headers=headers)
    assert answer.status_code < 500
    assert not (answer.status_code == 200 and answer.json()["hits"])


def test_a_request_is_remembered_by_who_sent_it(world: World) -> None:
    """The same idempotency key of another tenant gets nothing of the first one's answer."""
    name = {"idempotency-key": "the same"}
    mine = world.running.http(world.running.key(tenant="first"))
    theirs = world.running.http(world.running.key(tenant="second"))
    body = {"text": "mine alone"}
    first = mine.post("/v1/entries?user=u", json=body, headers=name)
    second = theirs.post("/v1/entries?user=u", json=body, headers=name)
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json() != second.json()
