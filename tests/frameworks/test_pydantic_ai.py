"""The capability and the toolset with a real pydantic-ai agent, whose model is a function of the test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import BaseModel

from wellworn import Memory

pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed here")

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextContent, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from wellworn.integrations.frameworks.pydantic_ai import MemoryCapability, memory_toolset

pytestmark = pytest.mark.slow  # the package takes seconds to import

Seen = list[list[ModelMessage]]


@pytest.fixture
def ada(memory: Memory) -> Memory:
    bound = memory.for_user("ada")
    bound.session("before").add("user", "I live in Oslo.")
    return bound


def agent_saying(*answers: ModelResponse, seen: Seen, **options: Any) -> Agent[None, Any]:
    """An agent whose model gives these answers in order and notes what it is shown."""

    def model(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        seen.append(list(messages))
        return answers[len(seen) - 1]

    return Agent(FunctionModel(model), **options)


def said(text: str) -> ModelResponse:
    return ModelResponse(parts=[TextPart(text)])


def prompts(messages: list[ModelMessage]) -> list[str]:
    return [str(part.content) for message in messages for part in message.parts if part.part_kind == "user-prompt"]


async def test_memories_are_shown_for_one_request_and_citations_are_learned(ada: Memory) -> None:
    seen: Seen = []
    call = ModelResponse(parts=[ToolCallPart("today", {})])
    agent = agent_saying(call, said("In Oslo. [0]"), seen=seen)

    @agent.tool_plain
    def today() -> str:
        """The day of the week."""
        return "Friday"

    capability = MemoryCapability(ada, session_id="now")
    run = await agent.run("Where do I live?", capabilities=[capability])
    assert run.output == "In Oslo."
    for shown in seen:  # the same before the tool and after it
        block, asked = prompts(shown)
        assert ("I live in Oslo." in block, asked) == (True, "Where do I live?")
    assert prompts(seen[0]) == prompts(seen[1])
    assert prompts(run.all_messages()) == ["Where do I live?"]
    assert run.all_messages()[-1].parts[0] == TextPart("In Oslo.")
    turns = ada.session("now").turns()
    assert [(turn.role, turn.text) for turn in turns] == [("user", "Where do I live?"), ("assistant", "In Oslo.")]
    assert ada.learning.status().outcomes == 1


@pytest.mark.parametrize("texts", [("In ", "Oslo. [0]"), ("In Oslo.", " [0]")])
async def test_prompts_and_answers_may_have_several_parts(ada: Memory, texts: Sequence[str]) -> None:
    seen: Seen = []
    answer = ModelResponse(parts=[ThinkingPart("Hm."), *(TextPart(text) for text in texts)])
    agent = agent_saying(answer, seen=seen, capabilities=[MemoryCapability(ada, session_id="now")])
    run = await agent.run([TextContent("Where do I live?", metadata={"id": 1})])
    assert "I live in Oslo." in prompts(seen[0])[0]
    assert "[0]" not in str(run.all_messages()[-1].parts)
    assert (
        [turn.text for turn in ada.session("now").turns()]
        == ["Where do I live?", run.output]
        == ["Where do I live?", "In Oslo."]
    )
    assert ada.learning.status().outcomes == 1


async def test_an_answer_of_citations_alone_is_no_empty_answer(ada: Memory) -> None:
    answer = ModelResponse(parts=[TextPart(""), TextPart("[0]")])
    agent = agent_saying(answer, seen=[], capabilities=[MemoryCapability(ada, session_id="now")])
    assert (await agent.run("Where do I live?")).all_messages()[-1].parts == answer.parts


async def test_a_run_sees_no_turn_of_its_history_twice(ada: Memory) -> None:
    seen: Seen = []
    agent = agent_saying(*[said("Noted.")] * 3, seen=seen, capabilities=[MemoryCapability(ada, session_id="s")])
    first = await agent.run("My dog is called Rex.")
    await agent.run("What is my dog called?", message_history=first.all_messages())
    assert sum("called Rex" in prompt for prompt in prompts(seen[-1])) == 1
    await agent.run("What is my dog called?")
    assert any("called Rex" in prompt for prompt in prompts(seen[-1]))


async def test_structured_output_passes_unchanged(ada: Memory) -> None:
    class Place(BaseModel):
        city: str

    def model(_: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, {"city": "Oslo"})])

    agent = Agent(FunctionModel(model), output_type=Place, capabilities=[MemoryCapability(ada, session_id="now")])
    assert (await agent.run("Where do I live?")).output == Place(city="Oslo")
    assert [turn.text for turn in ada.session("now").turns()] == ["Where do I live?"]


async def test_a_memory_that_fails_leaves_the_run_as_it_was(ada: Memory) -> None:
    seen: Seen = []
    capability = MemoryCapability(ada, session_id="now", tools=True)
    agent = agent_saying(
        ModelResponse(parts=[ToolCallPart("memory_search", {"query": "Oslo"})]), said("No idea."), seen=seen
    )
    ada.close()
    assert (await agent.run("Where do I live?", capabilities=[capability])).output == "No idea."
    assert prompts(seen[0]) == ["Where do I live?"]
    assert "The search failed" in str(seen[1][-1])
    assert capability.faults["store"] == 1


async def test_the_tools_remember_and_search(ada: Memory) -> None:
    seen: Seen = []
    agent = agent_saying(
        ModelResponse(parts=[ToolCallPart("memory_remember", {"text": "Ada's bicycle is a green Brompton."})]),
        ModelResponse(parts=[ToolCallPart("memory_search", {"query": "Which bicycle?"})]),
        said("Done."),
        seen=seen,
        toolsets=[memory_toolset(ada)],
    )
    await agent.run("Remember my green Brompton.")
    assert "green Brompton" in str(seen[-1][-1])
    assert ada.entries(kind="fact")[0].text == "Ada's bicycle is a green Brompton."
