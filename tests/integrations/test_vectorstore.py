"""`WellwornVectorStore`: LangChain's own suite, then rankings, filters, scopes, retrievers, bad input."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import VectorStore
from langchain_tests.integration_tests import VectorStoreIntegrationTests

from wellworn import EmbedderMismatch, InvalidInput, Memory, Scope
from wellworn.core.values import Partition
from wellworn.integrations.items import encoded, item_id
from wellworn.integrations.langgraph_store import WellwornStore
from wellworn.integrations.vectorstore import WellwornVectorStore

ADA = Scope(tenant="acme", user="ada", team="boats")
TEXTS = [
    "Ada prefers tokio over async-std.",
    "The harbour freezes in January.",
    "Her bicycle is a green Brompton.",
    "Oolong tea at four o'clock.",
    "A red Brompton stands in the hall.",
    "Rain in Oslo again.",
]


class TestStandard(VectorStoreIntegrationTests):
    """LangChain's own suite for vector stores."""

    @pytest.fixture
    def vectorstore(self) -> VectorStore:
        return WellwornVectorStore(embedding=self.get_embeddings())


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory(":memory:") as memory:
        yield memory


@pytest.fixture
def store(memory: Memory) -> WellwornVectorStore:
    made = WellwornVectorStore(memory, scope=ADA)
    made.add_texts(TEXTS, [{"n": n, "odd": bool(n % 2)} for n in range(6)], ids=[str(n) for n in range(6)])
    return made


def ids(documents: list[Document]) -> list[str]:
    return [document.id or "" for document in documents]


# -- ranking -----------------------------------------------------------------------------------------------------


def test_the_hybrid_ranking_finds_words_that_vectors_blur(store: WellwornVectorStore) -> None:
    assert ids(store.similarity_search("tokio", k=1)) == ["0"]
    (best, score), (_, second) = store.similarity_search_with_score("which Brompton is green?", k=2)
    assert (best.id, best.page_content, best.metadata) == ("2", TEXTS[2], {"n": 2, "odd": False})
    assert score > second


async def test_a_retriever_passes_its_keywords_on(store: WellwornVectorStore) -> None:
    retriever = store.as_retriever(search_kwargs={"k": 2, "filter": {"odd": True}})
    assert len(retriever.invoke("tea")) == 2
    assert set(ids(await retriever.ainvoke("tea"))) <= {"1", "3", "5"}


def test_filters_hold(store: WellwornVectorStore) -> None:
    for filter, expected in (
        ({"n": {"$gte": 4}}, {"4", "5"}),
        ({"n": {"$lt": 3}, "odd": False}, {"0", "2"}),
        ({"no": 1}, set()),
    ):
        assert set(ids(store.similarity_search("tea", k=6, filter=filter))) == expected


# -- documents ---------------------------------------------------------------------------------------------------


def test_documents_with_equal_texts_are_kept_apart_and_blank_ones_are_kept(memory: Memory) -> None:
    store = WellwornVectorStore(memory)
    made = store.add_documents([Document("tea", metadata={"n": 1}), Document("tea"), Document("", id="blank")])
    assert len(set(made)) == 3
    assert len(store.similarity_search("tea", k=9)) == 2
    assert [d.page_content for d in store.get_by_ids(made)] == ["tea", "tea", ""]
    assert memory.verify().ok


def test_deleting_all_leaves_what_was_remembered(store: WellwornVectorStore, memory: Memory) -> None:
    (told,) = memory.remember("Ada sails on Sundays.", scope=ADA)
    assert store.delete([told, "nobody"])
    assert store.delete()
    assert ids(store.similarity_search("Ada", k=9)) == [told]


def test_what_was_remembered_is_found_beside_the_documents(store: WellwornVectorStore, memory: Memory) -> None:
    (own,) = memory.remember("Ada sails a yawl.", scope=ADA, kind="fact", tags=["sea"], metadata={"page": 3})
    (shared,) = memory.remember("The team meets at the yawl.", scope=ADA, layer="team")
    (hidden,) = memory.remember("Ben hates the yawl.", scope=Scope(tenant="acme", user="ben"))
    found = {document.id: document for document in store.similarity_search("yawl", k=2)}
    assert set(found) == {own, shared}
    metadata = found[own].metadata
    assert (metadata["kind"], metadata["tags"], metadata["page"]) == ("fact", ["sea"], 3)
    assert set(ids(store.get_by_ids([own, shared, hidden]))) == {own, shared}
    assert memory.recall("tokio", scope=ADA).hits[0].entry.text == TEXTS[0], "and the other way round"


def test_one_store_sees_one_scope(memory: Memory) -> None:
    stores = {name: WellwornVectorStore(memory, scope=Scope(tenant=name, user="u")) for name in ("acme", "rival")}
    for name, store in stores.items():
        store.add_texts([f"the secret of {name}"], ids=["same"])
    for name, store in stores.items():
        assert [d.page_content for d in store.similarity_search("secret", k=9)] == [f"the secret of {name}"]
        assert [d.page_content for d in store.get_by_ids(["same"])] == [f"the secret of {name}"]
    stores["acme"].delete()
    assert len(stores["rival"].get_by_ids(["same"])) == 1


def test_documents_survive_in_a_file(tmp_path: Path) -> None:
    embedding = DeterministicFakeEmbedding(size=6)
    with Memory(tmp_path / "memory.db", embedder=embedding) as memory:
        WellwornVectorStore.from_texts(["tea"], embedding, [{"n": 1}], ids=["1"], memory=memory, scope=ADA)
    with Memory(tmp_path / "memory.db", embedder=embedding) as memory:
        (document,) = WellwornVectorStore(memory, scope=ADA).similarity_search("tea")
        assert (document.id, document.metadata) == ("1", {"n": 1})


# -- bad input ---------------------------------------------------------------------------------------------------


def test_another_embedding_than_the_memorys_is_refused(memory: Memory) -> None:
    with pytest.raises(EmbedderMismatch, match="width 5"):
        WellwornVectorStore(memory, embedding=DeterministicFakeEmbedding(size=5))
    with Memory(":memory:", embedder=None) as words:
        with pytest.raises(InvalidInput, match="words only"):
            WellwornVectorStore(words, embedding=DeterministicFakeEmbedding(size=5))
        store = WellwornVectorStore(words)
        store.add_texts(TEXTS)
        assert store.similarity_search("Oslo", k=1)[0].page_content == TEXTS[5]


def test_bad_arguments_are_one_clear_error(memory: Memory, store: WellwornVectorStore) -> None:
    for bad, problem in (
        (lambda: store.similarity_search("tea", flter={"n": 1}), "flter"),
        (lambda: store.similarity_search("tea", k=-1), "k"),
        (lambda: store.similarity_search("tea", filter={"n": {"$near": 1}}), "near"),
        (lambda: store.similarity_search("tea", filter=3), "filter"),  # type: ignore[arg-type]
        (lambda: store.add_texts(["a", "b"], ids=["1"]), "ids"),
        (lambda: store.add_texts(["a"], [{}, {}]), "metadatas"),
        (lambda: store.add_texts(["a", "b"], [{}, None]), "metadatas"),  # type: ignore[list-item]  # tested here
        (lambda: store.add_texts(["a"], [{"x": b""}]), "bytes"),
        (lambda: WellwornVectorStore(memory, scope="ada"), "scope"),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidInput, match=problem):
            bad()
    assert store.similarity_search("tea", k=0) == []
    assert store.similarity_search("  ", k=9) == []


def test_an_item_of_a_langgraph_store_that_looks_like_a_document_is_no_harm(memory: Memory) -> None:
    store = WellwornStore(memory, tenant="acme")
    store.put(("docs",), "k", {"page_content": "Tea at four."})
    (found,) = WellwornVectorStore(memory, scope=store.scope(("docs",))).similarity_search("tea")
    assert "Tea at four." in found.page_content


# -- JSON values of items: stored exactly, or refused ------------------------------------------------------------------

texts = st.text() | st.sampled_from(["\x00", "\ud800", "a\udfff🌧", '\u2028"\\'])
plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
values = st.dictionaries(
    texts, st.recursive(plain, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=8)
)


@given(value=values)
def test_a_value_reads_back_type_for_type(value: dict[str, Any]) -> None:
    text = encoded(value)
    text.encode()
    assert "\x00" not in text
    assert json.dumps(json.loads(text)) == json.dumps(value)  # 1, 1.0 and True differ, and the order of keys stays


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"x": [float("-inf")]}, "not plain JSON"),
        ({"x": datetime(2024, 5, 1, tzinfo=UTC)}, "datetime"),
        ({1: "x"}, "the key 1"),
        ({"x": "a" * 1_000_000}, "1,000,000"),
        ([("x", 1)], "dict, not list"),
        ({"x": 10**5000}, "not plain JSON"),
    ],
)
def test_a_value_that_json_would_change_is_refused(value: Any, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        encoded(value)
    ring: dict[str, Any] = {"value": value}
    ring["ring"] = ring
    with pytest.raises(InvalidInput, match="value"):
        encoded(ring)


def test_ids_never_change() -> None:
    """They are stored: an item written by an older release must be found."""
    place = Partition(tenant="acme", layer="agent", layer_id="langgraph:users.ada")
    assert item_id(place, "k") == "56c7e9dc-19b1-52a0-8c77-bf9123bc4dfd"
