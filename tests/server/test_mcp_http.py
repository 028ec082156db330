"""MCP over HTTP with the official client: the same tools, for the caller's own memory only."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from wellworn.server.service import MOST_LONG

from .conftest import WAIT_S, Running, serving

pytest.importorskip("mcp")


def call(url: str, tool: str, key: str | None = None, **arguments: Any) -> Any:
    """The structured result of one tool, by a client of its own."""
    import httpx2
    from mcp import ClientSession
    from mcp.client.streamable_http import streamable_http_client

    async def run() -> Any:
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=WAIT_S) as http,
            streamable_http_client(url, http_client=http) as streams,
            ClientSession(*streams[:2]) as session,
        ):
            await session.initialize()
            return await session.call_tool(tool, arguments)

    return asyncio.run(asyncio.wait_for(run(), timeout=2 * WAIT_S))


def test_what_is_remembered_over_mcp_is_found_over_rest_and_back(server: Running) -> None:
    stored = call(f"{server.url}/mcp", "memory_remember", text="Ada prefers tokio", kind="preference")
    assert [one.id for one in server.client().entries()] == stored.structured_content["ids"]
    assert 'route="/mcp"' in server.http().get("/metrics").text
    server.client().for_user("ben").remember("Ben's vault opens with zebra")
    found = call(f"{server.url}/mcp", "memory_search", query="what does Ada prefer, and the vault?")
    assert [one["text"] for one in found.structured_content["memories"]] == ["Ada prefers tokio"]


def test_a_key_says_whose_memory_it_is() -> None:
    with serving(local=None) as running:
        ada, ben = running.key(tenant="acme", user=["ada"]), running.key(tenant="acme", role="reader", user=["ben"])
        call(f"{running.url}/mcp", "memory_remember", ada, text="The vault opens with zebra")
        other = call(f"{running.url}/mcp", "memory_search", ben, query="what does the vault open with?")
        assert "zebra" not in str(other)
        refused = call(f"{running.url}/mcp", "memory_remember", ben, text="Ben was here")
        assert refused.is_error
        assert "writer" in str(refused.content)
        assert call(f"{running.url}/mcp", "memory_forget", ada, ids=["nope"]).is_error
        events = running.client(running.key(tenant="acme")).admin.events()
        logged = {(one.action, one.detail["status"]) for one in events if one.action.startswith("mcp:")}
        assert logged == {("mcp:memory_remember", 200), ("mcp:memory_search", 200)} | {
            ("mcp:memory_remember", 403),
            ("mcp:memory_forget", 404),
        }
        headers = {"authorization": f"Bearer {ben}"}
        for query in ("user=ada", "tenant=other", "user=ben&team=core"):
            assert httpx.post(f"{running.url}/mcp?{query}", headers=headers, json={}).status_code == 403
        assert httpx.post(f"{running.url}/mcp", json={}).status_code == 401


def test_every_tool_asks_a_key_of_nobody_for_a_layer() -> None:
    with serving(local=None) as running:
        key = running.key(tenant="acme")
        given: dict[str, dict[str, Any]] = {
            "memory_search": {"query": "tea"},
            "memory_edit": {"id": "x", "text": "tea"},
            "memory_forget": {"ids": ["x"]},
        }
        for tool, arguments in {**given, "memory_feedback": {"recall_id": "x", "cited": [0]}}.items():
            refused = call(f"{running.url}/mcp", tool, key, **arguments)
            assert refused.is_error
            assert "names no layer (name one in the address, as in /mcp?user=ada)" in str(refused.content)
        assert not call(f"{running.url}/mcp?user=ada", "memory_search", key, query="tea").is_error


def test_long_tools_count_as_long_requests(server: Running) -> None:
    given: dict[str, dict[str, Any]] = {
        "session_end": {"turns": [{"role": "user", "text": "I live in Oslo"}]},
        "memory_reason": {"query": "Where do I live?"},
        "task_finish": {"task_id": "t", "steps": []},
    }
    call(f"{server.url}/mcp", "task_start", query="move to Oslo", task_id="t")
    with ExitStack() as held:
        for _ in range(MOST_LONG):
            held.enter_context(server.service.long())
        for tool, arguments in given.items():
            assert "too many long requests" in str(call(f"{server.url}/mcp", tool, **arguments).content)
        assert not call(f"{server.url}/mcp", "memory_search", query="Oslo").is_error
    assert {one.detail["status"] for one in server.client().admin.events() if one.action == "mcp:session_end"} == {503}
    for tool, arguments in given.items():
        assert not call(f"{server.url}/mcp", tool, **arguments).is_error


def test_no_stream_is_held_open(server: Running) -> None:
    """Nothing would be sent on it, and it would hold up the end of the service."""
    for method in ("GET", "DELETE"):
        answer = server.http().request(method, "/mcp", headers={"accept": "text/event-stream"})
        assert answer.status_code == 405


def test_a_parameter_that_nobody_knows_is_refused(server: Running) -> None:
    refused = server.http().post("/mcp", params={"usr": "ben"}, json={})
    assert (refused.status_code, "usr" in refused.json()["detail"]) == (422, True)
