"""A LangChain agent with memory: RMM as one middleware, on one file. Runs without a key, with a scripted model.

    python examples/langchain_agent.py

On Monday Ada tells the agent something, on Friday, in another thread, it knows; what it cites teaches recall. Put a
model of yours in the place of `Parrot`, as in `create_agent("openai:gpt-5-mini", …)`, and the rest stays as it is.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver

from wellworn import Memory
from wellworn.integrations.langchain import RMMContext, RMMMiddleware


class Parrot(BaseChatModel):
    """Stands in for a model: repeats the memory that shares most words with the question, and cites it."""

    @property
    def _llm_type(self) -> str:
        return "parrot"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        block, closing, question = str(messages[-1].text).rpartition("</memories>\n\n")
        memories = re.findall(r"^\[(\d+)\] \([^)]*\) (.*)$", block, re.MULTILINE)
        words = set(re.findall(r"\w{4,}", question.lower()))
        best = max(memories, key=lambda one: len(words & set(re.findall(r"\w{4,}", one[1].lower()))), default=None)
        answer = f"I remember: {best[1]} [{best[0]}]" if best and closing else "I will keep that in mind."
        return ChatResult(generations=[ChatGeneration(message=AIMessage(answer))])


def main(location: str | Path = ":memory:") -> None:
    with Memory(location) as memory:
        middleware = RMMMiddleware(memory)
        agent = create_agent(
            Parrot(),
            [],
            middleware=[middleware],
            context_schema=RMMContext,
            checkpointer=InMemorySaver(),
            system_prompt="You are a patient assistant.",
        )

        def ask(day: str, text: str, *, last: bool = False) -> None:
            done = agent.invoke(
                {"messages": [HumanMessage(text)]},
                {"configurable": {"thread_id": day}},
                context=RMMContext(user_id="ada", is_session_end=last),
            )
            print(f"{day}: {done['messages'][-1].text}")

        ask("monday", "My bicycle is a green Brompton and it squeaks.", last=True)
        ask("friday", "Which bicycle do I have?")
        outcomes = memory.for_user("ada").learning.status().outcomes
        print(f"learned from {outcomes} answer; faults: {dict(middleware.faults)}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
