"""The recipes for other SDKs, with the real packages: what their models are sent. `test_examples.py` runs them whole."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from models.service import Service, chat, claude, serving
from wellworn import Memory
from wellworn.integrations.loop import MemoryMiddleware, create_memory_middleware

pytestmark = pytest.mark.slow  # the packages take seconds to import

QUESTION = "Where do I live?"


@pytest.fixture
def service() -> Iterator[Service]:
    with serving(Service()) as server:
        yield server


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory(":memory:", background=False) as opened:
        ada = opened.for_user("ada")
        ada.session("before").add("user", "I live in Oslo.")
        yield ada


@pytest.fixture
def middleware(memory: Memory) -> MemoryMiddleware:
    return create_memory_middleware(memory, session_id="now")


def recipe(name: str, sdk: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The example as a module, where its SDK is installed."""
    pytest.importorskip(sdk, reason=f"examples/{name}.py needs a package that is not installed here")
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "examples")
    return importlib.import_module(name)


def client_of(name: str, example: ModuleType, service: Service, said: str) -> Any:
    service.otherwise = chat(said) if name == "openai_loop" else claude(said)
    if name == "openai_loop":
        return example.OpenAI(api_key="sk-test", base_url=service.url)
    return example.Anthropic(api_key="sk-test", base_url=service.address)


def sent(service: Service) -> tuple[str, list[Any]]:
    """The system prompt and the messages of the first request."""
    body = service.requests[0]
    if "system" in body:
        return body["system"], body["messages"]
    return body["messages"][0]["content"], body["messages"][1:]


@pytest.mark.parametrize("name", ["openai_loop", "anthropic_loop"])
def test_the_memories_are_in_the_system_prompt_alone(
    name: str, service: Service, memory: Memory, middleware: MemoryMiddleware, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = recipe(name, name.removesuffix("_loop"), monkeypatch)
    history: list[Any] = []
    with client_of(name, example, service, "In Oslo. [0]") as client:
        assert example.ask(client, middleware, history, QUESTION) == "In Oslo."
    system, messages = sent(service)
    assert system.startswith(f"{example.SYSTEM}\n\n{middleware.rule}\n\n<memory-context>\n")
    assert "ada: I live in Oslo." in system
    assert messages == [{"role": "user", "content": QUESTION}]
    assert [message["content"] for message in history] == [QUESTION, "In Oslo."]
    turns = memory.session("now").turns()
    assert [(turn.role, turn.text) for turn in turns] == [("user", QUESTION), ("assistant", "In Oslo.")]
    assert memory.learning.status().outcomes == 1
    assert not middleware.faults


@pytest.mark.parametrize("name", ["openai_loop", "anthropic_loop"])
def test_a_memory_that_fails_leaves_the_prompt_as_it_was(
    name: str, service: Service, memory: Memory, middleware: MemoryMiddleware, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = recipe(name, name.removesuffix("_loop"), monkeypatch)
    memory.close()
    with client_of(name, example, service, "No idea.") as client:
        assert example.ask(client, middleware, [], QUESTION) == "No idea."
    assert sent(service)[0] == example.SYSTEM
    assert middleware.faults == {"recall": 1, "store": 1}
