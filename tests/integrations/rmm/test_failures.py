"""Appendix F.7, row by row: that part breaks, the agent answers, nothing is changed, and the reason is told.

In every case the model is called exactly once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from langgraph.store.memory import InMemoryStore

from integrations.rmm.world import ADA, Parts, Scripted, agent_of, ask, citing, extracting, scripted, shown, turns
from memory.world import picture
from wellworn import Memory
from wellworn.integrations import langchain
from wellworn.integrations.langchain import RMMMiddleware

QUESTION = "Where in Oslo does Ada live?"
SECRET = "sk-secret"


def failing(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError(f"{SECRET}: {args}")


class FailingStore(InMemoryStore):
    """A store that can be cut off."""

    cut = False

    def batch(self, ops: Any) -> Any:
        if self.cut:
            raise ConnectionError(SECRET)
        return super().batch(ops)


def told(caplog: pytest.LogCaptureFixture, step: str, kind: str) -> None:
    """It was logged, with the kind of error and without what it quotes."""
    said = [record.getMessage() for record in caplog.records if record.name == "wellworn.integrations.langchain"]
    assert any(f"failed to {step} ({kind})" in one for one in said), said
    assert not any(SECRET in one or "Oslo" in one for one in said)


@pytest.fixture
def parts() -> Parts:
    made = Parts(store=FailingStore())
    made.remember("Ada lives in Oslo.", "Ada's cat is grey.", "Ada was born in Bonn.")
    return made


# -- VectorStore query fails: no retrieval, empty context --------------------------------------------------------


def test_the_vector_store_cannot_be_asked(parts: Parts, caplog: pytest.LogCaptureFixture) -> None:
    middleware, model = parts.middleware(), scripted("I do not know.")
    parts.vectors.similarity_search_by_vector = failing  # type: ignore[method-assign]
    agent = agent_of(model, middleware)
    assert ask(agent, QUESTION) == "I do not know."
    assert [shown(prompt) for prompt in model.seen] == [[]]
    assert "rmm_turn" not in agent.get_state({"configurable": {"thread_id": "t1"}}).values
    assert parts.weights() is None
    assert middleware.faults == {"recall": 1}
    told(caplog, "recall", "RuntimeError")


def test_the_memory_cannot_be_asked(
    memory: Memory, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.remember("Ada lives in Oslo.", scope=ADA)
    monkeypatch.setattr(memory, "recall", failing)
    middleware, model = RMMMiddleware(memory), scripted("I do not know.")
    assert ask(agent_of(model, middleware), QUESTION) == "I do not know."
    assert [shown(prompt) for prompt in model.seen] == [[]]
    assert middleware.faults == {"recall": 1}
    told(caplog, "recall", "RuntimeError")


# -- Reranker computation fails: the first M ---------------------------------------------------------------------


def test_the_reranker_cannot_compute(
    parts: Parts, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts.config = {"top_m": 2, "top_k": 3}
    middleware, model = parts.middleware(), scripted(citing("Oslo", "In Oslo."))
    monkeypatch.setattr("wellworn.learning.residual.Residual.scores", failing)
    assert ask(agent_of(model, middleware), QUESTION) == "In Oslo."
    near = parts.vectors.similarity_search(QUESTION, k=2)
    assert [line.partition(") ")[2] for line in shown(model.seen[0])] == [one.page_content for one in near]
    assert len(model.seen) == 1
    assert parts.weights() is None  # learning needs the scores as well
    assert middleware.faults == {"rerank": 1, "learn": 1}
    told(caplog, "rerank", "RuntimeError")


# -- Citation parsing fails: no update ---------------------------------------------------------------------------


def test_the_citation_cannot_be_read(
    parts: Parts, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    middleware, model = parts.middleware(), scripted("In Oslo.")
    monkeypatch.setattr(langchain, "stripped", failing)
    assert ask(agent_of(model, middleware), QUESTION) == "In Oslo."
    assert len(model.seen) == 1
    assert parts.weights() is None
    assert middleware.faults == {"cite": 1}
    told(caplog, "cite", "RuntimeError")


@pytest.mark.parametrize("answer", ["In Oslo. [5]", "In Oslo. [0,", "In Oslo. [abc]", "In Oslo.", "In Oslo. (0)"])
def test_the_citation_is_malformed(parts: Parts, caplog: pytest.LogCaptureFixture, answer: str) -> None:
    middleware, model = parts.middleware(), scripted(answer)
    assert ask(agent_of(model, middleware), QUESTION) == answer
    assert len(model.seen) == 1
    assert parts.weights() is None
    assert middleware.faults == {"cite": 1}
    told(caplog, "cite", "the answer ends without a sound citation")


# -- BaseStore unavailable: weights in memory only ---------------------------------------------------------------


def test_the_base_store_is_cut_off(parts: Parts, caplog: pytest.LogCaptureFixture) -> None:
    middleware, model = parts.middleware(), scripted(citing("Oslo", "In Oslo."))
    agent = agent_of(model, middleware)
    store: Any = parts.store
    ask(agent, QUESTION)
    before = parts.weights()
    assert before is not None
    store.cut = True
    assert ask(agent, QUESTION, on="t2") == "In Oslo."
    assert "Oslo" in shown(model.seen[1])[0]  # as the index has it
    assert len(model.seen) == 2
    assert set(middleware.faults) <= {"store", "weights", "learn"}
    assert middleware.faults["store"] == 1
    told(caplog, "store", "ConnectionError")
    store.cut = False
    after = parts.weights()
    assert after is not None
    assert after.to_bytes() == before.to_bytes()
    ask(agent, QUESTION, on="t3")
    last = parts.weights()
    assert last is not None
    assert last.steps == 2


def test_weights_that_could_not_be_written_are_written_later(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    middleware = parts.middleware()
    agent = agent_of(scripted(citing("Oslo")), middleware)
    store: Any = parts.store
    original = store.put
    monkeypatch.setattr(store, "put", failing)
    for n in range(2):
        ask(agent, QUESTION, on=f"t{n}")
    assert parts.weights() is None
    assert middleware.faults == {"weights": 2}
    monkeypatch.setattr(store, "put", original)
    ask(agent, QUESTION, on="t9")
    state = parts.weights()
    assert state is not None
    assert state.steps == 3  # nothing was lost


# -- Memory extraction fails: no memory updates ------------------------------------------------------------------


def raising(messages: list[BaseMessage]) -> str:
    raise ConnectionError(SECRET)


@pytest.mark.parametrize("broken", ["model", "embeddings", "vectors", "store"])
def test_what_was_said_cannot_become_memories(
    broken: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    finds = extracting("The user rides a green bicycle.", "The user rides a green bicycle.")
    model_of_ours = scripted(raising, finds.reply) if broken == "model" else finds
    parts = Parts(model=model_of_ours, store=FailingStore())
    parts.remember("Ada lives in Oslo.")
    middleware, model = parts.middleware(), scripted("Nice!")
    agent = agent_of(model, middleware)
    before = parts.texts()
    with monkeypatch.context() as patch:
        if broken == "embeddings":
            patch.setattr(parts.embeddings, "embed_documents", failing)
        if broken == "vectors":
            patch.setattr(parts.vectors, "add_documents", failing)
        if broken == "store":
            patch.setattr(parts.store, "put", failing)
        assert ask(agent, "I ride a green bicycle.", is_session_end=True) == "Nice!"
    assert len(model.seen) == 1
    assert parts.texts() == before
    assert len(parts.vectors.similarity_search("bicycle", k=9)) == 1
    assert middleware.faults["reflect"] == 1
    told(caplog, "reflect", "ModelFailed" if broken == "model" else "RuntimeError")
    ask(agent, "Bye.", is_session_end=True)  # the anchor has not moved: nothing is lost
    assert parts.texts() == [*before, "The user rides a green bicycle."]


def test_the_session_cannot_be_ended(
    memory: Memory, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wellworn.ingest.session.Session.end", failing)
    middleware, model = RMMMiddleware(memory), scripted("Nice!")
    assert ask(agent_of(model, middleware), "I ride a green bicycle.", is_session_end=True) == "Nice!"
    assert len(model.seen) == 1
    assert memory.jobs.list(scope=ADA) == []
    assert middleware.faults == {"reflect": 1}
    told(caplog, "reflect", "RuntimeError")


# -- Any hook throws: nothing of it is left ----------------------------------------------------------------------

HOOKS: list[tuple[str, str, str]] = [
    ("before_agent", "person_of", "start"),
    ("before_model", "question_of", "recall"),
    ("wrap_model_call", "injected", "show"),
    ("wrap_model_call", "held_back", "show"),
    ("wrap_model_call", "stripped", "cite"),
    ("after_agent", "unkept", "store"),
]


@pytest.mark.parametrize(("hook", "name", "step"), HOOKS, ids=[f"{hook}-{name}" for hook, name, _ in HOOKS])
async def test_a_hook_throws(
    memory: Memory, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, hook: str, name: str, step: str
) -> None:
    memory.remember("Ada lives in Oslo.", scope=ADA)
    monkeypatch.setattr(langchain, name, failing)
    middleware, model = RMMMiddleware(memory), scripted("Hello.")
    agent = agent_of(model, middleware)
    assert ask(agent, QUESTION) == "Hello."
    assert len(model.seen) == 1
    assert middleware.faults[step] >= 1
    told(caplog, step, "RuntimeError")
    assert memory.learning.status(scope=ADA).outcomes == 0


def test_turns_that_cannot_be_kept_are_kept_next_time(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    middleware = RMMMiddleware(memory)
    agent = agent_of(scripted("Hello.", "Again."), middleware)
    ask(agent, "First.")
    with monkeypatch.context() as patch:
        patch.setattr(memory, "session", failing)
        ask(agent, "Second.")
    assert middleware.faults == {"store": 1}
    ask(agent, "Third.")
    assert [text for _, text in turns(memory)] == ["First.", "Hello.", "Second.", "Again.", "Third.", "Again."]


def test_learning_that_fails_changes_nothing_and_is_told(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.remember("Ada lives in Oslo.", scope=ADA)
    monkeypatch.setattr(memory, "outcome", failing)
    middleware, model = RMMMiddleware(memory), scripted("In Oslo. [0]")
    assert ask(agent_of(model, middleware), QUESTION) == "In Oslo."
    assert middleware.faults == {"learn": 1}
    assert memory.learning.status(scope=ADA).outcomes == 0


def test_a_closed_memory_leaves_an_agent_that_answers(memory: Memory) -> None:
    middleware, model = RMMMiddleware(memory), scripted("Hello.")
    memory.close()
    assert ask(agent_of(model, middleware), "Hi", is_session_end=True) == "Hello."
    assert middleware.faults == {"recall": 1, "store": 1, "reflect": 1}
    assert len(model.seen) == 1


def test_nobody_to_remember_for(memory: Memory, caplog: pytest.LogCaptureFixture) -> None:
    before = picture(memory)
    middleware, model = RMMMiddleware(memory), scripted("Hello. [0]")
    agent = agent_of(model, middleware, context_schema=None)
    done = agent.invoke({"messages": [("user", "Hi")]}, {"configurable": {"thread_id": "t"}})
    assert done["messages"][-1].text == "Hello. [0]"  # as without the middleware
    assert [message.content for message in model.seen[0]][1:] == ["Hi"]
    assert middleware.faults == {"start": 1}
    told(caplog, "start", "InvalidInput")
    assert picture(memory) == before


# -- the model's own errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
def test_the_models_error_surfaces_once_and_it_is_called_once(memory: Memory, stream: bool) -> None:
    memory.remember("Ada lives in Oslo.", scope=ADA)
    calls: list[int] = []

    def fails(messages: list[BaseMessage]) -> str:
        calls.append(1)
        raise TimeoutError("the model is busy")

    middleware = RMMMiddleware(memory)
    agent = agent_of(Scripted(reply=fails), middleware)
    run: Callable[[], Any] = lambda: ask(agent, QUESTION)  # noqa: E731
    if stream:
        given, config = {"messages": [("user", QUESTION)]}, {"configurable": {"thread_id": "t1"}}
        run = lambda: [*agent.stream(given, config, context={"user_id": "ada"}, stream_mode="messages")]  # noqa: E731
    with pytest.raises(TimeoutError, match="busy"):
        run()
    assert calls == [1]
    assert not middleware.faults
    assert memory.learning.status(scope=ADA).outcomes == 0
