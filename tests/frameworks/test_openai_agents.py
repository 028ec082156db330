"""The session of the OpenAI Agents SDK: exact items, and a real run of the SDK over two sessions."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from wellworn import Memory

pytest.importorskip("agents", reason="the OpenAI Agents SDK is not installed here")

from agents import Agent, ModelResponse, RunConfig, Runner, Usage, function_tool
from agents.memory import Session, SessionSettings
from agents.models.interface import Model
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from wellworn.integrations.frameworks.openai_agents import WellwornSession

pytestmark = pytest.mark.slow  # the package takes seconds to import

ITEMS: list[Any] = [
    {"role": "user", "content": "I live in Oslo."},
    {
        "role": "user",
        "content": [{"type": "input_text", "text": "And this?"}, {"type": "input_image", "image_url": "x"}],
    },
    {"type": "reasoning", "id": "r", "summary": []},
    {"type": "function_call", "call_id": "1", "name": "weather", "arguments": '{"city": "Oslo"}'},
    {"type": "function_call_output", "call_id": "1", "output": "rain " * 30_000},
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "content": " \x00 "},
    {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "It rains in Oslo.", "annotations": []}],
    },
    {"role": "user", "content": "I live in Oslo."},
]


@pytest.fixture
def ada(memory: Memory) -> Memory:
    return memory.for_user("ada")


async def test_items_come_back_as_they_were(ada: Memory) -> None:
    session = WellwornSession(ada, "monday")
    assert isinstance(session, Session)
    assert await session.get_items() == []
    await session.add_items(ITEMS[:4])
    await session.add_items(ITEMS[4:])
    assert await WellwornSession(ada, "monday").get_items() == ITEMS
    assert await session.get_items(2) == ITEMS[-2:]
    assert await session.get_items(0) == []
    assert await WellwornSession(ada, "monday", session_settings=SessionSettings(limit=3)).get_items() == ITEMS[-3:]
    for item in reversed(ITEMS[3:]):
        assert await session.pop_item() == item
    assert await session.get_items() == ITEMS[:3]
    await session.clear_session()
    assert (await session.get_items(), await session.pop_item(), ada.entries()) == ([], None, [])
    assert (session.faults, ada.verify().ok) == ({}, True)


async def test_items_of_any_size_come_back_whole(ada: Memory) -> None:
    photo = {"type": "input_image", "image_url": "data:image/png;base64," + "A" * 1_300_000}
    items: list[Any] = [
        {"role": "user", "content": [{"type": "input_text", "text": "My dog Rex."}, photo]},
        {"role": "assistant", "content": "A nice dog! " * 100_000},
        {"type": "function_call", "call_id": "1", "name": "log", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "1", "output": " " * 1_600_000},
    ]
    session = WellwornSession(ada, "monday")
    await session.add_items(items)
    assert await session.get_items() == items
    assert await session.get_items(2) == items[2:]
    assert await session.pop_item() == items[3]
    assert await session.get_items() == items[:3]
    assert "My dog Rex." in [hit.text for hit in ada.recall("What is my dog called?")]
    assert session.faults == {}


async def test_an_item_is_popped_once_and_only_if_it_is_there(ada: Memory) -> None:
    items: list[Any] = [{"role": "user", "content": f"Number {number}."} for number in range(5)]
    sessions = [WellwornSession(ada, "monday") for _ in range(4)]
    await sessions[0].add_items(items)
    ada.forget([ada.entries()[-1].id])  # its turn is kept
    popped = await asyncio.gather(*(session.pop_item() for session in sessions))
    assert sorted(popped, key=str) == items[:4]
    assert (await sessions[0].pop_item(), [dict(session.faults) for session in sessions]) == (None, [{}] * 4)


async def test_what_was_said_is_recalled_and_calls_of_tools_are_not(ada: Memory) -> None:
    await WellwornSession(ada, "monday").add_items(ITEMS)
    texts = [hit.text for hit in ada.recall("weather in Oslo rain", k=20)]
    assert "It rains in Oslo." in texts
    assert not any("function_call" in text or text.startswith("rain rain") for text in texts)


async def test_secrets_are_masked_and_the_items_stay_whole() -> None:
    with Memory(":memory:", background=False, scrubber="mask") as memory:
        session = WellwornSession(memory.for_user("ada"), "monday")
        said = '{"password": "hunter2hunter2", "mail": "ada@example.com"}'
        call: Any = {"type": "function_call", "call_id": "1", "name": "login", "arguments": said}
        await session.add_items([call, {"type": "function_call_output", "call_id": "1", "output": said}])
        first, second = [dict(item) for item in await session.get_items()]
    assert (first["name"], second["call_id"]) == ("login", "1")
    assert "ada@example.com" not in str([first, second])


async def test_a_memory_that_fails_does_not_stop_the_run(ada: Memory) -> None:
    session = WellwornSession(ada, "monday")
    ada.close()
    await session.add_items(ITEMS)
    assert (await session.get_items(), await session.pop_item()) == ([], None)
    await session.clear_session()
    assert session.faults["store"] == 3


class Scripted(Model):
    """Calls a tool first, then says how many items it was shown."""

    def __init__(self) -> None:
        self.shown: list[Any] = []
        self._ids = itertools.count()

    async def get_response(self, system_instructions: Any, input: Any, *rest: Any, **options: Any) -> ModelResponse:
        self.shown.append(input)
        if input[-1].get("type") != "function_call_output":
            call = ResponseFunctionToolCall(
                type="function_call", call_id=f"call-{next(self._ids)}", name="today", arguments="{}"
            )
            return ModelResponse(output=[call], usage=Usage(), response_id=None)
        text = ResponseOutputText(type="output_text", text=f"I saw {len(input)} items.", annotations=[])
        said = ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[text])
        return ModelResponse(output=[said], usage=Usage(), response_id=None)

    def stream_response(self, *rest: Any, **options: Any) -> Any:
        raise NotImplementedError


async def test_a_run_continues_where_the_last_one_ended(ada: Memory) -> None:
    @function_tool
    def today() -> str:
        """The day of the week."""
        return "Friday"

    model = Scripted()
    agent = Agent(name="friend", model=model, tools=[today])
    config = RunConfig(tracing_disabled=True)
    first = await Runner.run(agent, "I live in Oslo.", session=WellwornSession(ada, "s"), run_config=config)
    second = await Runner.run(agent, "Where do I live?", session=WellwornSession(ada, "s"), run_config=config)
    assert (first.final_output, second.final_output) == ("I saw 3 items.", "I saw 7 items.")
    assert model.shown[-1][0] == {"role": "user", "content": "I live in Oslo."}
    assert ada.recall("Where do I live?").hits[0].text == "I live in Oslo."
