"""A pydantic-ai agent with memory: a capability recalls before each request, and stores and learns after each run.

    pip install 'wellworn[pydantic-ai]' 'pydantic-ai-slim[openai]'
    export OPENAI_API_KEY=…
    export WELLWORN_EXAMPLE_MODEL=openai:gpt-4o-mini        # or any other name that pydantic-ai knows
    python examples/pydantic_ai_loop.py

Without WELLWORN_EXAMPLE_MODEL a function of this file is the model, and no key is needed.
"""

from __future__ import annotations

import os

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from stand_in import answer

from wellworn import Memory
from wellworn.integrations.frameworks.pydantic_ai import MemoryCapability

agent = Agent(os.environ.get("WELLWORN_EXAMPLE_MODEL"), instructions="You are a patient assistant.")


@agent.tool_plain
def today() -> str:
    """The day of the week."""
    return "Friday"


def stand_in(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """A model that calls the tool first when it is asked something, then repeats what it was given."""
    prompts = [str(part.content) for part in messages[0].parts if part.part_kind == "user-prompt"]
    last = messages[-1]
    told = isinstance(last, ModelRequest) and any(isinstance(part, ToolReturnPart) for part in last.parts)
    if prompts[-1].endswith("?") and not told:
        return ModelResponse(parts=[ToolCallPart(info.function_tools[0].name, {})])
    return ModelResponse(parts=[TextPart(answer("".join(prompts[:-1]), prompts[-1]))])


def main() -> None:
    model = None if os.environ.get("WELLWORN_EXAMPLE_MODEL") else FunctionModel(stand_in)
    with Memory("pydantic_ai_loop.db") as memory:
        ada = memory.for_user("ada")
        for session_id, questions in (
            ("monday", ["My bicycle is a green Brompton.", "I take my tea without milk."]),
            ("friday", ["Which bicycle do I have?"]),
        ):
            remembering = MemoryCapability(ada, session_id=session_id)
            for question in questions:
                run = agent.run_sync(question, model=model, capabilities=[remembering])
                print(f"{session_id}: {question} → {run.output}")
            remembering.middleware.end_session()
        print(f"(outcomes learned from: {ada.learning.status().outcomes})")


if __name__ == "__main__":
    main()
