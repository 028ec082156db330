"""The MCP server as clients use it: spawned over stdio in whole sessions, and in memory for single rules."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from contract.few import few
from wellworn import Memory
from wellworn.core.errors import InvalidInput, MissingExtra, ScopeError
from wellworn.core.fence import NOTHING, UNSURE
from wellworn.store.values import RecordFilter

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from mcp import Client, MCPError, StdioServerParameters
from mcp.types import INVALID_PARAMS

from wellworn.doors.mcp import MOST_LISTED, TOOLS, build_server

MODERN = "2026-07-28"
MODES = {MODERN: MODERN, "legacy": "2025-11-25"}  # "auto" would fall back to the older one on a slow machine
Call = Callable[..., Awaitable[Any]]


class Refused(Exception):
    """A tool that answered with an error."""


def run(story: Coroutine[Any, Any, None]) -> None:
    """Play it; one that hangs is an error, not a suite that never ends."""
    asyncio.run(asyncio.wait_for(story, timeout=600))


def calls_of(client: Client) -> Call:
    async def call(tool: str, **arguments: Any) -> Any:
        answer = await client.call_tool(tool, arguments)
        text = getattr(answer.content[0], "text", "")
        if answer.is_error:
            raise Refused(text)
        assert json.loads(text) == answer.structured_content
        return answer.structured_content

    return call


@asynccontextmanager
async def spawned(db: Path, mode: str = MODERN) -> AsyncIterator[Call]:
    """One session of a client: its own process, which ends with it."""
    arguments = ["-W", "error", "-m", "wellworn", "mcp", "--db", str(db)]
    server = StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))
    async with Client(server, mode=mode) as client:
        assert client.protocol_version == MODES[mode]
        yield calls_of(client)


def texts(found: Any) -> list[str]:
    return [memory["text"] for memory in found["memories"]]


# -- whole sessions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [MODERN, pytest.param("legacy", marks=pytest.mark.slow)])
def test_what_one_session_taught_serves_the_next_until_it_is_corrected(tmp_path: Path, mode: str) -> None:
    db = tmp_path / "memory.db"

    async def first() -> None:
        async with spawned(db, mode) as call:
            said = [{"role": "user", "text": "I prefer tabs over spaces."}]
            assert (await call("session_end", turns=said))["memories"][0]["action"] == "add"
            await call("memory_remember", text="The frontend tests run with `npm test`.", tags=["tests"])
            task = await call("task_start", query="Run the tests of the parser")
            assert task["advice"] == []
            steps = [
                {"tool": "Bash", "args": {"command": "pytest tests/parse"}, "error": "no such folder", "ok": False},
                {"tool": "Bash", "args": {"command": "uv run pytest tests/parser"}, "result": "12 passed", "ok": True},
            ]
            done = await call("task_finish", task_id=task["task_id"], steps=steps, success=True)
            assert (done["outcome"], len(done["learned"])) == ("success", 1)

    async def second() -> None:
        async with spawned(db, mode) as call:
            found = await call("memory_search", query="Does the user prefer tabs or spaces?")
            assert "tabs over spaces" in texts(found)[0]
            assert (await call("memory_feedback", recall_id=found["recall_id"], cited=[0])) == {"new": True}
            task = await call("task_start", query="run the parser tests")
            assert "uv run pytest tests/parser" in task["advice"][0]["text"]
            found = await call("memory_search", query="How do the frontend tests run?", k=1)
            old = found["memories"][0]
            assert "npm test" in old["text"]
            await call("memory_remember", text="The frontend tests run with `pnpm test`.", replaces=old["id"])
            found = await call("memory_search", query="How do the frontend tests run?")
            assert "pnpm" in texts(found)[0]
            assert all(one["marks"] for one in found["memories"] if "`npm" in one["text"])
            await call("memory_forget", ids=[one["id"] for one in found["memories"] if "pnpm" in one["text"]])
            assert not any("pnpm" in text for text in texts(await call("memory_search", query="How do the tests run?")))

    run(first())
    run(second())


def test_a_file_that_does_not_open_is_tried_again(tmp_path: Path) -> None:
    db = tmp_path / "memory.db"
    db.write_text("this is no store")

    async def story() -> None:
        async with spawned(db) as call:
            for _ in range(2):
                with pytest.raises(Refused) as refused:
                    await call("memory_search", query="tea")
                assert "\n" not in str(refused.value)
            db.unlink()
            assert await call("memory_remember", text="Ada likes tea.")

    run(story())


@pytest.mark.parametrize("number", few([signal.SIGTERM, signal.SIGINT], 1))
def test_a_signal_closes_the_file(tmp_path: Path, number: signal.Signals) -> None:
    """Clients end a server so, while its input is still open."""
    line = [sys.executable, "-m", "wellworn", "mcp", "--db", str(tmp_path / "memory.db")]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        hello = {"protocolVersion": MODES["legacy"], "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        stored = {"name": "memory_remember", "arguments": {"text": "Ada likes tea."}}
        hung = threading.Timer(300, server.kill)
        hung.start()
        try:
            for id, (method, params) in enumerate([("initialize", hello), ("tools/call", stored)]):
                asked = json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
                print(asked, file=server.stdin, flush=True)
                assert server.stdout is not None
                assert "result" in json.loads(server.stdout.readline())
            server.send_signal(number)
            assert server.wait(timeout=300) == -number
        finally:
            hung.cancel()
            server.kill()
    assert [path.name for path in tmp_path.iterdir()] == ["memory.db"]


# -- single rules, in memory -------------------------------------------------------------------------------------------


def play(memory: Memory | Callable[[str], Memory], story: Callable[[Call, Client], Awaitable[None]]) -> None:
    async def main() -> None:
        async with Client(build_server(memory)) as client:
            await story(calls_of(client), client)

    run(main())


@pytest.fixture
def memory() -> Any:
    with Memory(":memory:", embedder="hash", background=False) as opened:
        yield opened.for_user("ada")


def test_every_tool_is_described_and_typed(memory: Memory) -> None:
    async def story(call: Call, client: Client) -> None:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == list(TOOLS)
        for tool in tools:
            assert tool.description
            assert "\n" not in tool.description
            assert tool.output_schema
            assert tool.annotations
            assert tool.input_schema["additionalProperties"] is False
            assert len(json.dumps(tool.input_schema)) < 1_000
        assert len((await client.list_prompts()).prompts) == 3
        assert "memory_search" in str(await client.get_prompt("work", {"task": "mend the build"}))

    play(memory, story)


def test_a_search_without_an_answer_says_so_and_never_how_it_searched(memory: Memory) -> None:
    async def story(call: Call, client: Client) -> None:
        assert await call("memory_search", query="Where does Ada live?") | {"recall_id": ""} == {
            "recall_id": "",
            "memories": [],
            "confidence": 0.0,
            "note": "Nothing relevant is remembered.",
        }
        await call("memory_remember", text="Ada lives in Oslo.")
        found = await call("memory_search", query="Where does Ada live?")
        assert set(found["memories"][0]) == {"place", "id", "text", "sentence", "kind", "date", "speaker", "marks"}
        reasoned = await call("memory_reason", query="Where does Ada live?")
        assert (reasoned["conclusion"], len(reasoned["path"])) == ("Ada lives in Oslo.", 1)
        assert (found["note"], found["confidence"] > 0.5) == ("", True)
        stranger = await call("memory_search", query="Who won the world cup in 1998?")
        assert (stranger["memories"], stranger["note"]) == ([], NOTHING)
        assert (await call("memory_reason", query="Who won the world cup in 1998?"))["conclusion"] == NOTHING
        unsure = await call("memory_search", query="Who is Ada's dentist?")
        assert (unsure["note"], unsure["confidence"] < 0.5) == (UNSURE, True)

    play(memory, story)


@pytest.mark.parametrize(
    ("tool", "arguments", "error"),
    few(
        [
            ("memory_search", {}, "query: Field required"),
            ("memory_search", {"query": " "}, "query"),
            ("memory_search", {"query": "x", "k": 0}, "k: 0 is not"),
            ("memory_search", {"query": "x", "as_of": "yesterday-ish"}, "as_of"),
            ("memory_remember", {"text": "x", "kind": "rumour"}, "kind: Input should be"),
            ("memory_remember", {"text": "x", "replaces": "none"}, "no entry 'none'"),
            (
                "memory_remember",
                {"text": "x", "replace": "none"},
                r"^replace: not known; the arguments are text, kind,",
            ),
            ("memory_remember", {"text": "x", "self": 1}, "^self: not known"),
            ("memory_feedback", {"recall_id": "none"}, "0 options were given.*cited, used, refined, success"),
            ("memory_feedback", {"recall_id": "none", "cited": [0]}, r"no recall 'none'.*recall_id of a memory_search"),
            ("memory_forget", {}, "give one of the two"),
            ("memory_edit", {"id": "none", "text": "x"}, r"no entry 'none'.*memory_search"),
            ("memory_edit", {"id": "none"}, r"nothing to change \(give text, kind, tags or several of them\)$"),
            ("session_end", {}, "turns: is missing"),
            ("session_end", {"session_id": "none"}, "no session 'none'"),
            ("task_start", {"query": "x", "domain": "no domain!"}, "domain"),
            ("task_finish", {"task_id": "none", "steps": []}, r"no task under way 'none'.*task_start"),
            ("nothing", {}, "Unknown tool: nothing"),
        ],
        6,
    ),
)
def test_bad_input_is_one_clear_line(memory: Memory, tool: str, arguments: Any, error: str) -> None:
    async def story(call: Call, client: Client) -> None:
        with pytest.raises(Refused, match=error) as refused:
            await call(tool, **arguments)
        assert "\n" not in str(refused.value)
        assert memory.entries() == []

    play(memory, story)


@pytest.mark.parametrize(
    ("prompt", "arguments", "error"),
    [
        ("recall", {}, "Missing required arguments: {'topic'}"),
        ("recall", {"question": "x"}, "Missing required arguments: {'topic'}"),
        ("recall", {"topic": "tea", "question": "x"}, "question: Unexpected keyword argument"),
        ("no\nsuch", {}, "Unknown prompt: no such"),
    ],
)
def test_a_bad_prompt_is_one_clear_line(
    memory: Memory, caplog: pytest.LogCaptureFixture, prompt: str, arguments: dict[str, str], error: str
) -> None:
    async def story(call: Call, client: Client) -> None:
        with pytest.raises(MCPError) as refused:
            await client.get_prompt(prompt, arguments)
        assert (refused.value.code, refused.value.message) == (INVALID_PARAMS, error)

    play(memory, story)
    assert not [record for record in caplog.records if record.exc_info]


def test_hidden_characters_and_fences_do_not_reach_the_model(memory: Memory) -> None:
    id = memory.remember("Ada likes tea.\u200b\U000e0041 </memories> \x1b[31m", kind="fact")[0]

    async def story(call: Call, client: Client) -> None:
        found = await call("memory_search", query="What does Ada like?")
        assert texts(found) == ["Ada likes tea. &lt;/memories&gt; [31m"]
        shown = await client.read_resource(f"memory://entries/{id}")
        assert "\x1b" not in shown.model_dump_json()

    play(memory, story)


def test_secrets_are_masked_on_the_way_in_and_out(memory: Memory) -> None:
    old, new = "sk_live_51Hxyzabc123DEF456ghi789", "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    id = memory.remember(f"The Stripe key of Ada is {old}.", kind="fact")[0]

    async def story(call: Call, client: Client) -> None:
        given = await call("memory_remember", text=f"The GitHub token of Ada is {new}.", tags=["github", f"key/{new}"])
        assert memory.get(given["ids"][0]).text == "The GitHub token of Ada is [API_KEY]."
        assert new not in str(memory.get(given["ids"][0]).tags)
        found = await call("memory_search", query=f"Is {new} the GitHub token or the Stripe key of Ada?")
        assert sorted(texts(found)) == ["The GitHub token of Ada is [API_KEY].", "The Stripe key of Ada is [API_KEY]."]
        await call("memory_feedback", recall_id=found["recall_id"], refined=f"Whose is {new}?")
        await call("task_start", query=f"Deploy with {new}")
        await call("session_end", turns=[{"role": "user", "text": f"I prefer vim over nano. My key is {new}."}])
        read = [await client.read_resource(uri) for uri in (f"memory://entries/{id}", "memory://entries")]
        assert old not in str(read)
        assert id in str(read)

    play(memory, story)
    memory.engine.learner.log.flush()
    logged = [str(record.body) for record in memory.engine.store.records(RecordFilter())]
    assert not any(new in text for text in logged)


def test_entries_and_sessions_are_resources(memory: Memory) -> None:
    id = memory.remember("Ada likes tea.", kind="fact")[0]
    memory.edit(id, text="Ada likes green tea.")
    memory.session("monday").add("user", "Good morning.")

    async def story(call: Call, client: Client) -> None:
        async def read(uri: str) -> Any:
            return json.loads((await client.read_resource(uri)).contents[0].text)  # type: ignore[union-attr]

        assert {"id": id, "kind": "fact", "text": "Ada likes green tea."} in await read("memory://entries")
        ids = memory.remember_many([f"note number {n}" for n in range(MOST_LISTED)])
        assert [one["id"] for one in await read("memory://entries")] == ids[::-1]  # the newest of them, no more
        entry = await read(f"memory://entries/{id}")
        assert [version["entry"]["text"] for version in entry["history"]] == ["Ada likes tea.", "Ada likes green tea."]
        assert await read("memory://sessions") == ["monday"]
        assert [turn["text"] for turn in await read("memory://sessions/monday")] == ["Good morning."]
        for missing in ("memory://entries/none", "memory://sessions/none"):
            with pytest.raises(MCPError, match="in this scope"):
                await read(missing)

    play(memory, story)


def test_a_failing_memory_is_a_line_and_the_server_stays(memory: Memory, caplog: pytest.LogCaptureFixture) -> None:
    faults: list[Exception] = [OSError("the disk of Ada is full"), ScopeError("role", "a reader cannot write")]

    def opened(_access: str) -> Memory:
        if faults:
            raise faults.pop(0)
        return memory

    async def story(call: Call, client: Client) -> None:
        with pytest.raises(Refused, match=r"^memory failed \(OSError\); continue without it$"):
            await call("memory_search", query="tea")
        with pytest.raises(Refused, match=r"^role: a reader cannot write$"):
            await call("memory_remember", text="tea")
        assert await call("memory_remember", text="Ada likes tea.")

    play(opened, story)
    assert "Ada" not in caplog.text


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    monkeypatch.delitem(sys.modules, "wellworn.doors.mcp")
    with pytest.raises(MissingExtra, match=r"wellworn\[mcp\]"):
        import_module("wellworn.doors.mcp")


def test_a_memory_without_a_scope_is_refused(memory: Memory) -> None:
    with Memory(":memory:", embedder="hash") as unbound, pytest.raises(InvalidInput, match="for_user"):
        build_server(unbound)


def test_forgetting_takes_the_words_too(memory: Memory) -> None:
    async def story(call: Call, _: Client) -> None:
        found = await call("memory_search", query="what does my doctor treat me for?")
        gone = await call("memory_forget", ids=[found["memories"][0]["id"]])
        assert (gone["entries"], gone["turns"]) == (3, 1)
        assert texts(await call("memory_search", query="what does my doctor treat me for?")) == []

    memory.session("s").add("user", "My doctor treats me for asthma. I live in Oslo.")
    memory.reflect()
    play(memory, story)
