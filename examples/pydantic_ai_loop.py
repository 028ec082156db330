"""A pydantic-ai agent with memory: the middleware is its dependency, the memories are dynamic instructions.

    pip install 'pydantic-ai-slim[openai]'
    export OPENAI_API_KEY=…
    export WELLWORN_EXAMPLE_MODEL=openai:gpt-4o-mini        # or any other name that pydantic-ai knows
    python examples/pydantic_ai_loop.py

Without WELLWORN_EXAMPLE_MODEL a function of this file is the model, and no key is needed.
"""

from __future__ import annotations

import os

from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel
from stand_in import answer

from wellworn import Memory
from wellworn.integrations.loop import MemoryMiddleware, MiddlewareContext, create_memory_middleware

SYSTEM = "You are a patient assistant."


def agent_with_memory(model: Model | str) -> Agent[MemoryMiddleware, str]:
    agent = Agent(model, deps_type=MemoryMiddleware)

    @agent.instructions
    def memories(ctx: RunContext[MemoryMiddleware]) -> str:
        """Called before every step of a run; `turn` makes the steps after a tool see the same memories."""
        asked = ctx.prompt if isinstance(ctx.prompt, str) else ""
        return ctx.deps.enrich_system_prompt(
            MiddlewareContext(user_input=asked, current_system_prompt=SYSTEM, turn=ctx.run_step)
        )

    @agent.tool_plain
    def today() -> str:
        """The day of the week."""
        return "Friday"

    return agent


def ask(agent: Agent[MemoryMiddleware, str], middleware: MemoryMiddleware, question: str) -> str:
    """Run the agent once, then store and learn."""
    said = agent.run_sync(question, deps=middleware).output
    plain = middleware.plain(question, said)
    middleware.after_response(question, said)
    return plain


def stand_in(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """A model that calls the tool first when it is asked something, then repeats what it was given."""
    question = str(next(part.content for part in messages[0].parts if part.part_kind == "user-prompt"))
    last = messages[-1]
    told = isinstance(last, ModelRequest) and any(isinstance(part, ToolReturnPart) for part in last.parts)
    if question.endswith("?") and not told:
        return ModelResponse(parts=[ToolCallPart(info.function_tools[0].name, {})])
    return ModelResponse(parts=[TextPart(answer(info.instructions or "", question))])


def main() -> None:
    agent = agent_with_memory(os.environ.get("WELLWORN_EXAMPLE_MODEL") or FunctionModel(stand_in))
    with Memory("pydantic_ai_loop.db") as memory:
        ada = memory.for_user("ada")
        for session_id, questions in (
            ("monday", ["My bicycle is a green Brompton.", "I take my tea without milk."]),
            ("friday", ["Which bicycle do I have?"]),
        ):
            middleware = create_memory_middleware(ada, session_id=session_id)
            for question in questions:
                print(f"{session_id}: {question} → {ask(agent, middleware, question)}")
            middleware.end_session()
        print(f"(outcomes learned from: {ada.learning.status().outcomes})")


if __name__ == "__main__":
    main()
