"""Appendix F.4 and F.5: runs that stop half-way, sessions over several runs, no end, loops, a user in many threads."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from integrations.rmm.world import ADA, BEN, Parts, agent_of, ask, citing, extracting, scripted, shown, thread, turns
from wellworn import InvalidInput, Memory
from wellworn.integrations.langchain import RMMMiddleware

WHO = {"user_id": "ada"}


@tool
def clock() -> str:
    """The time."""
    return "noon"


def calling() -> AIMessage:
    return AIMessage("", tool_calls=[{"name": "clock", "args": {}, "id": "c1"}])


def paused(model: Any, middleware: RMMMiddleware, saver: Any) -> Any:
    """An agent that asks a person before it looks at the clock."""
    asks = HumanInTheLoopMiddleware(interrupt_on={"clock": True})
    return agent_of(model, middleware, tools=[clock], middleware=[asks], checkpointer=saver)


def go_on(agent: Any, on: str = "t1", **context: Any) -> Any:
    approved: Command[Any] = Command(resume={"decisions": [{"type": "approve"}]})
    return agent.invoke(approved, thread(on), context={**WHO, **context})


# -- 1: interruption and resume ----------------------------------------------------------------------------------


def test_a_run_resumed_in_another_process_goes_on_with_the_memories_it_began_with(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "memory.db", background=False, explore=0.0) as memory:
        memory.remember("Ada's bicycle is a green Brompton.", scope=ADA)
        model = scripted(calling(), citing("green", "A green one."))
        with SqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as saver:
            agent = paused(model, RMMMiddleware(memory), saver)
            done = agent.invoke({"messages": [HumanMessage("Which bicycle?")]}, thread("t1"), context=WHO)
            assert "__interrupt__" in done
            assert turns(memory) == []
    with Memory.open(tmp_path / "memory.db", background=False, explore=0.0) as memory:
        memory.remember("Ada's newer bicycle is a red Brompton.", scope=ADA)
        middleware = RMMMiddleware(memory)
        with SqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as saver:
            done = go_on(paused(model, middleware, saver), is_session_end=True)
        assert done["messages"][-1].text == "A green one."
        assert shown(model.seen[1]) == shown(model.seen[0])
        assert memory.learning.status(scope=ADA).outcomes == 1
        assert turns(memory) == [("user", "Which bicycle?"), ("assistant", "A green one.")]
        assert len(memory.jobs.list(scope=ADA)) == 1
        assert not middleware.faults


def test_on_parts_of_ones_own_too() -> None:
    parts, saver = Parts(), InMemorySaver()
    parts.remember("Ada's bicycle is a green Brompton.", "Ada lives in Oslo.")
    model = scripted(calling(), citing("green", "A green one."))
    agent = paused(model, parts.middleware(), saver)
    agent.invoke({"messages": [HumanMessage("Which bicycle?")]}, thread("t1"), context=WHO)
    middleware = parts.middleware()  # knows nothing of the recall but what the state says
    go_on(paused(model, middleware, saver))
    assert shown(model.seen[1]) == shown(model.seen[0])
    weights = parts.weights()
    assert weights is not None
    assert weights.steps == 1
    assert not middleware.faults


def test_a_memory_that_was_forgotten_meanwhile_is_not_shown_again(memory: Memory) -> None:
    id = memory.remember("Ada's bicycle is a green Brompton.", scope=ADA)[0]
    model, saver = scripted(calling(), "I do not know."), InMemorySaver()
    paused(model, RMMMiddleware(memory), saver).invoke(
        {"messages": [HumanMessage("Which bicycle?")]}, thread("t1"), context=WHO
    )
    memory.forget(ids=[id], scope=ADA)
    middleware = RMMMiddleware(memory)
    done = go_on(paused(model, middleware, saver))
    assert done["messages"][-1].text == "I do not know."
    assert shown(model.seen[1]) == []
    assert middleware.faults == {"show": 1}


# -- 2: a session over several runs ------------------------------------------------------------------------------


def test_a_session_over_several_runs_becomes_memories_once() -> None:
    parts = Parts(model=extracting("The user rides a bicycle.", "The user drinks oolong."))
    model = scripted("Noted. [NO_CITE]")
    agent = agent_of(model, parts.middleware())
    for text in ("I ride a bicycle.", "It is green.", "Good bye."):
        ask(agent, text, is_session_end=text == "Good bye.")
    asked = str(parts.model.seen[0][-1].content)
    assert all(text in asked for text in ("I ride a bicycle.", "It is green.", "Good bye."))
    assert parts.texts() == ["The user rides a bicycle."]
    ask(agent, "I drink oolong.", is_session_end=True)  # the next session of the thread
    asked = str(parts.model.seen[1][-1].content)
    assert "I drink oolong." in asked
    assert "I ride a bicycle." not in asked
    assert parts.texts() == ["The user drinks oolong.", "The user rides a bicycle."]


def test_ending_twice_reads_nothing_twice() -> None:
    parts = Parts(model=extracting("The user rides a bicycle.", "The user rides a bicycle."))
    middleware = parts.middleware()
    agent = agent_of(scripted("Noted."), middleware)
    ask(agent, "I ride a bicycle.", is_session_end=True)
    assert middleware.end_session(thread("t1"), agent=agent)
    assert len(parts.model.seen) == 1


# -- 3: no end, and an end from outside --------------------------------------------------------------------------


def test_without_an_end_nothing_is_extracted_until_it_is_asked_for(memory: Memory) -> None:
    middleware = RMMMiddleware(memory)
    agent = agent_of(scripted("Noted."), middleware)
    ask(agent, "I live in Oslo.")
    assert memory.jobs.list(scope=ADA) == []
    assert middleware.end_session(thread("t1"))
    assert [job.kind for job in memory.jobs.list(scope=ADA)] == ["reflect"]
    memory.jobs.run()
    facts = memory.entries(scope=ADA, kind=["fact", "preference"])
    assert any("Oslo" in entry.text for entry in facts)


async def test_an_interrupted_run_is_ended_from_outside() -> None:
    parts, saver = Parts(model=extracting("The user rides a bicycle.")), InMemorySaver()
    model = scripted("Noted.", calling())
    agent = paused(model, parts.middleware(), saver)
    await agent.ainvoke({"messages": [HumanMessage("I ride a bicycle.")]}, thread("t1"), context=WHO)
    await agent.ainvoke({"messages": [HumanMessage("What time is it?")]}, thread("t1"), context=WHO)
    another = parts.middleware()  # has not seen the thread
    with pytest.raises(InvalidInput, match="was not seen here"):
        another.end_session(thread("t1"))
    assert await another.aend_session(thread("t1"), agent=agent)
    assert parts.texts() == ["The user rides a bicycle."]


def test_an_end_that_fails_says_so(memory: Memory) -> None:
    middleware = RMMMiddleware(memory)
    ask(agent_of(scripted("Noted."), middleware), "I live in Oslo.")
    memory.close()
    assert not middleware.end_session(thread("t1"))
    assert middleware.faults == {"reflect": 1}
    with pytest.raises(InvalidInput, match="names no thread"):
        middleware.end_session({})


def test_without_prospective_reflection_an_end_starts_nothing(memory: Memory) -> None:
    middleware = RMMMiddleware(memory, enable_prospective_reflection=False)
    ask(agent_of(scripted("Noted."), middleware), "I live in Oslo.", is_session_end=True)
    assert memory.jobs.list(scope=ADA) == []
    assert len(turns(memory)) == 2


# -- 5 and 6: loops, and a model that is never called ------------------------------------------------------------


def test_a_loop_through_tools_is_one_turn(memory: Memory) -> None:
    model = scripted(calling(), calling(), "It is noon.")
    ask(agent_of(model, RMMMiddleware(memory), tools=[clock]), "What time is it?", is_session_end=True)
    assert turns(memory) == [("user", "What time is it?"), ("assistant", "It is noon.")]


def test_an_empty_bank_calls_the_model_as_ever(memory: Memory) -> None:
    model = scripted("Hello.")
    assert ask(agent_of(model, RMMMiddleware(memory)), "Hi") == "Hello."
    assert len(model.seen) == 1


# -- F.5: the same user at the same time -------------------------------------------------------------------------


def test_one_user_in_parallel_sessions_loses_nothing(memory: Memory) -> None:
    memory.remember("Ada lives in Oslo.", scope=ADA)
    middleware = RMMMiddleware(memory)
    agent = agent_of(scripted("In Oslo. [0]"), middleware)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: [ask(agent, f"Where, {n}, {m}?", on=f"t{n}") for m in range(3)], range(8)))
    for n in range(8):
        assert [text for role, text in turns(memory, f"t{n}") if role == "user"] == [
            f"Where, {n}, {m}?" for m in range(3)
        ]
    assert memory.learning.status(scope=ADA).outcomes >= 8
    assert not middleware.faults["store"] + middleware.faults["learn"]


def test_on_parts_of_ones_own_every_citation_counts_and_every_memory_stays() -> None:
    def finds(messages: list[BaseMessage]) -> str:
        said = re.findall(r"number (\d+)", str(messages[-1].content))
        if "history_summaries" in str(messages[-1].content):
            return "0: Add()"
        return json.dumps({"extracted_memories": [{"summary": f"The user has number {said[0]}.", "reference": [0]}]})

    parts = Parts(model=scripted(finds))
    parts.remember("Ada lives in Oslo.")
    middleware = parts.middleware()
    agent = agent_of(scripted("Yes. [0]"), middleware)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: ask(agent, f"I have number {n}.", on=f"t{n}", is_session_end=True), range(16)))
    assert not middleware.faults
    assert parts.texts() == sorted(["Ada lives in Oslo.", *(f"The user has number {n}." for n in range(16))])
    item = parts.store.get(("rmm", "ada", "weights"), "reranker")
    assert item is not None
    assert item.value["turns"] == 16


# -- a thread that changes hands ---------------------------------------------------------------------------------


def test_a_thread_that_changes_hands_tells_nothing_of_whose_it_was(memory: Memory) -> None:
    agent = agent_of(scripted("Noted."), RMMMiddleware(memory))
    ask(agent, "My word is xylophone.", user="ada")
    ask(agent, "My word is zeppelin.", user="ben", is_session_end=True)
    assert turns(memory, scope=ADA) == [("user", "My word is xylophone."), ("assistant", "Noted.")]
    assert turns(memory, scope=BEN) == [("user", "My word is zeppelin."), ("assistant", "Noted.")]
    parts = Parts(model=extracting("The user has a word."))
    agent = agent_of(scripted("Noted."), parts.middleware())
    ask(agent, "My word is xylophone.", user="ada")
    ask(agent, "My word is zeppelin.", user="ben", is_session_end=True)
    assert "xylophone" not in str(parts.model.seen[0][-1].content)
    assert "zeppelin" in str(parts.model.seen[0][-1].content)


def test_a_run_resumed_for_another_person_shows_nothing_of_the_first(memory: Memory) -> None:
    memory.remember("Ada's secret is xylophone.", scope=ADA)
    model, saver = scripted(calling(), "Noted. [0]"), InMemorySaver()
    agent = paused(model, RMMMiddleware(memory), saver)
    agent.invoke({"messages": [HumanMessage("Which secret?")]}, thread("t1"), context=WHO)
    assert len(shown(model.seen[0])) == 1
    go_on(agent, user_id="ben")
    assert shown(model.seen[1]) == []
    assert memory.learning.status(scope=ADA).outcomes == memory.learning.status(scope=BEN).outcomes == 0
