"""Nobody reaches another tenant: every route and every tool is tried with another tenant's ids, on every place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellworn.server.app import build_app
from wellworn.server.keys import list_keys
from wellworn.tasks import ReasoningBank

from .conftest import Running, serving
from .made import Route, arguments, routes_of

SECRET = "the vault opens with 4711-zebra"


@dataclass(repr=False)
class World:
    """A tenant with secrets, and a key of another tenant."""

    running: Running
    ids: list[str]
    """What an attacker might know of the other tenant."""
    routes: list[Route]
    token: str
    victim: str
    """The victim's own key."""
    before: str = ""

    def state(self) -> str:
        memory = self.running.service.memory.for_user("ada", tenant="acme")
        entries = [repr(one) for one in memory.entries(limit=1000)]
        said = memory.session("talk").turns()
        keys = list_keys(memory.engine.store, "acme")
        tasks = ReasoningBank(memory).tasks()
        return repr(
            (entries, memory.sessions(), said, memory.links(self.ids[0]), keys, memory.learning.export(), tasks)
        )


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with serving(local=None, background=False) as running:
        token = running.key(tenant="acme")
        victim = running.client(token).for_user("ada")
        entry, other = victim.remember_many([SECRET, "an ordinary note of acme"])
        victim.link(other, entry, "supports")
        victim.session("talk").add("user", SECRET)
        victim.session("talk").end()
        victim.tasks.begin(task_id="open", query=SECRET)
        done = victim.tasks.begin(task_id="done", query=SECRET)
        steps = [{"tool": "open", "args": {"code": SECRET}, "error": "no"}, {"tool": "open", "args": {}, "ok": True}]
        item = victim.tasks.finish("done", steps, verdict=True).items[0].id
        found = victim.recall("vault")
        ids = [entry, "talk", found.id, token.split("_")[1], "ada", victim.jobs.list()[0].id, "open", done.id, item]
        world = World(running, ids, routes_of(build_app(running.service)), running.key(tenant="evil"), token)
        world.before = world.state()
        yield world


WIDE = pytest.mark.parametrize("wide", [2, pytest.param(9, marks=pytest.mark.slow)])
"""How many of the ids are tried with every scope."""
SCOPES = [{"user": "ada"}, {"user": "mallory"}, {"user": "ada", "tenant": "acme"}, {}]


@WIDE
def test_no_route_reaches_another_tenant(world: World, wide: int) -> None:
    tried = 0
    http = world.running.http(world.token)
    for route in world.routes:
        for id in world.ids:
            for number, body in enumerate(route.bodies(id)):
                for scope in SCOPES if number == 0 and id in world.ids[:wide] else SCOPES[:1]:
                    answer = http.request(
                        route.method,
                        route.url(id),
                        params={**route.query(id), **scope},
                        json=body,
                        headers={"if-match": "*"},
                    )
                    assert answer.status_code < 500, (str(route), body, answer.text)
                    assert "zebra" not in answer.text, (str(route), body)
                    if "tenant" in scope:
                        assert answer.status_code == 403
                    tried += 1
    assert tried > 5 * len(world.routes)
    assert world.state() == world.before


def test_an_export_of_another_tenant_is_loaded_into_one_s_own(world: World, tmp_path: Path) -> None:
    """Whoever got hold of it can read it, but changes nothing of the other tenant with it."""
    world.running.client(world.victim).admin.export(tmp_path / "acme.jsonl")
    before = world.state()
    thief = world.running.client(world.running.key(tenant="thief")).for_user("eve")
    assert thief.admin.load(tmp_path / "acme.jsonl").entries >= 2
    assert {one.partition.tenant for one in thief.entries()} == {"thief"}
    assert world.state() == before


def rpc(http: httpx.Client, method: str, params: dict[str, Any], **query: str) -> httpx.Response:
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return http.post("/mcp", json=message, headers=headers, params=query)


@WIDE
def test_no_tool_and_no_resource_reaches_another_tenant(world: World, wide: int) -> None:
    pytest.importorskip("mcp")
    http = world.running.http(world.token)
    reader = world.running.http(world.running.key(tenant="evil", role="reader"))
    tools = rpc(http, "tools/list", {}, user="ada").json()["result"]["tools"]
    assert len(tools) == 9
    for tool in tools:
        for id in world.ids:
            for number, said in enumerate(arguments(tool["inputSchema"], id)):
                for scope in SCOPES if number == 0 and id in world.ids[:wide] else SCOPES[:1]:
                    answer = rpc(http, "tools/call", {"name": tool["name"], "arguments": said}, **scope)
                    assert answer.status_code == (403 if "tenant" in scope else 200), (tool["name"], answer.text)
                    assert "zebra" not in answer.text
        if not tool["annotations"]["readOnlyHint"]:
            answers = [
                rpc(reader, "tools/call", {"name": tool["name"], "arguments": said}, user="ada").json()["result"]
                for said in arguments(tool["inputSchema"], "x")
            ]
            assert all(one["isError"] for one in answers), tool["name"]
            assert "this needs writer" in str(answers), tool["name"]
    templates = rpc(http, "resources/templates/list", {}, user="ada").json()["result"]["resourceTemplates"]
    listed = rpc(http, "resources/list", {}, user="ada").json()["result"]["resources"]
    for id in world.ids:
        for shape in [*(one["uriTemplate"] for one in templates), *(one["uri"] for one in listed)]:
            uri = shape.partition("{")[0] + (id if "{" in shape else "")
            assert "zebra" not in rpc(http, "resources/read", {"uri": uri}, user="ada").text
    assert world.state() == world.before


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
    params = {"user": "nobody", **({name: value} if where == "query" else {})}
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
