"""A crew with a memory: the second crew sees what the first one found out.

    pip install 'wellworn[crewai]'
    export OPENAI_API_KEY=… WELLWORN_EXAMPLE_MODEL=openai/gpt-4o-mini
    python examples/crewai_memory.py

Without WELLWORN_EXAMPLE_MODEL a class of this file is the model, and no key is needed.
"""

from __future__ import annotations

import os
from typing import Any

from crewai import Agent, Crew, Task
from crewai.llms.base_llm import BaseLLM

from wellworn import Memory, Scope
from wellworn.integrations.frameworks.crewai import WellwornCrewMemory


class StandIn(BaseLLM):  # type: ignore[misc]  # not installed where types are checked
    """Knows the answer only from the memories that CrewAI puts before the task."""

    def call(self, messages: Any, *args: Any, **options: Any) -> str:
        known = "Oslo" in str(messages)
        return f"Thought: I know.\nFinal Answer: {'The office is in Oslo.' if known else 'I do not know.'}"


def main() -> None:
    model = os.environ.get("WELLWORN_EXAMPLE_MODEL") or StandIn(model="stand-in")
    with Memory("crewai_memory.db") as memory:
        team = memory.for_scope(Scope(team="core"))
        for question in ("Write down: the office is in Oslo.", "Where is the office?"):
            clerk = Agent(role="clerk", goal="answer questions", backstory="patient", llm=model)
            task = Task(description=question, expected_output="one sentence", agent=clerk)
            crew = Crew(agents=[clerk], tasks=[task], memory=WellwornCrewMemory(team))
            print(f"{question} → {crew.kickoff()}")


if __name__ == "__main__":
    main()
