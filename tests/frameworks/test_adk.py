"""Google ADK's memory service with the real ADK: an agent of its own with its own tool, over two sessions."""

from __future__ import annotations

from typing import Any

import pytest

from wellworn import Memory, Scope

pytest.importorskip("google.adk", reason="google-adk is not installed here: its pins exclude ours (docs/frameworks.md)")

from google.adk.agents import LlmAgent
from google.adk.events.event import Event
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools.preload_memory_tool import PreloadMemoryTool
from google.genai import types

from wellworn.core.errors import InvalidInput, ScopeError
from wellworn.integrations.frameworks.adk import WellwornMemoryService

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]  # the framework warns of itself

ADA: dict[str, Any] = {"app_name": "app", "user_id": "ada"}


def said(text: str, author: str = "user", **more: Any) -> Event:
    return Event(author=author, content=types.Content(role=author, parts=[types.Part(text=text)]), **more)


def texts(found: Any) -> list[str]:
    return [memory.content.parts[0].text for memory in found.memories]


async def test_events_are_stored_once_and_found_by_their_user_only(memory: Memory) -> None:
    service = WellwornMemoryService(memory)
    events = [said("I live in Oslo."), said("", "friend"), said("Noted, Oslo.", "friend")]
    for _ in range(2):
        await service.add_events_to_memory(**ADA, events=events, session_id="s")
    turns = memory.session("s", scope=Scope(tenant="app", user="ada")).turns()
    assert [(turn.role, turn.text, turn.speaker) for turn in turns] == [
        ("user", "I live in Oslo.", "ada"),
        ("assistant", "Noted, Oslo.", "friend"),
    ]
    found = await service.search_memory(**ADA, query="Where do I live?")
    assert (texts(found)[0], found.memories[0].author) == ("I live in Oslo.", "ada")
    for other in ({"app_name": "app", "user_id": "ben"}, {"app_name": "other", "user_id": "ada"}):
        assert texts(await service.search_memory(**other, query="Where do I live?")) == []


async def test_an_event_of_any_length_costs_no_other_event(memory: Memory) -> None:
    service = WellwornMemoryService(memory)
    await service.add_events_to_memory(**ADA, events=[said("I live in Oslo."), said("log " * 300_000)], session_id="s")
    oslo, log = [turn.text for turn in memory.session("s", scope=Scope(tenant="app", user="ada")).turns()]
    assert (oslo, log[-7:], service.faults) == ("I live in Oslo.", "… (cut)", {})


async def test_a_long_question_is_answered_and_what_is_outdated_says_so(memory: Memory) -> None:
    service = WellwornMemoryService(memory)
    for text in ("I live in Oslo.", "I moved to Bergen last week."):
        await service.add_events_to_memory(**ADA, events=[said(text)], session_id=text)
    found = texts(await service.search_memory(**ADA, query="Where do I live? " * 1_500))
    assert "I moved to Bergen last week." in found
    assert any(text.startswith("(outdated since ") and text.endswith(") I live in Oslo.") for text in found)


async def test_memories_are_added_and_deleted_for_good(memory: Memory) -> None:
    service = WellwornMemoryService(memory)
    content = types.Content(parts=[types.Part(text="Ada's bicycle is a green Brompton.")])
    await service.add_memory(**ADA, memories=[MemoryEntry(content=content, custom_metadata={"from": "crm"})])
    found = await service.search_memory(**ADA, query="Which bicycle?")
    assert found.memories[0].custom_metadata["from"] == "crm"
    await service.delete_memory(**ADA, memory_id=found.memories[0].id)
    assert memory.entries(scope=Scope(tenant="app", user="ada")) == []
    assert service.faults == {}


async def test_an_odd_time_or_author_loses_nothing(memory: Memory) -> None:
    service = WellwornMemoryService(memory)
    content = types.Content(parts=[types.Part(text="Ada likes figs.")])
    await service.add_memory(**ADA, memories=[MemoryEntry(content=content, timestamp="last Tuesday", author="x" * 300)])
    event = said("I live in Oslo.")
    event.author, event.timestamp = "x" * 300, 1e15
    await service.add_events_to_memory(**ADA, events=[event])
    found = memory.entries(scope=Scope(tenant="app", user="ada"))
    assert ([entry.text for entry in found], service.faults) == (["Ada likes figs.", "I live in Oslo."], {})


async def test_a_memory_that_fails_finds_nothing(memory: Memory) -> None:
    service = WellwornMemoryService(memory)
    memory.close()
    assert texts(await service.search_memory(**ADA, query="Where do I live?")) == []
    await service.add_events_to_memory(**ADA, events=[said("I live in Oslo.")])
    await service.delete_memory(**ADA)
    assert service.faults == {"recall": 1, "store": 2}
    with pytest.raises(ScopeError, match="is bound to"):
        WellwornMemoryService(memory.for_user("ada"))
    with pytest.raises(InvalidInput, match="k"):
        WellwornMemoryService(memory, k=0)


class Echo(BaseLlm):  # type: ignore[misc]  # not installed where types are checked
    """Answers from the block of memories that ADK's own tool puts before the question."""

    async def generate_content_async(self, request: Any, stream: bool = False) -> Any:
        _, _, shown = str(request.contents).partition("<PAST_CONVERSATIONS>")
        text = "You live in Oslo." if "Oslo" in shown else "Noted."
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]))


async def test_an_agent_remembers_from_one_session_to_the_next(memory: Memory) -> None:
    service, sessions = WellwornMemoryService(memory), InMemorySessionService()
    agent = LlmAgent(name="friend", model=Echo(model="echo"), tools=[PreloadMemoryTool()])
    runner = Runner(app_name="app", agent=agent, session_service=sessions, memory_service=service)
    answers = []
    for session_id, question in (("monday", "I live in Oslo."), ("friday", "Where do I live?")):
        await sessions.create_session(**ADA, session_id=session_id)
        message = types.Content(role="user", parts=[types.Part(text=question)])
        events = runner.run_async(user_id="ada", session_id=session_id, new_message=message)
        answers += [event.content.parts[0].text async for event in events]
        session = await sessions.get_session(**ADA, session_id=session_id)
        for _ in range(2):
            await service.add_session_to_memory(session)
    assert answers == ["Noted.", "You live in Oslo."]
    assert len(memory.session("monday", scope=Scope(tenant="app", user="ada")).turns()) == 2
    assert service.faults == {}
