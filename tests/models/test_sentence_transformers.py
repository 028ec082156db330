from __future__ import annotations

import importlib.util
import sys
import types
from typing import Any

import numpy as np
import pytest

from wellworn.core.errors import EmbeddingFailed, InvalidInput, MissingExtra
from wellworn.models.local import SentenceTransformersEmbedder
from wellworn.models.port import Matrix


class FakeModel:
    """As much of a SentenceTransformer (version 3) as is used."""

    def encode(self, texts: list[str], **options: Any) -> Matrix:
        assert options["show_progress_bar"] is False
        return np.array([[len(text), 1.0] for text in texts], dtype=np.float32)


class FakeModelWithPrompts(FakeModel):
    """As of version 5."""

    def encode_document(self, texts: list[str], **options: Any) -> Matrix:
        return self.encode([f"passage: {text}" for text in texts], **options)

    def encode_query(self, texts: list[str], **options: Any) -> Matrix:
        return self.encode([f"query: {text}" for text in texts], **options)


def test_a_loaded_model_is_used_as_it_is() -> None:
    embedder = SentenceTransformersEmbedder(FakeModel(), name="fake")
    assert (embedder.name, embedder.width) == ("sentence-transformers:fake", 2)
    np.testing.assert_allclose(embedder.embed(["a"]), [[2**-0.5, 2**-0.5]], atol=1e-6)
    assert embedder.embed([]).shape == (0, 2)


def test_texts_and_questions_get_the_models_prompts() -> None:
    embedder = SentenceTransformersEmbedder(FakeModelWithPrompts(), name="fake")
    assert embedder.embed_query("a")[0] != embedder.embed(["a"])[0, 0]


def test_a_loaded_model_needs_a_name() -> None:
    with pytest.raises(InvalidInput, match="give one"):
        SentenceTransformersEmbedder(FakeModel())


@pytest.mark.skipif(importlib.util.find_spec("sentence_transformers") is not None, reason="the extra is installed")
def test_without_the_package_the_error_names_the_extra() -> None:
    with pytest.raises(MissingExtra, match=r"pip install 'wellworn\[sentence-transformers\]'"):
        SentenceTransformersEmbedder("all-MiniLM-L6-v2")


def test_a_model_that_cannot_be_loaded_is_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> FakeModel:
        if name == "known":
            return FakeModel()
        raise OSError("no such folder")

    package = types.ModuleType("sentence_transformers")
    monkeypatch.setattr(package, "SentenceTransformer", missing, raising=False)
    monkeypatch.setitem(sys.modules, "sentence_transformers", package)
    assert SentenceTransformersEmbedder("known").name == "sentence-transformers:known"
    with pytest.raises(EmbeddingFailed, match="cannot load 'unknown'"):
        SentenceTransformersEmbedder("unknown")
