"""CrewAI's memory: its own tools and a crew with a scripted model."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
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


def contents(matches: Iterable[Any]) -> list[str]:
    return [match.record.content for match in matches]


def test_a_private_record_is_only_for_its_source(team: Memory) -> None:
    crew, question = WellwornCrewMemory(team), "What does Ada earn?"
    crew.remember("Ada earns 90000 crowns.", source="ada", private=True)
    assert crew.recall(question) == crew.recall(question, source="ben") == []
    for options in ({"source": "ada"}, {"include_private": True}):
        (match,) = crew.recall(question, **options)
        assert (match.record.private, match.record.source) == (True, "ada")
    crew.remember("Ada earns 90000 crowns.")  # now all may know
    assert contents(crew.recall(question)) == ["Ada earns 90000 crowns."]


def test_a_root_scope_holds_for_every_method(team: Memory) -> None:
    a, b = (WellwornCrewMemory(team, root_scope=f"/crew/{name}") for name in "ab")
    a.remember("Crew A ships on Tuesday.", scope="x")
    b.remember("Crew B ships on Friday.", scope="/x")
    for scope in (None, "/", "/x"):
        assert contents(a.recall("When does the crew ship?", scope=scope)) == ["Crew A ships on Tuesday."]
        assert [record.scope for record in a.list_records(scope)] == ["/crew/a/x"]
    assert (a.forget(scope="/y"), a.forget()) == (0, 1)
    a.reset()
    assert [record.content for record in b.list_records()] == ["Crew B ships on Friday."]


def test_a_scope_is_searched_beyond_better_matches_elsewhere(team: Memory) -> None:
    crew = WellwornCrewMemory(team)
    crew.remember_many([f"The harbour number {number} freezes in January." for number in range(30)], scope="/a")
    crew.remember("The old harbour at Bergen freezes sometimes in winter.", scope="/b")
    found = crew.recall("When does the harbour freeze in January?", scope="/b", limit=5)
    assert contents(found) == ["The old harbour at Bergen freezes sometimes in winter."]


def test_the_same_text_may_stand_in_several_scopes(team: Memory) -> None:
    crew, text = WellwornCrewMemory(team), "The harbour freezes in January."
    long = "\n\n".join(f"Part {number} of the harbour rules. " + "Ships wait. " * 60 for number in range(5))
    for scope in ("/a", "/b", "/b"):
        crew.remember(text, scope=scope)
        crew.remember(long, scope=scope)
        assert text in contents(crew.recall("When does the harbour freeze?", scope=scope))
    assert len(crew.list_records("/a")) == len(crew.list_records("/b")) > 2
    (moved,) = (record for record in crew.list_records("/b") if record.content == text)
    crew.update(moved.id, scope="/c")
    for scope in ("/b", "/c", "/", "/"):
        crew.remember(text, scope=scope)
    scopes = [record.scope for record in crew.list_records() if record.content == text]
    assert (sorted(scopes), crew.faults) == (["/", "/a", "/b", "/c"], {})


def test_a_record_replaces_none_of_another_place(team: Memory) -> None:
    crew, question = WellwornCrewMemory(team), "When is the deadline of the project?"
    for day, place in (("Friday", {}), ("Monday", {"scope": "/b"}), ("Sunday", {"private": True, "source": "bob"})):
        crew.remember(f"The deadline of the project is {day}.", **place)
    assert {entry.state for entry in team.entries()} == {"active"}
    assert "The deadline of the project is Friday." in contents(crew.recall(question))
    crew.remember("The deadline of the project is Tuesday.")
    assert [entry.state for entry in team.entries()] == ["superseded", "active", "active", "active"]


def test_records_are_counted_and_changed_by_the_methods_of_crewai(team: Memory) -> None:
    crew, told = WellwornCrewMemory(team), {"source": "a letter", "page": 3}
    record = crew.remember("The harbour freezes in January.", scope="/a/b", categories=["weather"], metadata=told)
    assert record is not None
    assert record.metadata.items() >= told.items()
    assert record.created_at.tzinfo is None  # as CrewAI compares it
    crew.remember("The office is in Oslo.", scope="/c", agent_role="x" * 300)
    assert (crew.list_scopes(), crew.list_scopes("/a"), crew.list_scopes("/c")) == (["/a", "/c"], ["/a/b"], [])
    assert (crew.list_categories(), crew.info("/a").record_count, crew.info().child_scopes) == (
        {"weather": 1},
        1,
        ["/a", "/c"],
    )
    assert crew.tree() == "/ (2 records)\n  /a (1 records)\n    /a/b (1 records)\n  /c (1 records)"
    crew.update(record.id, content="The harbour freezes in March.", scope="/c", importance=0.9)
    changed = crew.list_records("/c")[-1]
    assert (changed.content, changed.importance, changed.metadata) == (
        "The harbour freezes in March.",
        0.9,
        record.metadata,
    )
    now = datetime.now(UTC).replace(tzinfo=None)
    assert crew.forget(older_than=now - timedelta(hours=1), metadata_filter={"page": 3}) == 0
    assert (crew.forget(older_than=now + timedelta(hours=1), metadata_filter={"page": 3}), crew.faults) == (1, {})


def test_a_memory_that_fails_finds_nothing(team: Memory) -> None:
    crew = WellwornCrewMemory(team)
    team.close()
    assert (crew.remember("x"), crew.recall("x")) == (None, [])
    assert crew.faults == {"store": 1, "recall": 1}
    crew = WellwornCrewMemory(team, read_only=True)
    assert (crew.remember("x"), crew.remember_many(["y"]), crew.faults) == (None, [], {})


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
