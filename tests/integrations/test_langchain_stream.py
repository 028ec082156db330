"""A citation never reaches whoever reads a stream: in no mode, wherever the pieces of an answer are cut."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from integrations.world import ADA, agent_of, clock, scripted, thread
from wellworn import Memory
from wellworn.core.citations import Citation, CitationReader, read_citation
from wellworn.integrations.langchain import RMMMiddleware
from wellworn.integrations.langchain_stream import CitationGate, gated_model

ANSWERS = st.one_of(
    st.text(alphabet="a[]0 12,.\nNO_CITE`~", max_size=40),
    st.builds(
        lambda body, marker, after: body + marker + after,
        st.text(alphabet="ab .[0]\n`", max_size=20),
        st.sampled_from(["[0]", " [0, 2]", "\n[NO_CITE]", "[no_cite].", " [ 1 ,2 ]", "[7]", "[0", "[NO_"]),
        st.sampled_from(["", ".", " ", "\n", "\n```", "\n~~~\n", " and so on"]),
    ),
)


@given(answer=ANSWERS, cuts=st.lists(st.integers(1, 5), min_size=1, max_size=8), shown=st.integers(0, 4))
def test_what_is_streamed_is_the_answer_without_its_citation(answer: str, cuts: list[int], shown: int) -> None:
    held, parts, start, step = CitationReader(shown), [], 0, 0
    while start < len(answer):
        end = start + cuts[step % len(cuts)]
        parts.append(held.take(answer[start:end]))
        start, step = end, step + 1
    rest, places = held.finish()
    assert Citation(text="".join(parts) + rest, places=places) == read_citation(answer, shown)


LEAKS = ("[0", "0]", "NO_CITE", "[")


def clean(text: str) -> bool:
    return not any(leak in text for leak in LEAKS)


def messages_in(value: Any) -> list[BaseMessage]:
    """Every message in whatever a stream brings."""
    if isinstance(value, BaseMessage):
        return [value]
    if isinstance(value, dict):
        return [found for one in value.values() for found in messages_in(one)]
    if isinstance(value, list | tuple):
        return [found for one in value for found in messages_in(one)]
    found = []
    for name in ("message", "generations"):  # of generations and results
        if hasattr(value, name) and not isinstance(value, type):
            found += messages_in(getattr(value, name))
    return found


def said_by_model(value: Any) -> list[str]:
    return [str(one.text) for one in messages_in(value) if isinstance(one, AIMessage)]


@pytest.fixture
def agent(memory: Memory, piece: int, blocks: bool) -> Any:
    memory.remember("Ada's bicycle is a green Brompton.", scope=ADA)
    model = scripted("You ride a green Brompton. [0]", piece=piece, blocks=blocks)
    return agent_of(model, RMMMiddleware(memory))


QUESTION = {"messages": [HumanMessage("Which bicycle do I have?")]}
WHO = {"user_id": "ada"}
every_cut = pytest.mark.parametrize(("piece", "blocks"), [(1, False), (2, True), (99, False)])


@every_cut
def test_no_mode_shows_the_marker(agent: Any, memory: Memory) -> None:
    modes = ["values", "updates", "messages", "custom", "debug"]
    tokens = []
    for mode, value in agent.stream(QUESTION, thread("t1"), context=WHO, stream_mode=modes):
        assert mode != "custom"
        assert all(clean(text) for text in said_by_model(value))
        if mode == "messages" and value[1]["langgraph_node"] == "model":
            tokens.append(str(value[0].text))
    assert "".join(tokens) == "You ride a green Brompton."
    assert memory.learning.status(scope=ADA).outcomes == 1
    state = agent.get_state(thread("t1")).values["messages"][-1]
    assert state.text == "You ride a green Brompton."
    assert state.usage_metadata["total_tokens"] == 10  # what the last piece carries is not lost


@every_cut
async def test_no_async_mode_and_no_event_shows_it(agent: Any, memory: Memory) -> None:
    tokens: dict[str, list[str]] = {"t1": [], "t2": []}
    async for mode, value in agent.astream(QUESTION, thread("t1"), context=WHO, stream_mode=["values", "messages"]):
        assert all(clean(text) for text in said_by_model(value))
        if mode == "messages" and value[1]["langgraph_node"] == "model":
            tokens["t1"].append(str(value[0].text))
    async for event in agent.astream_events(QUESTION, thread("t2"), context=WHO, version="v2"):
        kind = event["event"]
        if kind != "on_chat_model_start":
            assert all(clean(text) for text in said_by_model(event["data"])), event
        if kind == "on_chat_model_stream":
            tokens["t2"].append(str(event["data"]["chunk"].text))
    assert {"".join(one) for one in tokens.values()} == {"You ride a green Brompton."}
    assert memory.learning.status(scope=ADA).outcomes == 2


@every_cut
@pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainBetaWarning")
def test_no_event_of_the_newest_kind_shows_it(agent: Any, memory: Memory) -> None:
    run = agent.stream_events(QUESTION, thread("t1"), context=WHO, version="v3")
    seen = [text for message in run.messages for text in message.text]
    assert "".join(seen) == "You ride a green Brompton."
    assert run.output["messages"][-1].text == "You ride a green Brompton."
    assert memory.learning.status(scope=ADA).outcomes == 1


def test_a_marker_before_a_tool_call_is_stripped_and_teaches_nothing(memory: Memory) -> None:
    memory.remember("Ada's bicycle is a green Brompton.", scope=ADA)
    call = AIMessage("Let me look. [0]", tool_calls=[{"name": "clock", "args": {}, "id": "c1"}])
    agent = agent_of(scripted(call, "It is noon."), RMMMiddleware(memory), tools=[clock])
    texts = []
    for message, about in agent.stream(QUESTION, thread("t1"), context=WHO, stream_mode="messages"):
        if about["langgraph_node"] == "model":
            texts.append(str(message.text))
    assert "".join(texts) == "Let me look.It is noon."
    assert memory.learning.status(scope=ADA).outcomes == 0


def test_the_copy_still_looks_like_the_model() -> None:
    model = scripted("x [0]", tags=["mine"])
    copy = gated_model(model, CitationGate(1))
    assert isinstance(copy, type(model))
    assert type(copy).__name__ == "Scripted"
    assert copy.tags == ["mine"]
    assert copy.lc_id() == model.lc_id()
    assert copy.invoke("hi").text == "x"
    assert model.invoke("hi").text == "x [0]"  # the model itself is as it was


def test_two_runs_of_one_model_at_a_time_keep_their_citations_apart(memory: Memory) -> None:
    memory.remember("Ada's bicycle is a green Brompton.", scope=ADA)
    model = scripted("Yes. [0]", piece=1)
    agent = agent_of(model, RMMMiddleware(memory), checkpointer=InMemorySaver())

    async def both() -> list[Any]:
        runs = [agent.ainvoke(QUESTION, thread(f"t{n}"), context=WHO) for n in range(8)]
        return await asyncio.gather(*runs)

    assert {str(done["messages"][-1].text) for done in asyncio.run(both())} == {"Yes."}
    assert memory.learning.status(scope=ADA).outcomes == 8
