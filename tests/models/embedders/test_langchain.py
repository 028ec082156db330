from __future__ import annotations

import numpy as np
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings

from wellworn.models.embedders.langchain import LangChainEmbedder


class Asymmetric(Embeddings):
    model = "two-towers"

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[1.0, 0.0] for _ in texts]

    def embed_query(self, text: str) -> list[float]:
        return [0.0, 1.0]


def test_texts_get_the_models_vectors_at_unit_length() -> None:
    model = DeterministicFakeEmbedding(size=12)
    embedder = LangChainEmbedder(model)
    rows = embedder.embed(["a", "b"])
    expected = np.array(model.embed_documents(["a", "b"]))
    np.testing.assert_allclose(rows, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-6)
    assert embedder.width == 12
    assert embedder.embed([]).shape == (0, 12)


def test_questions_go_through_embed_query() -> None:
    embedder = LangChainEmbedder(Asymmetric())
    np.testing.assert_array_equal(embedder.embed(["a"]), [[1, 0]])
    np.testing.assert_array_equal(embedder.embed_query("a"), [0, 1])


def test_the_name_tells_class_and_model() -> None:
    assert LangChainEmbedder(DeterministicFakeEmbedding(size=2)).name == "langchain:DeterministicFakeEmbedding"
    assert LangChainEmbedder(Asymmetric()).name == "langchain:Asymmetric:two-towers"
    assert LangChainEmbedder(Asymmetric(), name="mine").name == "mine"
