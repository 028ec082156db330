"""The LangChain middleware, turn by turn: what the model sees, what is stored and learned, what is checkpointed."""

from __future__ import annotations

import json
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, SystemMessage
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from pydantic import BaseModel

from integrations.world import ADA, SYSTEM, agent_of, ask, calling, citing, clock, scripted, shown, thread, turns
from wellworn import InvalidInput, Memory, Scope
from wellworn.integrations.langchain import NOTE, RMMContext, RMMMiddleware
from wellworn.integrations.langchain_stream import CITE

BIKE = "Ada's bicycle is a green Brompton."
QUESTION = "Which bicycle do I have?"


def test_memories_are_shown_cited_and_learned_from_and_the_turns_stored(memory: Memory) -> None:
    memory.remember(BIKE, scope=ADA)
    model = scripted(citing("Brompton", "A green Brompton."))
    middleware = RMMMiddleware(memory)
    assert ask(agent_of(model, middleware), QUESTION) == "A green Brompton."
    system, asked = model.seen[0]
    assert system.content == f"{SYSTEM}\n\n{NOTE}\n{CITE}"
    assert str(asked.content).endswith(f"</memories>\n\n{QUESTION}")
    assert shown(model.seen[0])[0].endswith(BIKE)
    assert turns(memory) == [("user", QUESTION), ("assistant", "A green Brompton.")]
    assert memory.learning.status(scope=ADA).outcomes == 1
    assert memory.entries(scope=ADA)[0].usage_count == 1
    assert not middleware.faults


async def test_the_same_from_an_event_loop(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.remember(BIKE, scope=ADA)
    threads = set()

    def watched(call: Any) -> Any:
        def run(*args: Any, **kwargs: Any) -> Any:
            threads.add((call.__name__, threading.get_ident()))
            return call(*args, **kwargs)

        return run

    for name in ("recall", "get", "outcome", "session"):
        monkeypatch.setattr(memory, name, watched(getattr(memory, name)))
    middleware = RMMMiddleware(memory)
    agent = agent_of(scripted(citing("Brompton")), middleware)
    context = {"user_id": "ada", "is_session_end": True}
    done = await agent.ainvoke({"messages": [HumanMessage(QUESTION)]}, thread("t1"), context=context)
    assert done["messages"][-1].text == "Noted."
    assert memory.learning.status(scope=ADA).outcomes == 1
    assert [job.kind for job in memory.jobs.list(scope=ADA)] == ["reflect"]
    assert {name for name, _ in threads} == {"recall", "get", "outcome", "session"}
    assert threading.get_ident() not in {ident for _, ident in threads}
    assert not middleware.faults


def test_a_tool_loop_recalls_once_and_every_call_sees_the_same_block(memory: Memory) -> None:
    memory.remember(BIKE, scope=ADA)

    @tool
    def remembers() -> str:
        """Something new."""
        memory.remember("Ada's other bicycle is a red Brompton.", scope=ADA)
        return "done"

    call = AIMessage("", tool_calls=[{"name": "remembers", "args": {}, "id": "c1"}])
    model = scripted(call, citing("green"))
    ask(agent_of(model, RMMMiddleware(memory), tools=[remembers]), QUESTION)
    first, second = model.seen
    assert second[: len(first)] == first  # so that a prompt cache holds through the loop
    assert memory.learning.status(scope=ADA).outcomes == 1
    assert turns(memory) == [("user", QUESTION), ("assistant", "Noted.")]


def test_what_stands_before_the_question_is_the_same_on_every_turn(memory: Memory) -> None:
    memory.remember_many([BIKE, "Ada lives in Oslo.", "Ada drinks oolong."], scope=ADA)
    memory.session("s", scope=ADA).add_turns([("user", "I live in Oslo."), ("user", "I moved to Bergen last week.")])
    model = scripted(citing("Ada"))
    agent = agent_of(model, RMMMiddleware(memory))
    for question in ("Which bicycle?", "Where do I live?", "Thanks!"):
        ask(agent, question)
    assert {str(prompt[0].content) for prompt in model.seen} == {f"{SYSTEM}\n\n{NOTE}\n{CITE}"}
    for before, later in zip(model.seen, model.seen[1:], strict=False):
        stable = [message.model_dump_json() for message in before[:-1]]
        assert [message.model_dump_json() for message in later[: len(stable)]] == stable
        assert later[len(stable)].content == str(before[-1].content).partition("</memories>\n\n")[2]
    assert "Bergen" in shown(model.seen[1])[0]
    assert any("outdated since" in line and "Oslo" in line for line in shown(model.seen[1]))


def test_content_in_blocks_and_no_system_prompt(memory: Memory) -> None:
    memory.remember(BIKE, scope=ADA)
    model = scripted(citing("Brompton"))
    agent = agent_of(model, RMMMiddleware(memory), system_prompt=SystemMessage([{"type": "text", "text": "Be kind."}]))
    question = HumanMessage([{"type": "text", "text": QUESTION}])
    agent.invoke({"messages": [question]}, thread("t1"), context={"user_id": "ada"})
    system, asked = model.seen[0]
    assert system.content[0] == {"type": "text", "text": "Be kind."}
    assert asked.content[0]["text"].startswith("<memories")  # type: ignore[index]
    assert asked.content[1:] == [{"type": "text", "text": QUESTION}]
    bare = scripted("Yes.")
    ask(agent_of(bare, RMMMiddleware(memory), system_prompt=None), "Hi", on="t2")
    assert bare.seen[0][0].content == f"{NOTE}\n{CITE}"


def test_a_session_that_the_model_still_sees_is_not_recalled(memory: Memory) -> None:
    model = scripted("Noted.")
    agent = agent_of(model, RMMMiddleware(memory))
    ask(agent, "My bicycle is a green Brompton.")
    ask(agent, QUESTION)
    assert shown(model.seen[1]) == []
    ask(agent, QUESTION, on="t2")  # another dialogue: now it is a memory
    assert any("green Brompton" in line for line in shown(model.seen[2]))
    agent.update_state(thread("t1"), {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES)]})
    ask(agent, QUESTION)  # trimmed from the messages: now too
    assert any("green Brompton" in line for line in shown(model.seen[3]))
    assert turns(memory)[-2:] == [("user", QUESTION), ("assistant", "Noted.")]


NOTHING = "<memories>Nothing relevant is remembered.</memories>\n\n"


@pytest.mark.parametrize(("least", "before"), [(0.15, NOTHING), (0, "<memories note=")])
def test_a_recall_without_an_answer_shows_no_strangers_and_says_so(memory: Memory, least: float, before: str) -> None:
    memory.remember("Ada lives in Oslo.", scope=ADA)
    model = scripted("No idea. [NO_CITE]")
    middleware = RMMMiddleware(memory, min_confidence=least)
    agent, strange = agent_of(model, middleware), "What is the boiling point of tungsten?"
    assert ask(agent, strange) == "No idea."
    assert str(model.seen[0][1].content).startswith(before)
    assert agent.get_state(thread("t1")).values["messages"][0].content == strange
    assert memory.learning.status(scope=ADA).outcomes == (0 if least else 1)
    assert not middleware.faults
    ask(agent, strange, user="ben", on="t2")
    assert model.seen[1][1].content == strange  # nothing was ever remembered


# -- what teaches ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", ["In Oslo.", "arr[0]", "In Oslo. [0, 7]"])
def test_an_answer_without_a_valid_citation_teaches_nothing(memory: Memory, answer: str) -> None:
    memory.remember("Ada lives in Oslo.", scope=ADA)
    middleware = RMMMiddleware(memory)
    ask(agent_of(scripted(answer), middleware), "Where do I live?")
    assert memory.learning.status(scope=ADA).outcomes == 0
    assert middleware.faults == {"cite": 1}


def test_citing_none_teaches_too(memory: Memory) -> None:
    memory.remember("Ada lives in Oslo.", scope=ADA)
    ask(agent_of(scripted("No idea. [NO_CITE]"), RMMMiddleware(memory)), "Where do I live?")
    assert memory.learning.status(scope=ADA).outcomes == 1
    assert memory.entries(scope=ADA)[0].usage_count == 0


class City(BaseModel):
    """Where someone lives."""

    name: str


@pytest.mark.parametrize("strategy", [ToolStrategy(City), ProviderStrategy(City)])
def test_structured_output_sees_memories_and_is_asked_for_no_citation(memory: Memory, strategy: Any) -> None:
    memory.remember("Ada lives in Oslo.", scope=ADA)
    call = AIMessage("", tool_calls=[{"name": "City", "args": {"name": "Oslo"}, "id": "c1"}])
    model = scripted(call if isinstance(strategy, ToolStrategy) else json.dumps({"name": "Oslo"}))
    middleware = RMMMiddleware(memory)
    agent = agent_of(model, middleware, response_format=strategy)
    done = agent.invoke({"messages": [HumanMessage("Where do I live?")]}, thread("t1"), context={"user_id": "ada"})
    assert done["structured_response"] == City(name="Oslo")
    assert json.loads(turns(memory)[-1][1]) == {"name": "Oslo"}
    assert len(shown(model.seen[0])) == 1
    assert "NO_CITE" not in str(model.seen[0][0].content)
    assert memory.learning.status(scope=ADA).outcomes == 0
    assert not middleware.faults


def test_without_retrospective_reflection_nothing_is_asked_for_stripped_or_learned(memory: Memory) -> None:
    memory.remember("Ada lives in Oslo.", scope=ADA)
    model = scripted("In Oslo. [0]")
    middleware = RMMMiddleware(memory, enable_retrospective_reflection=False)
    assert ask(agent_of(model, middleware), "Where do I live?") == "In Oslo. [0]"
    assert "NO_CITE" not in str(model.seen[0][0].content)
    assert memory.learning.status(scope=ADA).outcomes == 0
    assert not middleware.faults


# -- what is checkpointed ----------------------------------------------------------------------------------------


def test_no_checkpoint_holds_a_memory_a_rule_or_a_marker(memory: Memory, tmp_path: Path) -> None:
    secret = "Ada's locker has the number Zweiundvierzig."
    memory.remember_many([secret, *(f"Ada's locker number {n} is full of books." for n in range(9))], scope=ADA)
    model = scripted(calling(), citing("Zweiundvierzig", "I know the locker."), calling(), citing("Ada", "Certainly."))
    with SqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as saver:
        agent = agent_of(model, RMMMiddleware(memory), tools=[clock], checkpointer=saver)
        for question in ("Which locker is mine, Zwei?", "And the books?"):
            ask(agent, question, is_session_end=True)
    assert any(secret in line for line in shown(model.seen[0]))
    with sqlite3.connect(tmp_path / "threads.db") as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        cells = [cell for name in tables for row in db.execute(f"SELECT * FROM {name}") for cell in row]
        sizes = [len(value) for (value,) in db.execute("SELECT value FROM writes WHERE channel LIKE 'rmm%'")]
    rows = b"\x00".join(cell if isinstance(cell, bytes) else str(cell).encode() for cell in cells)
    for found in (b"Which locker is mine", b"I know the locker", b"rmm_turn"):  # the scan finds what is there
        assert found in rows
    for hidden in (b"Zweiundvierzig", b"<memories", b"NO_CITE", b"Memories of earlier", b"full of books"):
        assert hidden not in rows
    assert max(sizes) <= 4096


# -- who, and which session --------------------------------------------------------------------------------------


def test_settings_are_checked(memory: Memory) -> None:
    with pytest.raises(InvalidInput, match="must be a Memory"):
        RMMMiddleware("memory.db")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="bound to one scope"):
        RMMMiddleware(memory.for_user("ada"))
    with pytest.raises(InvalidInput, match="tenant"):
        RMMMiddleware(memory, tenant="")
    with pytest.raises(InvalidInput, match="top_m"):
        RMMMiddleware(memory, top_m=0)


@pytest.mark.parametrize("schema", [RMMContext, None])
def test_the_user_comes_from_the_context_or_from_configurable(memory: Memory, schema: Any) -> None:
    middleware = RMMMiddleware(memory, tenant="acme")
    agent = agent_of(scripted("Hello."), middleware, context_schema=schema)
    ask(agent, "I am Ada.", session_id="monday")
    ask(agent, "I am Ada too.", tenant="globex", on="t2")
    assert turns(memory, "monday", Scope(tenant="acme", user="ada"))[0] == ("user", "I am Ada.")
    assert turns(memory, "t2", Scope(tenant="globex", user="ada"))[0] == ("user", "I am Ada too.")
    config = {"configurable": {"thread_id": "t3", "user_id": "eve", "is_session_end": True}}
    agent.invoke({"messages": [HumanMessage("I am Eve.")]}, config)
    agent.invoke({"messages": [HumanMessage("I am Ben.")]}, config, context={"user_id": "ben"})  # nearer to the run
    for user, text in (("eve", "I am Eve."), ("ben", "I am Ben.")):
        assert turns(memory, "t3", Scope(tenant="acme", user=user))[0] == ("user", text)
    assert len(memory.jobs.list(scope=Scope(tenant="acme", user="eve"))) == 2
    assert not middleware.faults


def test_without_a_checkpointer_each_turn_is_stored_once(memory: Memory) -> None:
    agent = agent_of(scripted("One.", "Two."), RMMMiddleware(memory), checkpointer=None)
    history: list[Any] = []
    for question in ("first", "second"):
        history.append(HumanMessage(question))
        context = {"user_id": "ada", "session_id": "web"}
        history = agent.invoke({"messages": history}, context=context)["messages"]
    assert turns(memory, "web") == [("user", "first"), ("assistant", "One."), ("user", "second"), ("assistant", "Two.")]
