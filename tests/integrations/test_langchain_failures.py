"""The table of failures (F.7), row by row: a part breaks, the agent answers, nothing changes, the reason is noted.

In every case the model is called exactly once.
"""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from langgraph.store.memory import InMemoryStore

from integrations.world import ADA, Parts, Scripted, agent_of, ask, citing, extracting, scripted, shown, turns
from wellworn import Memory
from wellworn.integrations import langchain, langchain_stream
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


def logged(caplog: pytest.LogCaptureFixture, step: str, reason: str) -> None:
    """It was logged, with the kind of error and without what it quotes."""
    said = [record.getMessage() for record in caplog.records if record.name == "wellworn.integrations"]
    assert any(f"failed to {step} ({reason})" in one for one in said), said
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
    logged(caplog, "recall", "RuntimeError")


# -- Reranker computation fails: the first M of the vector store -------------------------------------------------


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
    assert parts.weights() is None  # learning needs the scores too
    assert middleware.faults == {"rerank": 1, "learn": 1}
    logged(caplog, "rerank", "RuntimeError")


# -- Citation parsing fails: no update ---------------------------------------------------------------------------


@pytest.mark.parametrize("answer", ["In Oslo. [5]", "In Oslo. [0,", "In Oslo. (0)"])
def test_the_citation_is_malformed(parts: Parts, caplog: pytest.LogCaptureFixture, answer: str) -> None:
    middleware, model = parts.middleware(), scripted(answer)
    assert ask(agent_of(model, middleware), QUESTION) == answer
    assert len(model.seen) == 1
    assert parts.weights() is None
    assert middleware.faults == {"cite": 1}
    logged(caplog, "cite", "the answer ends without a valid citation")


# -- BaseStore unavailable: weights in memory only ---------------------------------------------------------------


def test_the_base_store_is_cut_off(parts: Parts, caplog: pytest.LogCaptureFixture) -> None:
    middleware, model = parts.middleware(), scripted(citing("Oslo", "In Oslo."))
    agent = agent_of(model, middleware)
    store: Any = parts.store
    store.cut = True
    for n in range(2):
        assert ask(agent, QUESTION, on=f"t{n}") == "In Oslo."
    assert "Oslo" in shown(model.seen[1])[0]
    assert len(model.seen) == 2
    assert set(middleware.faults) == {"weights", "store"}
    logged(caplog, "weights", "ConnectionError")
    store.cut = False
    assert parts.weights() is None
    ask(agent, QUESTION, on="t9")
    assert parts.residual().steps == 3  # what was learned meanwhile is written now


# -- Memory extraction fails: no memory updates ------------------------------------------------------------------


def raising(messages: list[BaseMessage]) -> str:
    raise ConnectionError(SECRET)


@pytest.mark.parametrize("broken", ["model", "embeddings", "vectors", "store"])
def test_a_session_cannot_become_memories(
    broken: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    finds = extracting("The user rides a green bicycle.", "The user rides a green bicycle.")
    parts = Parts(model=scripted(raising, finds.reply) if broken == "model" else finds, store=FailingStore())
    parts.remember("Ada lives in Oslo.")
    middleware, model = parts.middleware(), scripted("Nice!")
    agent = agent_of(model, middleware)
    with monkeypatch.context() as patch:
        if broken == "embeddings":
            patch.setattr(parts.embeddings, "embed_documents", failing)
        if broken == "vectors":
            patch.setattr(parts.vectors, "add_documents", failing)
        if broken == "store":
            patch.setattr(parts.store, "put", failing)
        assert ask(agent, "I ride a green bicycle.", is_session_end=True) == "Nice!"
    assert len(model.seen) == 1
    assert parts.texts() == ["Ada lives in Oslo."]
    step = "store" if broken == "store" else "reflect"
    assert middleware.faults[step] == 1
    logged(caplog, step, "ModelFailed" if broken == "model" else "RuntimeError")
    ask(agent, "Bye.", is_session_end=True)  # the next end reads it: nothing is lost
    assert parts.texts() == ["Ada lives in Oslo.", "The user rides a green bicycle."]


# -- Any hook throws: nothing of it is left ----------------------------------------------------------------------

HOOKS = [
    ("before_agent", "user_of", "start"),
    ("before_model", "question_of", "recall"),
    ("wrap_model_call", "injected", "show"),
    ("wrap_model_call", "can_cite", "show"),
    ("wrap_model_call", "replace", "cite"),
    ("after_model", "with_words", "learn"),
    ("after_agent", "new_messages", "store"),
]


@pytest.mark.parametrize(("hook", "name", "step"), HOOKS, ids=[f"{hook}-{name}" for hook, name, _ in HOOKS])
def test_a_hook_throws(
    memory: Memory, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, hook: str, name: str, step: str
) -> None:
    memory.remember("Ada lives in Oslo.", scope=ADA)
    monkeypatch.setattr(langchain if hasattr(langchain, name) else langchain_stream, name, failing)
    middleware, model = RMMMiddleware(memory), scripted("Hello.")
    assert ask(agent_of(model, middleware), QUESTION) == "Hello."
    assert len(model.seen) == 1
    assert middleware.faults[step] >= 1
    logged(caplog, step, "RuntimeError")
    assert memory.learning.status(scope=ADA).outcomes == 0


def test_a_run_without_a_user_is_as_without_the_middleware(memory: Memory, caplog: pytest.LogCaptureFixture) -> None:
    middleware, model = RMMMiddleware(memory), scripted("Hello. [0]")
    agent = agent_of(model, middleware, context_schema=None)
    done = agent.invoke({"messages": [("user", "Hi")]}, {"configurable": {"thread_id": "t"}})
    assert done["messages"][-1].text == "Hello. [0]"
    assert [message.content for message in model.seen[0]][1:] == ["Hi"]
    assert middleware.faults == {"start": 1}
    logged(caplog, "start", "InvalidInput")
    assert "context={'user_id': …} or config={'configurable'" in caplog.text


# -- the model's own errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
def test_an_error_of_the_model_surfaces_and_it_is_called_once(memory: Memory, stream: bool) -> None:
    memory.remember("Ada lives in Oslo.", scope=ADA)
    calls: list[int] = []

    def fails(messages: list[BaseMessage]) -> str:
        calls.append(1)
        raise TimeoutError("the model is busy")

    middleware = RMMMiddleware(memory)
    agent = agent_of(Scripted(reply=fails), middleware)
    given: Any = {"messages": [("user", QUESTION)]}
    config, context = {"configurable": {"thread_id": "t1"}}, {"user_id": "ada"}
    run = agent.stream if stream else agent.invoke
    with pytest.raises(TimeoutError, match="busy"):
        list(run(given, config, context=context))
    assert calls == [1]
    assert not middleware.faults
    assert memory.learning.status(scope=ADA).outcomes == 0


def test_a_turn_that_is_too_long_or_refused_costs_no_other_turn() -> None:
    with Memory(":memory:", background=False, scrubber=lambda text: "" if text == "REFUSED" else text) as memory:
        middleware = RMMMiddleware(memory)
        agent = agent_of(scripted("Noted."), middleware)
        for said in ("I like tea.", "log " * 300_000, "REFUSED", "My dog is Rex."):
            ask(agent, said)
        heard = [text for role, text in turns(memory) if role == "user"]
    assert heard == ["I like tea.", heard[1], "My dog is Rex."]
    assert heard[1].endswith("… (cut)")
    assert middleware.faults["store"] == 1
