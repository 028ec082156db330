"""The sentence that matched, as every door shows it: REST and its client, the page, MCP, the command line."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest

from language.test_parts import Reading
from wellworn import Memory, Recall
from wellworn.cli.render import hit_table
from wellworn.doors.mcp import build_server

from .conftest import ME, Running, serving

SEVERAL = "I live in <b>Oslo</b> with my dog. My cat is called Momo and likes fish."
ANSWER = "My cat is called Momo and likes fish."
QUESTION = "What is my cat called?"


@pytest.fixture
def server() -> Iterator[Running]:
    with serving(embedder=Reading(256)) as running:
        running.service.memory.remember(SEVERAL, scope=ME)
        yield running


def test_the_service_its_client_and_its_page_show_it(server: Running) -> None:
    at = [SEVERAL.index(ANSWER), len(SEVERAL)]
    for _ in range(2):  # the second answer is the one that was kept
        (hit,) = server.http().post("/v1/recall", json={"query": QUESTION}).json()["hits"]
        assert hit["sentence"] == at
    (found,) = server.client().recall(QUESTION)
    assert found.sentence == (at[0], at[1])
    page = server.http().get("/", params={"q": QUESTION}).text
    assert f">I live in &lt;b&gt;Oslo&lt;/b&gt; with my dog. <mark>{ANSWER}</mark></a>" in page


def test_a_model_is_given_it_unless_it_shows_what_the_text_hides(server: Running) -> None:
    found = server.service.memory.recall(QUESTION, scope=ME)
    secret = "The password is: hunter2-very-long-Secret99 and so on."
    (hit,) = found
    entry = replace(hit.entry, text=secret)
    hidden = replace(hit, entry=entry, sentence=(secret.index("hunter2"), len(secret)))
    whole, cut = (_shown_to_models(server.service.memory, replace(found, hits=[one])) for one in (hit, hidden))
    assert whole["sentence"] == ANSWER
    assert "hunter2" not in cut["text"]
    assert "hunter2" not in cut["sentence"]


def _shown_to_models(memory: Memory, recall: Recall) -> dict[str, str]:
    from mcp import Client

    bound = memory.for_user("me")
    bound.__dict__["recall"] = lambda *_, **__: recall

    async def ask() -> dict[str, str]:
        async with Client(build_server(bound)) as client:
            answer = await client.call_tool("memory_search", {"query": QUESTION})
        return dict(answer.structured_content["memories"][0])

    return asyncio.run(ask())


def test_the_command_line_prints_it_bold(server: Running) -> None:
    from rich.console import Console

    console = Console(force_terminal=True, width=200, color_system="standard", record=True)
    console.print(hit_table(server.service.memory.recall(QUESTION, scope=ME).hits))
    assert f"\x1b[1m{ANSWER}" in console.export_text(styles=True)
