"""The recipes for other people's SDKs, with the real packages: what their models are sent, what is kept and learned."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from models.service import Service, chat, claude, serving
from wellworn import Memory, Scope
from wellworn.integrations.loop import MemoryMiddleware, create_memory_middleware

pytestmark = pytest.mark.slow  # the packages take seconds to import

ADA = Scope(tenant="acme", user="ada")
OSLO = "ada: I live in Oslo."
QUESTION = "Where do I live?"


@pytest.fixture
def service() -> Iterator[Service]:
    with serving(Service()) as server:
        yield server


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory.open(":memory:", background=False, explore=0.0) as opened:
        opened.session(scope=ADA, session_id="before").add("user", "I live in Oslo.")
        yield opened


@pytest.fixture
def middleware(memory: Memory) -> MemoryMiddleware:
    return create_memory_middleware(memory, scope=ADA, session_id="now")


def recipe(name: str, sdk: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The example as a module, where its SDK is installed."""
    pytest.importorskip(sdk, reason=f"examples/{name}.py needs a package that is not installed here")
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "examples")
    return importlib.import_module(name)


def assert_kept_and_learned(memory: Memory, middleware: MemoryMiddleware) -> None:
    turns = memory.session(scope=ADA, session_id="now").turns()
    assert [(turn.role, turn.text) for turn in turns] == [("user", QUESTION), ("assistant", "In Oslo.")]
    assert memory.learning.status(scope=ADA).outcomes == 1
    assert not middleware.faults


def test_openai_gets_the_memories_in_the_system_message_alone(
    service: Service, memory: Memory, middleware: MemoryMiddleware, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = recipe("openai_loop", "openai", monkeypatch)
    service.script = [chat("In Oslo. [0]"), chat("Yes, Oslo.")]
    history: list[Any] = []
    with example.OpenAI(api_key="sk-test", base_url=service.url) as client:
        assert example.ask(client, middleware, history, QUESTION) == "In Oslo."
        assert_kept_and_learned(memory, middleware)
        example.ask(client, middleware, history, "Are you sure?")
    system, *rest = service.requests[0]["messages"]
    assert system["role"] == "system"
    assert system["content"].startswith(f"{example.SYSTEM}\n\n{middleware.rule}\n\n<memory-context>\n")
    assert OSLO in system["content"]
    assert rest == [{"role": "user", "content": QUESTION}]
    assert [message["content"] for message in service.requests[1]["messages"][1:]] == [
        QUESTION,
        "In Oslo.",
        "Are you sure?",
    ]


def test_anthropic_gets_them_as_its_system_prompt(
    service: Service, memory: Memory, middleware: MemoryMiddleware, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = recipe("anthropic_loop", "anthropic", monkeypatch)
    service.otherwise = claude("In Oslo. [0]")
    with example.Anthropic(api_key="sk-test", base_url=service.address) as client:
        assert example.ask(client, middleware, [], QUESTION) == "In Oslo."
    assert OSLO in service.requests[0]["system"]
    assert service.requests[0]["messages"] == [{"role": "user", "content": QUESTION}]
    assert_kept_and_learned(memory, middleware)


@pytest.fixture
def own_loop() -> Iterator[None]:
    """An event loop for a library that takes the thread's own and leaves it open."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


@pytest.mark.usefixtures("own_loop")
def test_pydantic_ai_gets_the_same_instructions_through_a_loop_of_tools(
    memory: Memory, middleware: MemoryMiddleware, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = recipe("pydantic_ai_loop", "pydantic_ai", monkeypatch)
    seen: list[str] = []

    def model(messages: list[Any], info: Any) -> Any:
        seen.append(info.instructions)
        if len(seen) == 1:
            memory.remember("I live in Oslo, by the river.", scope=ADA)  # while the tool runs
            return example.ModelResponse(parts=[example.ToolCallPart("today", {})])
        return example.ModelResponse(parts=[example.TextPart("In Oslo. [0]")])

    agent = example.agent_with_memory(example.FunctionModel(model))
    assert example.ask(agent, middleware, QUESTION) == "In Oslo."
    assert len(seen) == 2
    assert seen[0] == seen[1]
    assert OSLO in seen[0]
    assert_kept_and_learned(memory, middleware)


def test_openai_agents_get_the_same_instructions_through_a_loop_of_tools(
    service: Service, memory: Memory, middleware: MemoryMiddleware, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = recipe("openai_agents_loop", "agents", monkeypatch)
    from agents import function_tool

    def called(body: dict[str, Any]) -> Any:
        memory.remember("I live in Oslo, by the river.", scope=ADA)  # while the tool runs
        call = {"id": "c1", "type": "function", "function": {"name": "today", "arguments": "{}"}}
        status, headers, told = chat(None)
        told["choices"][0]["message"]["tool_calls"] = [call]
        return status, headers, told

    service.script = [called, chat("In Oslo. [0]")]

    async def asked() -> str:
        async with example.AsyncOpenAI(api_key="sk-test", base_url=service.url) as client:
            agent = example.agent_with_memory(client)
            agent.tools.append(function_tool(lambda: "Friday", name_override="today"))
            return str(await example.ask(agent, middleware, QUESTION))

    assert asyncio.run(asked()) == "In Oslo."
    first, second = (request["messages"][0] for request in service.requests)
    assert first == second
    assert OSLO in first["content"]
    assert_kept_and_learned(memory, middleware)


@pytest.mark.parametrize("name", ["openai_loop", "anthropic_loop"])
def test_a_memory_that_fails_leaves_the_question_as_it_was(
    name: str, service: Service, memory: Memory, middleware: MemoryMiddleware, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = recipe(name, name.removesuffix("_loop"), monkeypatch)
    memory.close()
    if name == "openai_loop":
        service.otherwise = chat("No idea.")
        client = example.OpenAI(api_key="sk-test", base_url=service.url)
    else:
        service.otherwise = claude("No idea.")
        client = example.Anthropic(api_key="sk-test", base_url=service.address)
    with client:
        assert example.ask(client, middleware, [], QUESTION) == "No idea."
    sent = service.requests[0]
    assert (sent.get("system") or sent["messages"][0]["content"]) == example.SYSTEM
    assert middleware.faults == {"recall": 1, "store": 1}
