"""Sessions of the middleware: runs that stop half-way, sessions over several runs, parallel ones, several users."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware, SummarizationMiddleware
from langchain_core.messages import BaseMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from contract.few import FEWER
from integrations.world import (
    ADA,
    BEN,
    Parts,
    agent_of,
    ask,
    calling,
    citing,
    clock,
    extracting,
    scripted,
    shown,
    thread,
    turns,
)
from wellworn import InvalidInput, Memory
from wellworn.integrations.langchain import RMMMiddleware

WHO = {"user_id": "ada"}


def pausing(model: Any, middleware: RMMMiddleware, saver: Any) -> Any:
    """An agent that asks a person before it looks at the clock."""
    asks = HumanInTheLoopMiddleware(interrupt_on={"clock": True})
    return agent_of(model, middleware, tools=[clock], middleware=[asks], checkpointer=saver)


def start(agent: Any, question: str) -> Any:
    return agent.invoke({"messages": [HumanMessage(question)]}, thread("t1"), context=WHO)


def resume(agent: Any, **context: Any) -> Any:
    approved: Command[Any] = Command(resume={"decisions": [{"type": "approve"}]})
    return agent.invoke(approved, thread("t1"), context={**WHO, **context})


# -- interruption and resume (F.4.1) -----------------------------------------------------------------------------


def test_a_run_resumed_in_another_process_continues_with_the_memories_it_began_with(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", background=False) as memory:
        memory.remember("Ada's bicycle is a green Brompton.", scope=ADA)
        model = scripted(calling(), citing("green", "A green one."))
        with SqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as saver:
            assert "__interrupt__" in start(pausing(model, RMMMiddleware(memory), saver), "Which bicycle?")
            assert turns(memory) == []
    with Memory(tmp_path / "memory.db", background=False) as memory:
        memory.remember("Ada's newer bicycle is a red Brompton.", scope=ADA)
        middleware = RMMMiddleware(memory)
        with SqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as saver:
            done = resume(pausing(model, middleware, saver), is_session_end=True)
        assert done["messages"][-1].text == "A green one."
        assert shown(model.seen[1]) == shown(model.seen[0])
        assert memory.learning.status(scope=ADA).outcomes == 1
        assert turns(memory) == [("user", "Which bicycle?"), ("assistant", "A green one.")]
        assert len(memory.jobs.list(scope=ADA)) == 1
        assert not middleware.faults


def test_one_on_parts_continues_and_a_memory_that_was_forgotten_meanwhile_is_not_shown_again(memory: Memory) -> None:
    parts, saver = Parts(), InMemorySaver()
    parts.remember("Ada's bicycle is a green Brompton.", "Ada lives in Oslo.")
    model = scripted(calling(), citing("green", "A green one."))
    start(pausing(model, parts.middleware(), saver), "Which bicycle?")
    middleware = parts.middleware()  # knows of the recall only what the state says
    resume(pausing(model, middleware, saver))
    assert shown(model.seen[1]) == shown(model.seen[0])
    assert (parts.residual().steps, middleware.faults) == (1, {})
    id = memory.remember("Ada's bicycle is a green Brompton.", scope=ADA)[0]
    model, saver = scripted(calling(), "I do not know."), InMemorySaver()
    start(pausing(model, RMMMiddleware(memory), saver), "Which bicycle?")
    memory.forget(ids=[id], scope=ADA)
    middleware = RMMMiddleware(memory)
    assert resume(pausing(model, middleware, saver))["messages"][-1].text == "I do not know."
    assert shown(model.seen[1]) == []
    assert middleware.faults == {"show": 1}


# -- the end of a session (F.4.2, F.4.3) -------------------------------------------------------------------------


def test_a_session_over_several_runs_becomes_memories_once() -> None:
    parts = Parts(model=extracting("The user rides a bicycle.", "The user drinks oolong."))
    middleware = parts.middleware()
    agent = agent_of(scripted("Noted. [NO_CITE]"), middleware)
    for text in ("I ride a bicycle.", "It is green.", "Good bye."):
        ask(agent, text, is_session_end=text == "Good bye.")
    asked = str(parts.model.seen[0][-1].content)
    assert all(text in asked for text in ("I ride a bicycle.", "It is green.", "Good bye."))
    middleware.end_session("ada", "t1")  # nothing new: the model is not asked again
    assert len(parts.model.seen) == 1
    ask(agent, "I drink oolong.", is_session_end=True)  # the next session of the thread
    asked = str(parts.model.seen[1][-1].content)
    assert "I drink oolong." in asked
    assert "I ride a bicycle." not in asked
    assert parts.texts() == ["The user drinks oolong.", "The user rides a bicycle."]


async def test_a_session_is_ended_from_outside() -> None:
    parts, saver = Parts(model=extracting("The user rides a bicycle.")), InMemorySaver()
    agent = pausing(scripted("Noted.", calling()), parts.middleware(), saver)
    await agent.ainvoke({"messages": [HumanMessage("I ride a bicycle.")]}, thread("t1"), context=WHO)
    await agent.ainvoke({"messages": [HumanMessage("What time is it?")]}, thread("t1"), context=WHO)
    parts.middleware().end_session("ada", "t1")
    assert parts.texts() == ["The user rides a bicycle."]


def test_an_end_is_asked_for_and_one_that_fails_says_so(memory: Memory) -> None:
    middleware = RMMMiddleware(memory)
    without = RMMMiddleware(memory, enable_prospective_reflection=False)
    ask(agent_of(scripted("Noted."), without), "I live in Oslo.", is_session_end=True)
    assert memory.jobs.list(scope=ADA) == []
    middleware.end_session("ada", "t1")
    assert [job.kind for job in memory.jobs.list(scope=ADA)] == ["reflect"]
    memory.close()
    middleware.end_session("ada", "t1")
    assert middleware.faults == {"reflect": 1}
    with pytest.raises(InvalidInput, match="not a user"):
        middleware.end_session("", "t1")


# -- one user in parallel sessions (F.5) -------------------------------------------------------------------------


def test_one_user_in_parallel_sessions_loses_nothing(memory: Memory) -> None:
    memory.remember("Ada lives in Oslo.", scope=ADA)
    middleware = RMMMiddleware(memory)
    agent = agent_of(scripted("In Oslo. [0]"), middleware)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: [ask(agent, f"Where, {n}, {m}?", on=f"t{n}") for m in range(2)], range(4)))
    for n in range(4):
        asked = [text for role, text in turns(memory, f"t{n}") if role == "user"]
        assert asked == [f"Where, {n}, {m}?" for m in range(2)]
    assert not middleware.faults["store"] + middleware.faults["learn"]


def test_on_parts_of_ones_own_every_citation_counts_and_every_memory_stays() -> None:
    def finds(messages: list[BaseMessage]) -> str:
        said = re.findall(r"number (\d+)", str(messages[-1].content))
        if "existing_memories" in str(messages[-1].content):
            return "0: Add()"
        return json.dumps({"extracted_memories": [{"summary": f"The user has number {said[0]}.", "reference": [0]}]})

    parts = Parts(model=scripted(finds))
    parts.remember("Ada lives in Oslo.")
    middleware = parts.middleware()
    agent = agent_of(scripted("Yes. [0]"), middleware)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: ask(agent, f"I have number {n}.", on=f"t{n}", is_session_end=True), range(8)))
    assert not middleware.faults
    assert parts.texts() == sorted(["Ada lives in Oslo.", *(f"The user has number {n}." for n in range(8))])
    weights = parts.weights()
    assert weights is not None
    assert weights.turns == 8


# -- several users -----------------------------------------------------------------------------------------------


def test_a_thread_that_changes_hands_reveals_nothing_of_its_first_user(memory: Memory) -> None:
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


USERS = ["ada", "a.da", "a%2Eda", "ädä@example.com", "ADA", "аda", "x" * 199, "x" * 198 + "y", "."]
"""Alike, and with every sign that a namespace or a path might stumble over."""
STEPS = st.lists(st.tuples(st.integers(0, len(USERS) - 1), st.integers(0, 1), st.booleans()), min_size=2, max_size=8)
"""Who says something, in which of their threads, and whether that session ends with it."""


def word_of(who: int) -> str:
    """A word that only this user says."""
    return "secret" + "abcdefghi"[who]


def play(agent: Any, model: Any, steps: list[tuple[int, int, bool]]) -> int:
    """Everyone says their word; returns how often a memory was shown. No prompt may hold another user's word."""
    seen = 0
    for who, which, ends in steps:
        before = len(model.seen)
        said = f"My word is {word_of(who)}, remember the word."
        ask(agent, said, user=USERS[who], on=f"{who}-{which}", is_session_end=ends)
        for prompt in model.seen[before:]:
            everything = " ".join(str(message.content) for message in prompt)
            assert not any(word_of(one) in everything for one in range(len(USERS)) if one != who)
            seen += len(shown(prompt))
    return seen


def finds_the_word(messages: list[BaseMessage]) -> str:
    text = str(messages[-1].content)
    if "existing_memories" in text:
        return "0: Add()"
    word = next(word_of(one) for one in range(len(USERS)) if word_of(one) in text)
    return f'{{"extracted_memories": [{{"summary": "The user has the word {word}.", "reference": [0]}}]}}'


@given(steps=STEPS)
@example(steps=[(0, 0, True), (1, 0, True), (0, 1, False), (1, 1, False)])
@FEWER
def test_nobody_sees_the_memories_of_another(steps: list[tuple[int, int, bool]]) -> None:
    again = [step for n, step in enumerate(steps) if (step[0], 1 - step[1], True) in steps[:n]]
    with Memory(":memory:", background=False, embedder="hash") as memory:
        model = scripted("Yes. [0]")
        assert play(agent_of(model, RMMMiddleware(memory)), model, steps) >= len({who for who, _, _ in again})
    parts, model = Parts(model=scripted(finds_the_word)), scripted("Yes. [0]")
    assert play(agent_of(model, parts.middleware()), model, steps) >= len({who for who, _, _ in again})


# -- summaries of another middleware -----------------------------------------------------------------------------


@pytest.mark.parametrize("keep", [1, 2])
def test_a_summary_is_nobodys_words_and_the_words_it_replaces_are_kept(memory: Memory, keep: int) -> None:
    memory.remember("Ada's dog Rex is grey.", scope=ADA)
    summary = SummarizationMiddleware(scripted("Ada wants a cat."), trigger=("messages", 4), keep=("messages", keep))
    model = scripted("Nice.", calling(), calling(), calling(), citing("grey", "Noon."))
    middleware = RMMMiddleware(memory)
    agent = agent_of(model, middleware, tools=[clock], middleware=[summary])
    said = ["I like tea.", "My dog is Rex. What is the time?", "Thanks."]
    for text in said:
        ask(agent, text)
    assert [text for role, text in turns(memory) if role == "user"] == said
    assert ("assistant", "Noon.") in turns(memory)
    assert not any("cat" in entry.text for entry in middleware.entries("ada"))
    assert "cat" in str(model.seen[4])
    assert "Rex is grey" in str(shown(model.seen[4]))  # the question is gone, its memories are not
    assert memory.learning.status(scope=ADA).outcomes >= 1


class Moderator(AgentMiddleware[Any, Any]):
    """Takes words out of the dialogue that must not be kept."""

    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        bad = [one for one in state["messages"] if "badword" in str(one.content)]
        return {"messages": [RemoveMessage(one.id) for one in bad]} if bad else None


def test_words_that_another_middleware_removes_are_not_kept_because_of_an_old_summary(memory: Memory) -> None:
    summary = SummarizationMiddleware(scripted("They talked."), trigger=("messages", 5), keep=("messages", 1))
    agent = agent_of(scripted("Nice."), RMMMiddleware(memory), middleware=[summary, Moderator()])
    for text in ("I like tea.", "I like jam.", "I like bread.", "A badword here."):
        ask(agent, text)
    assert [text for role, text in turns(memory) if role == "user"] == ["I like tea.", "I like jam.", "I like bread."]
