"""The middleware on a user's own vector store, embeddings, store and chat model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.vectorstores import InMemoryVectorStore
from langgraph.store.sqlite import SqliteStore

from integrations.world import (
    Parts,
    SafeVectors,
    Scripted,
    Words,
    agent_of,
    ask,
    citing,
    extracting,
    scripted,
    shown,
    thread,
)
from wellworn import InvalidInput, Memory, Scope, StoreError
from wellworn.integrations.langchain import RerankerConfig
from wellworn.integrations.langgraph_store import WellwornStore
from wellworn.integrations.rmm_parts import label_of

PLACES = ["Ada lives in Oslo.", "Ada works in Bergen.", "Ada was born in Bonn.", "Ada studied in Lund."]
BROMPTON = "The user rides a green Brompton bicycle."


def finding(summary: str) -> str:
    """What a model answers that extracts one memory, resting on the first turn."""
    return f'{{"extracted_memories": [{{"summary": "{summary}", "reference": [0]}}]}}'


def test_a_session_becomes_memories_that_the_next_one_recalls_cites_and_learns_from() -> None:
    parts = Parts(model=extracting(BROMPTON))
    middleware = parts.middleware()
    model = scripted("Nice!", citing("Brompton", "A green Brompton."))
    agent = agent_of(model, middleware)
    ask(agent, "I ride a green Brompton bicycle.", is_session_end=True)
    (entry,) = parts.records()
    assert entry.text == BROMPTON
    assert entry.evidence == "user: I ride a green Brompton bicycle."
    assert (entry.session_id, entry.turn_refs) == ("t1", [0])
    assert ask(agent, "Which bicycle do I ride?", on="t2") == "A green Brompton."
    assert shown(model.seen[1])[0].endswith(BROMPTON)
    assert parts.residual().steps == 1
    assert not middleware.faults


async def test_reflection_is_in_no_stream_and_works_from_an_event_loop() -> None:
    parts = Parts(model=extracting(BROMPTON))
    agent = agent_of(scripted("Nice!"), parts.middleware())
    given, context = (
        {"messages": [HumanMessage("I ride a green Brompton.")]},
        {"user_id": "ada", "is_session_end": True},
    )
    events = [one async for one in agent.astream_events(given, thread("t1"), context=context, version="v2")]
    assert len([one for one in events if one["event"] == "on_chat_model_start"]) == 1
    assert len(parts.model.answered) == 1
    assert parts.texts() == [BROMPTON]


def test_what_is_said_again_is_merged_not_added() -> None:
    merged = "The user rides a green Brompton bicycle to work."
    replies = (finding("The user rides a Brompton bicycle."), finding(merged), f'0: Merge(0, "{merged}")')
    parts = Parts(model=scripted(*replies))
    middleware = parts.middleware()
    agent = agent_of(scripted("Nice! [NO_CITE]"), middleware)
    ask(agent, "I ride a Brompton bicycle.", is_session_end=True)
    ask(agent, "I ride a green Brompton bicycle to work.", on="t2", is_session_end=True)
    assert parts.texts() == [merged]
    assert not middleware.faults


@pytest.mark.parametrize(("answer", "source"), [(finding(BROMPTON), "reflection by model"), ("rubbish", "reflection")])
def test_what_rules_read_in_place_of_the_model_says_so(answer: str, source: str) -> None:
    parts = Parts(model=scripted(answer))
    ask(agent_of(scripted("Nice!"), parts.middleware()), "I ride a green Brompton bicycle.", is_session_end=True)
    assert {entry.source for entry in parts.records()} == {source}


def test_of_the_k_nearest_m_are_shown() -> None:
    parts = Parts(config={"temperature": 0.001, "top_k": 3, "top_m": 2})
    parts.remember(*PLACES)
    model = scripted("Yes. [0]")
    agent = agent_of(model, parts.middleware())
    ask(agent, "Ada in Oslo?")
    assert len(shown(model.seen[0])) == 2
    assert "Oslo" in shown(model.seen[0])[0]
    assert len(agent.get_state(thread("t1")).values["rmm_turn"]["ids"]) == 3


def test_memories_are_drawn_by_their_scores_and_a_seed_repeats_the_draw() -> None:
    def drawn(**config: Any) -> list[str]:
        parts = Parts(config={"top_k": 4, "top_m": 1, "seed": 1, **config})
        parts.remember(*PLACES)
        model = scripted("Yes. [NO_CITE]")
        agent = agent_of(model, parts.middleware())
        for n in range(8):
            ask(agent, "Ada lives in Oslo?", on=f"t{n}")
        return [shown(prompt)[0] for prompt in model.seen]

    assert drawn(scale=1.0) == drawn(scale=1.0)
    assert len(set(drawn(scale=1.0))) > 1  # with the paper's scale chance decides much
    assert {line[-5:] for line in drawn(temperature=0.01)} == {"Oslo."}


def test_a_batch_is_applied_when_full_or_when_the_session_ends() -> None:
    parts = Parts(config={"temperature": 0.001, "top_m": 2})
    parts.remember(*PLACES)
    agent = agent_of(scripted(citing("Oslo")), parts.middleware())
    steps: list[tuple[int, int]] = []
    for n in range(5):
        ask(agent, "Where in Oslo?", on=f"t{n}")
        steps.append((len(parts.residual().open), len(parts.residual().query.left)))
    assert steps == [(1, 0), (2, 0), (3, 0), (0, 4), (1, 4)]
    ask(agent, "Where in Oslo?", on="t9", is_session_end=True)  # the sixth
    assert (len(parts.residual().open), len(parts.residual().query.left)) == (0, 6)


def test_citations_raise_the_score_of_what_helps_and_a_new_middleware_continues() -> None:
    """Two kinds of notes are equally near to every question; one kind always helps. Scores are compared, not draws."""
    parts = Parts(config={"top_k": 6, "top_m": 4, "seed": 3})
    fruits = ("plums", "pears", "figs")
    parts.remember(*(f"{kind} note about {fruit} today" for fruit in fruits for kind in ("rumour", "proof")))

    def margin() -> float:
        """How far the helpful notes score above the others, over all questions."""
        vectors = {
            kind: np.stack([unit(parts.embeddings.embed_query(f"{kind} about {fruit} today")) for fruit in fruits])
            for kind in ("what", "proof note", "rumour note")
        }
        gaps = [
            parts.residual().scores(query, vectors["proof note"])
            - parts.residual().scores(query, vectors["rumour note"])
            for query in vectors["what"]
        ]
        return float(np.sum(gaps))

    def learned(turns: int) -> float:
        agent = agent_of(scripted(citing("proof")), parts.middleware(), checkpointer=None)
        for n in range(turns):
            given = {"messages": [HumanMessage(f"what about {fruits[n % 3]} today")]}
            agent.invoke(given, context={"user_id": "ada", "session_id": "s"})
        return margin()

    untrained, early, late = learned(1), learned(15), learned(16)  # the first waits for its batch
    assert untrained < early < late
    assert late > 0
    assert parts.residual().steps == 32


def unit(vector: list[float]) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.asarray(vector, dtype=np.float64) / float(np.linalg.norm(vector))


def test_a_search_can_be_narrowed_to_one_user() -> None:
    def narrowed(label: str) -> dict[str, Any]:
        labels.append(label)
        return {"filter": lambda document: document.metadata["rmm_user"] == label}

    labels: list[str] = []
    parts, model = Parts(), scripted("Yes. [0]")
    parts.remember(*(f"Ada lives in Oslo, number {n}." for n in range(100)))
    parts.remember("Ben has a cat in Bonn.", user="b.e/n")
    for settings in ({}, {"search_kwargs": narrowed}):  # nor is someone with few memories starved without it
        ask(agent_of(model, parts.middleware(**settings)), "Who lives where?", user="b.e/n")
        assert [line[-5:] for line in shown(model.seen[-1])] == ["Bonn."]
    assert labels == ["b%2Ee%2Fn"]


class WordsOnly(InMemoryVectorStore):
    """A vector store that can only be asked in words, and not by id."""

    def similarity_search_by_vector(self, *args: Any, **kwargs: Any) -> list[Document]:
        raise NotImplementedError

    def get_by_ids(self, *args: Any, **kwargs: Any) -> list[Document]:
        raise NotImplementedError


def test_a_vector_store_that_can_do_little_is_enough() -> None:
    parts = Parts(model=extracting(BROMPTON))
    middleware = parts.middleware(vector_store=WordsOnly(parts.embeddings))
    model = scripted(citing("Brompton"))
    agent = agent_of(model, middleware)
    ask(agent, "I ride a green Brompton bicycle.", is_session_end=True)
    ask(agent, "Which bicycle?", on="t2")
    assert shown(model.seen[1])[0].endswith(BROMPTON)
    assert parts.residual().steps == 1
    assert not middleware.faults


@pytest.mark.parametrize("kind", ["sqlite", "wellworn"])
def test_any_base_store_holds_what_was_learned(kind: str, tmp_path: Path) -> None:
    def round_trip(store: Any) -> None:
        user = "ädä@example.com/1"
        parts = Parts(store=store, model=extracting(BROMPTON))
        agent = agent_of(scripted("Nice!", citing("Brompton")), parts.middleware())
        ask(agent, "I ride a green Brompton bicycle.", user=user, is_session_end=True)
        ask(agent, "Which bicycle do I ride?", user=user, on="t2")
        assert parts.texts(user) == [BROMPTON]
        assert parts.residual(user).steps == 1

    if kind == "sqlite":
        with SqliteStore.from_conn_string(str(tmp_path / "store.db")) as store:
            store.setup()
            round_trip(store)
    else:
        with Memory(":memory:", background=False) as memory:
            round_trip(WellwornStore(memory, tenant="acme"))


def test_labels_take_any_id_and_no_two_are_alike() -> None:
    ids = ["a.b", "a%2Eb", "a/b", "a b", "ä", "a:b", "~x", "x" * 250, "x" * 249 + "y", ".", "b"]
    users = [Scope(tenant=tenant, user=user) for user in ids for tenant in ("default", "a")]
    labels = [label_of(user) for user in users]
    assert len(set(labels)) == len(users)
    assert all("." not in label and 0 < len(label) < 100 for label in labels)


def test_another_width_than_the_vector_store_has_is_an_error_at_construction() -> None:
    with pytest.raises(InvalidInput, match=r"width 64, those of the vector store 32.*give the embeddings"):
        Parts().middleware(vector_store=InMemoryVectorStore(Words(32)))
    for name in ("vector_store", "embeddings", "store", "summarization_model", "reranker_config"):
        with pytest.raises(InvalidInput, match=name):
            Parts().middleware(**{name: "nothing"})


@pytest.mark.parametrize(
    ("config", "match"),
    [
        ({"top_k": 3, "top_m": 5}, "more than top_k"),
        ({"top_k": 0}, "^top_k"),
        ({"temperature": 0}, "temperature"),
        ({"learning_rate": float("nan")}, "learning_rate"),
    ],
)
def test_settings_of_the_reranker_are_checked(config: dict[str, Any], match: str) -> None:
    with pytest.raises(InvalidInput, match=match):
        RerankerConfig(**config)


def test_the_defaults_are_the_papers() -> None:
    config = RerankerConfig()
    assert (config.top_k, config.top_m, config.temperature, config.learning_rate) == (20, 5, 0.5, 1e-3)


@pytest.mark.parametrize("some", [False, True])
def test_what_is_forgotten_while_a_session_is_read_stays_forgotten(some: bool) -> None:
    parts = Parts(model=Scripted(reply=lambda messages: forgetting(messages)))
    middleware = parts.middleware()
    parts.remember("The user rides a Brompton.")
    ids = [entry.id for entry in middleware.entries("ada")]

    def forgetting(messages: Sequence[BaseMessage]) -> str:
        """Merges both memories, of which the older is forgotten meanwhile."""
        if "existing_memories" not in str(messages[-1].content):
            return finding(BROMPTON)
        middleware.forget("ada", ids if some else None)
        return "0: Merge(0, The user rides a Brompton, which is green.)"

    ask(agent_of(scripted("Nice! [NO_CITE]"), middleware), "I ride a green Brompton bicycle.", is_session_end=True)
    texts = [BROMPTON] if some else []
    assert ([entry.text for entry in middleware.entries("ada")], parts.texts(), middleware.faults) == (texts, texts, {})


class Strict(SafeVectors):
    """Refuses to delete what is not there, as FAISS does, and at times to add anything."""

    is_down = False

    def add_documents(self, documents: list[Document], ids: list[str] | None = None, **rest: Any) -> list[str]:
        if self.is_down:
            raise ConnectionError
        return super().add_documents(documents, ids, **rest)

    def delete(self, ids: Sequence[str] | None = None, **rest: Any) -> None:
        if not {*(ids or ())} <= self.store.keys():
            raise ValueError("Some specified ids do not exist.")
        super().delete(ids, **rest)


def test_a_vector_store_may_refuse_to_delete(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = Parts(model=extracting(BROMPTON, BROMPTON))
    parts.vectors = strict = Strict(parts.embeddings)
    middleware, strict.is_down = parts.middleware(), True
    ask(agent_of(scripted("Nice!"), middleware), "I ride a green Brompton bicycle.", is_session_end=True)
    assert (middleware.entries("ada"), middleware.faults) == ([], {"reflect": 1})
    strict.is_down = False
    middleware.end_session("ada", "t1")
    parts.remember("Ada lives in Oslo.")
    strict.delete([middleware.entries("ada")[0].id])
    with monkeypatch.context() as refusing:
        refusing.setattr(strict, "delete", lambda ids: False)
        with pytest.raises(StoreError, match="refused"):
            middleware.forget("ada")
    assert (middleware.forget("ada"), middleware.entries("ada"), parts.texts()) == (2, [], [])
