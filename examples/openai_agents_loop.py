"""An agent of the OpenAI Agents SDK with memory: the memories are its dynamic instructions.

    pip install openai-agents
    export OPENAI_API_KEY=…                                  # OpenAI itself
    export OPENAI_BASE_URL=http://localhost:8000/v1          # or any compatible service
    python examples/openai_agents_loop.py

With neither set it talks to a stand-in on this machine. WELLWORN_EXAMPLE_MODEL names another model.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from agents import Agent, OpenAIChatCompletionsModel, RunConfig, RunContextWrapper, Runner
from openai import AsyncOpenAI
from stand_in import endpoint

from wellworn import Memory
from wellworn.integrations.loop import MemoryMiddleware, MiddlewareContext, create_memory_middleware

MODEL = os.environ.get("WELLWORN_EXAMPLE_MODEL", "gpt-4o-mini")
SYSTEM = "You are a patient assistant."


@dataclass
class Asked:
    """The context of one run, which instructions cannot see otherwise."""

    question: str
    middleware: MemoryMiddleware
    turn: int = 0


async def instructions(run: RunContextWrapper[Asked], _: Agent[Asked]) -> str:
    """Called before every call of the model; `turn` makes the calls after a tool see the same memories."""
    asked: Asked = run.context
    asked.turn += 1
    return await asked.middleware.aenrich_system_prompt(
        MiddlewareContext(user_input=asked.question, current_system_prompt=SYSTEM, turn=asked.turn)
    )


def agent_with_memory(client: AsyncOpenAI) -> Agent[Asked]:
    return Agent[Asked](
        name="friend", instructions=instructions, model=OpenAIChatCompletionsModel(MODEL, openai_client=client)
    )


async def ask(agent: Agent[Asked], middleware: MemoryMiddleware, question: str) -> str:
    """Run the agent once, then store and learn."""
    run = await Runner.run(
        agent, question, context=Asked(question, middleware), run_config=RunConfig(tracing_disabled=True)
    )
    said = str(run.final_output)
    plain = middleware.plain(question, said)
    await middleware.aafter_response(question, said)
    return plain


@asynccontextmanager
async def talking() -> AsyncIterator[AsyncOpenAI]:
    """A client for the service that the environment names, or for the stand-in."""
    if os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL"):
        async with AsyncOpenAI(api_key=os.environ.get("OPENAI_API_KEY") or "none") as client:
            yield client
        return
    with endpoint() as address:
        async with AsyncOpenAI(api_key="none", base_url=f"{address}/v1") as client:
            yield client


async def main() -> None:
    with Memory("openai_agents_loop.db") as memory:
        ada = memory.for_user("ada")
        async with talking() as client:
            agent = agent_with_memory(client)
            for session_id, questions in (
                ("monday", ["My bicycle is a green Brompton.", "I take my tea without milk."]),
                ("friday", ["Which bicycle do I have?"]),
            ):
                middleware = create_memory_middleware(ada, session_id=session_id)
                for question in questions:
                    print(f"{session_id}: {question} → {await ask(agent, middleware, question)}")
                await middleware.aend_session()
        print(f"(outcomes learned from: {ada.learning.status().outcomes})")


if __name__ == "__main__":
    asyncio.run(main())
