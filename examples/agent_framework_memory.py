"""An agent of Microsoft's Agent Framework with a memory: what was said on Monday is known on Friday.

    pip install 'wellworn[agent-framework]'
    python examples/agent_framework_memory.py

The client is a class of this file; put `OpenAIChatClient()` or another client of the framework in its place.
"""

from __future__ import annotations

import asyncio
from typing import Any

from agent_framework import Agent, BaseChatClient, ChatResponse, Message

from wellworn import Memory
from wellworn.integrations.frameworks.agent_framework import WellwornContextProvider


class StandIn(BaseChatClient[Any]):
    """Says whether the provider has put the bicycle before the question."""

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **kwargs: Any) -> Any:
        known = "green Brompton" in " ".join(message.text for message in messages[:-1])

        async def answer() -> ChatResponse[Any]:
            return ChatResponse(messages=[Message("assistant", ["A green Brompton." if known else "Noted."])])

        return answer()


async def main() -> None:
    with Memory("agent_framework_memory.db") as memory:
        provider = WellwornContextProvider(memory.for_user("ada"))
        agent = Agent(client=StandIn(), context_providers=[provider])
        for question in ("My bicycle is a green Brompton.", "Which bicycle do I have?"):
            answer = await agent.run(question, session=agent.create_session())
            print(f"{question} → {answer.text}")


if __name__ == "__main__":
    asyncio.run(main())
