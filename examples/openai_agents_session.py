"""A `Session` of the OpenAI Agents SDK in a memory: a run continues where the last one ended, and what was said is found.

    pip install 'wellworn[openai-agents]'
    export OPENAI_API_KEY=…
    python examples/openai_agents_session.py

Without a key it talks to a stand-in on this machine.
"""

from __future__ import annotations

import asyncio

from agents import Agent, OpenAIChatCompletionsModel, RunConfig, Runner
from openai_agents_loop import MODEL, talking

from wellworn import Memory
from wellworn.integrations.frameworks.openai_agents import WellwornSession


async def main() -> None:
    with Memory("openai_agents_session.db") as memory:
        ada = memory.for_user("ada")
        async with talking() as client:
            friend = Agent(name="friend", model=OpenAIChatCompletionsModel(MODEL, openai_client=client))
            for question in ("My bicycle is a green Brompton.", "I take my tea without milk."):
                session = WellwornSession(ada, "monday")  # a new object: the history is in the memory
                await Runner.run(friend, question, session=session, run_config=RunConfig(tracing_disabled=True))
        print("items in the history:", len(await WellwornSession(ada, "monday").get_items()))
        print("recalled:", ada.recall("Which bicycle do I have?").hits[0].text)


if __name__ == "__main__":
    asyncio.run(main())
