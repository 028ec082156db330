"""CrewAI's memory: its own tools and a crew with a scripted model."""

from __future__ import annotations

from typing import Any

import pytest

from wellworn import Memory, Scope

pytest.importorskip(
    "crewai", reason="crewai is not installed here: 945 MB, and it excludes openai 3 (docs/frameworks.md)"
)

from crewai import Agent, Crew, Task
from crewai.llms.base_llm import BaseLLM
from crewai.tools.memory_tools import create_memory_tools

from wellworn.integrations.frameworks.crewai import WellwornCrewMemory

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]  # the framework warns of itself


@pytest.fixture
def team(memory: Memory) -> Memory:
    return memory.for_scope(Scope(team="core"))


def test_records_are_remembered_recalled_and_forgotten(team: Memory) -> None:
    crew = WellwornCrewMemory(team)
    record = crew.remember("The tests run with make test.", scope="/dev", categories=["build"], importance=0.9)
    assert record is not None
    assert (record.scope, record.categories, record.importance) == ("/dev", ["build"], 0.9)
    crew.remember_many(["Ada prefers tokio.", " "], scope="/people")
    assert [match.record.content for match in crew.recall("How do the tests run?", categories=["build"])] == [
        "The tests run with make test."
    ]
    assert {match.record.scope for match in crew.recall("How do the tests run?", scope="/people")} <= {"/people"}
    assert [one.content for one in crew.list_records()] == ["Ada prefers tokio.", "The tests run with make test."]
    assert crew.forget(record_ids=[record.id]) == 1
    crew.reset()
    assert (team.entries(), crew.faults) == ([], {})


def test_a_memory_that_fails_finds_nothing(team: Memory) -> None:
    crew = WellwornCrewMemory(team)
    team.close()
    assert (crew.remember("x"), crew.recall("x")) == (None, [])
    assert crew.faults == {"store": 1, "recall": 1}


def test_the_tools_of_crewai_use_it(team: Memory) -> None:
    tools = {tool.name: tool for tool in create_memory_tools(WellwornCrewMemory(team))}
    search, save = tools.values()
    save.run(contents=["The office is in Oslo."])
    assert "The office is in Oslo." in search.run(queries=["Where is the office?"])


class Scripted(BaseLLM):  # type: ignore[misc]  # not installed where types are checked
    """Answers at once and notes what it was shown."""

    def call(self, messages: Any, *args: Any, **options: Any) -> str:
        SHOWN.append(str(messages))
        return "Thought: I know.\nFinal Answer: The office is in Oslo."


SHOWN: list[str] = []


def test_a_crew_sees_what_another_learned(team: Memory) -> None:
    for question in ("Find out where the office is.", "Where is the office?"):
        agent = Agent(role="clerk", goal="answer", backstory="patient", llm=Scripted(model="scripted"))
        task = Task(description=question, expected_output="a city", agent=agent)
        Crew(agents=[agent], tasks=[task], memory=WellwornCrewMemory(team)).kickoff()
    assert team.entries()
    assert "The office is in Oslo." in SHOWN[-1]
