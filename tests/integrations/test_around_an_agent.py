"""What an agent does around memory: words stay with their owner, markers stay hidden, nothing said is lost."""

from __future__ import annotations

from threading import Event
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ModelFallbackMiddleware
from langchain.agents.middleware.types import AgentMiddleware
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from integrations.test_langchain_sessions import pausing, resume, start
from integrations.world import (
    ADA,
    BEN,
    HandClock,
    Parts,
    agent_of,
    ask,
    calling,
    citing,
    extracting,
    scripted,
    shown,
    thread,
    turns,
)
from wellworn import Memory
from wellworn.integrations.langchain import RMMContext, RMMMiddleware
from wellworn.reflection import ReflectionSettings


def broken(*args: Any, **kwargs: Any) -> Any:
    raise ConnectionError


# -- turns that could not be stored ------------------------------------------------------------------------------


def test_turns_that_could_not_be_stored_or_answered_are_stored_with_the_next(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    middleware = RMMMiddleware(memory)
    agent = agent_of(scripted("Noted.", "Noted.", lambda _: broken(), "Noted."), middleware)
    with monkeypatch.context() as patch:
        patch.setattr(memory, "session", broken)
        for n in range(2):
            ask(agent, f"I have cat {n}.")
    assert middleware.faults == {"store": 2}
    with pytest.raises(ConnectionError):
        ask(agent, "I have a fish.")
    ask(agent, "I have a dog.")
    said = [text for role, text in turns(memory) if role == "user"]
    assert said == ["I have cat 0.", "I have cat 1.", "I have a fish.", "I have a dog."]


def test_what_was_there_before_the_middleware_is_not_stored(memory: Memory) -> None:
    agent = agent_of(scripted("Noted."), RMMMiddleware(memory))
    given = [HumanMessage("Old."), AIMessage("Yes."), HumanMessage("I have a dog.")]
    agent.invoke({"messages": given}, thread("t1"), context={"user_id": "ada"})
    assert turns(memory) == [("user", "I have a dog."), ("assistant", "Noted.")]


# -- a run that someone else resumes -----------------------------------------------------------------------------


def test_a_run_resumed_by_another_person_keeps_the_words_with_their_owner(memory: Memory) -> None:
    memory.remember("Ben's clock is blue.", scope=BEN)
    model = scripted(calling(), "It is noon.")
    agent = pausing(model, RMMMiddleware(memory), InMemorySaver())
    start(agent, "What does my clock say?")
    resume(agent, user_id="ben")
    assert turns(memory, scope=ADA) == [("user", "What does my clock say?"), ("assistant", "It is noon.")]
    assert turns(memory, scope=BEN) == []
    assert shown(model.seen[1]) == []
    assert memory.learning.status(scope=ADA).outcomes == memory.learning.status(scope=BEN).outcomes == 0
    ask(agent, "And mine?", user="ben")
    assert turns(memory, scope=BEN) == [("user", "And mine?"), ("assistant", "It is noon.")]


@pytest.mark.parametrize("resumed", [True, False])
def test_words_added_when_a_run_is_resumed_or_never_resumed_are_those_of_who_says_them(
    memory: Memory, resumed: bool
) -> None:
    agent = pausing(scripted(calling(), "It is noon."), RMMMiddleware(memory), InMemorySaver())
    start(agent, "What does my clock say?")
    if resumed:
        approved = {"decisions": [{"type": "approve"}]}
        more: Command[Any] = Command(resume=approved, update={"messages": [HumanMessage("I am Ben.")]})
        agent.invoke(more, thread("t1"), context={"user_id": "ben"})
    else:
        ask(agent, "I am Ben.", user="ben")
        assert ("user", "What does my clock say?") in turns(memory, scope=ADA)
    assert ("user", "I am Ben.") not in turns(memory, scope=ADA)
    assert ("user", "What does my clock say?") not in turns(memory, scope=BEN)


def test_words_of_nobody_are_nobodys(memory: Memory) -> None:
    middleware = RMMMiddleware(memory)
    agent = agent_of(scripted("Noted."), middleware)
    ask(agent, "I have a cat.")
    agent.invoke({"messages": [HumanMessage("I have a snake.")]}, thread("t1"))
    assert middleware.faults == {"start": 1}
    ask(agent, "I have a dog.")
    assert [text for role, text in turns(memory) if role == "user"] == ["I have a cat.", "I have a dog."]


# -- a middleware further in that changes the model --------------------------------------------------------------


class Swaps(AgentMiddleware[Any, Any]):
    """Puts another model in, in one of the ways that people do it."""

    def __init__(self, model: Any, way: str) -> None:
        super().__init__()
        self._model, self._way = model, way

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        if self._way == "override":
            return handler(request.override(model=self._model))
        request.model = self._model
        return handler(request)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("way", ["override", "assign", "fallback"])
def test_markers_are_hidden_when_the_model_is_swapped(memory: Memory, way: str) -> None:
    memory.remember("Ada's bicycle is green.", scope=ADA)
    other = scripted("You ride a green one [0], I think. [0]", piece=2)
    swaps = ModelFallbackMiddleware(other) if way == "fallback" else Swaps(other, way)
    agent = agent_of(scripted(lambda _: broken()), RMMMiddleware(memory), middleware=[swaps])
    tokens = []
    given = {"messages": [HumanMessage("Which bicycle?")]}
    for message, about in agent.stream(given, thread("t1"), context={"user_id": "ada"}, stream_mode="messages"):
        if about["langgraph_node"] == "model":
            tokens.append(str(message.text))
    assert "".join(tokens) == "You ride a green one, I think."
    assert memory.learning.status(scope=ADA).outcomes == 1


# -- sub-agents and graphs ---------------------------------------------------------------------------


def test_what_a_sub_agent_is_asked_is_not_what_the_person_said(memory: Memory) -> None:
    sub = create_agent(scripted("Rain."), [], middleware=[RMMMiddleware(memory)], context_schema=RMMContext)

    @tool
    def look_up(question: str) -> str:
        """Ask the weather agent."""
        return str(sub.invoke({"messages": [HumanMessage(question)]}, context={"user_id": "ada"})["messages"][-1].text)

    call = AIMessage("", tool_calls=[{"name": "look_up", "args": {"question": "Weather in Oslo?"}, "id": "c1"}])
    agent = agent_of(scripted(call, "Take an umbrella."), RMMMiddleware(memory), tools=[look_up])
    ask(agent, "Do I need a coat?", is_session_end=True)
    assert [text for role, text in turns(memory) if role == "user"] == ["Do I need a coat?"]
    assert ("assistant", "Weather in Oslo?") in turns(memory)
    assert len(memory.jobs.list(scope=ADA)) == 1  # the session ends once, with the person's agent


def test_an_agent_as_a_node_of_a_graph_hears_the_person(memory: Memory) -> None:
    from langgraph.graph import START, MessagesState, StateGraph

    agent = agent_of(scripted("Noted."), RMMMiddleware(memory), checkpointer=None)
    graph: Any = StateGraph(MessagesState, context_schema=RMMContext)
    graph.add_node("helper", agent)
    graph.add_edge(START, "helper")
    compiled = graph.compile(checkpointer=InMemorySaver())
    compiled.invoke({"messages": [HumanMessage("I have a dog.")]}, thread("t1"), context={"user_id": "ada"})
    assert turns(memory) == [("user", "I have a dog."), ("assistant", "Noted.")]


# -- on parts of one's own ---------------------------------------------------------------------------------------


def test_a_session_on_parts_ends_when_it_is_idle(clock: HandClock) -> None:
    parts = Parts(model=extracting("The user has a dog."))
    middleware = parts.middleware(reflection=ReflectionSettings(idle_minutes=30), clock=clock)
    agent = agent_of(scripted("Noted. [NO_CITE]"), middleware)
    for text, on, known in (
        ("I have a dog.", "monday", []),
        ("Hello.", "tuesday", []),
        ("Hello again.", "tuesday", ["The user has a dog."]),
    ):
        ask(agent, text, on=on)
        assert parts.texts() == known
        clock.forward(minutes=20)
    assert "Hello" not in str(parts.model.seen[0][-1].content)


def test_and_after_every_n_turns() -> None:
    parts = Parts(model=extracting("The user has a dog.", "The user has a cat."))
    agent = agent_of(scripted("Noted. [NO_CITE]"), parts.middleware(reflection=ReflectionSettings(every_turns=4)))
    for text in ("I have a dog.", "It barks.", "I have a cat.", "It purrs."):
        ask(agent, text)
    assert parts.texts() == ["The user has a cat.", "The user has a dog."]
    assert "dog" not in str(parts.model.seen[-1][-1].content).split("new_memories")[1]


def test_turns_do_not_wait_where_there_is_no_reflection() -> None:
    parts = Parts()
    agent = agent_of(scripted("Noted."), parts.middleware(enable_prospective_reflection=False))
    ask(agent, "I have a cow.", is_session_end=True)
    assert parts.store.search(("rmm", "ada", "sessions")) == []


def test_reflection_on_parts_in_the_background() -> None:
    gate = Event()
    inner = extracting("The user has a dog.")

    def waits(messages: Any) -> Any:
        assert gate.wait(300)
        return inner.reply(messages)

    parts = Parts(model=scripted(waits))
    middleware = parts.middleware(background=True)
    agent = agent_of(scripted("Noted."), middleware)
    assert ask(agent, "I have a dog.", is_session_end=True) == "Noted."  # did not wait
    assert ask(agent, "It barks.") == "Noted."  # nor does the next run
    assert parts.texts() == []
    gate.set()
    middleware.wait()
    assert parts.texts() == ["The user has a dog."]
    middleware.end_session("ada", "t1")
    middleware.wait()
    asked = str(parts.model.seen[-1][-1].content)  # what came meanwhile is read next time
    assert "It barks." in asked
    assert "I have a dog." not in asked


def test_memories_on_parts_are_listed_forgotten_and_rebuilt() -> None:
    parts = Parts(model=extracting("The user has a dog.", "The user has a cat."))
    middleware = parts.middleware()
    agent = agent_of(scripted(citing("dog", "Yes.")), middleware)
    ask(agent, "I have a dog.", on="t1", is_session_end=True)
    ask(agent, "I have a cat.", on="t2", is_session_end=True)
    dog, cat = sorted(middleware.entries("ada"), key=lambda entry: "cat" in entry.text)
    assert (dog.text, cat.text) == ("The user has a dog.", "The user has a cat.")
    parts.vectors.store.clear()  # the index is lost
    assert middleware.rebuild("ada") == 2
    assert parts.texts() == ["The user has a cat.", "The user has a dog."]
    assert middleware.rebuild("ada") == 2
    assert middleware.forget("ada", [cat.id, "unknown"]) == 1
    assert parts.texts() == ["The user has a dog."]
    assert middleware.entries("ben") == []
    assert middleware.forget("ada") == 1
    assert parts.texts() == [] == middleware.entries("ada")
    assert parts.weights() is None


def test_the_same_on_a_memory(memory: Memory) -> None:
    id = memory.remember("Ada has a dog.", scope=ADA)[0]
    memory.remember("Ben has a cat.", scope=BEN)
    middleware = RMMMiddleware(memory)
    assert [entry.text for entry in middleware.entries("ada")] == ["Ada has a dog."]
    assert (middleware.forget("ada", [id]), middleware.entries("ada")) == (1, [])
    assert (middleware.rebuild("ben"), middleware.forget("ben")) == (1, 1)


def test_a_shared_index_that_finds_nothing_for_a_person_says_so(caplog: pytest.LogCaptureFixture) -> None:
    parts = Parts(model=extracting("The user has a dog."))
    middleware = parts.middleware()
    ask(agent_of(scripted("Noted."), middleware), "I have a dog.", is_session_end=True)
    assert not middleware.faults
    parts.remember(*(f"Note {n}." for n in range(30)), user="ben")
    search = parts.vectors.similarity_search_by_vector

    def ten_of_ben(*args: Any, **kwargs: Any) -> Any:  # an index that gives ten at most, and others are nearer
        return [one for one in search(*args, **{**kwargs, "k": 100}) if one.metadata["rmm_user"] == "ben"][:10]

    parts.vectors.similarity_search_by_vector = ten_of_ben  # type: ignore[method-assign]
    ask(agent_of(scripted("Noted."), middleware), "Which pet?", on="t2")
    assert middleware.faults == {"recall": 1}
    assert any("search_kwargs" in record.getMessage() for record in caplog.records)
    before = middleware.faults["recall"]
    ask(agent_of(scripted("Noted."), middleware), "Which pet?", user="eve", on="t3")
    assert middleware.faults["recall"] == before  # someone without memories is no fault
