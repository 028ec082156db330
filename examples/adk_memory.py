"""Google ADK with a memory: what was said on Monday is known on Friday, in another session.

    pip install 'wellworn[adk]'
    export GOOGLE_API_KEY=… WELLWORN_EXAMPLE_MODEL=gemini-2.5-flash
    python examples/adk_memory.py

Without WELLWORN_EXAMPLE_MODEL a class of this file is the model, and no key is needed.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools.preload_memory_tool import PreloadMemoryTool
from google.genai import types

from wellworn import Memory
from wellworn.integrations.frameworks.adk import WellwornMemoryService


class StandIn(BaseLlm):  # type: ignore[misc]  # not installed where types are checked
    """Says whether ADK's tool has put the bicycle before the question."""

    async def generate_content_async(self, request: Any, stream: bool = False) -> Any:
        _, _, shown = str(request.contents).partition("<PAST_CONVERSATIONS>")
        text = "A green Brompton." if "green Brompton" in shown else "I will keep that in mind."
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]))


async def main() -> None:
    model = os.environ.get("WELLWORN_EXAMPLE_MODEL") or StandIn(model="stand-in")
    agent = LlmAgent(name="friend", model=model, tools=[PreloadMemoryTool()])
    with Memory("adk_memory.db") as memory:
        service, sessions = WellwornMemoryService(memory), InMemorySessionService()
        runner = Runner(app_name="app", agent=agent, session_service=sessions, memory_service=service)
        for day, question in (("monday", "My bicycle is a green Brompton."), ("friday", "Which bicycle do I have?")):
            who = {"app_name": "app", "user_id": "ada", "session_id": day}
            await sessions.create_session(**who)
            message = types.Content(role="user", parts=[types.Part(text=question)])
            async for event in runner.run_async(user_id="ada", session_id=day, new_message=message):
                print(f"{day}: {question} → {event.content.parts[0].text}")
            await service.add_session_to_memory(await sessions.get_session(**who))


if __name__ == "__main__":
    asyncio.run(main())
