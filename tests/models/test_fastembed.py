from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from wellworn.core.errors import EmbeddingFailed, MissingExtra
from wellworn.models import CachedEmbedder, FastembedEmbedder, choose_embedder
from wellworn.models.port import Matrix


class TextEmbedding:
    """As much of fastembed's as is used."""

    def __init__(self, model: str, **options: Any) -> None:
        if model != "BAAI/bge-small-en-v1.5":
            raise ValueError(f"Model {model} is not supported")

    def passage_embed(self, texts: list[str], batch_size: int) -> Iterator[Matrix]:
        yield from (np.array([len(text), 1.0], dtype=np.float32) for text in texts)

    def query_embed(self, texts: list[str]) -> Iterator[Matrix]:
        return self.passage_embed([f"query: {text}" for text in texts], batch_size=1)


@pytest.fixture
def fastembed(monkeypatch: pytest.MonkeyPatch) -> None:
    package = types.ModuleType("fastembed")
    monkeypatch.setattr(package, "TextEmbedding", TextEmbedding, raising=False)
    monkeypatch.setitem(sys.modules, "fastembed", package)


@pytest.mark.usefixtures("fastembed")
def test_a_model_is_chosen_by_name_and_gets_its_prompts() -> None:
    embedder = choose_embedder("fastembed:BAAI/bge-small-en-v1.5")
    assert isinstance(embedder, CachedEmbedder)
    assert (embedder.name, embedder.width) == ("fastembed:BAAI/bge-small-en-v1.5", 2)
    np.testing.assert_allclose(embedder.embed(["a"]), [[2**-0.5, 2**-0.5]], atol=1e-6)
    assert embedder.embed_query("a")[0] > embedder.embed(["a"])[0, 0]


@pytest.mark.usefixtures("fastembed")
def test_a_model_that_cannot_be_loaded_is_an_error_of_ours() -> None:
    with pytest.raises(EmbeddingFailed, match="cannot load 'unknown'"):
        FastembedEmbedder("unknown")


def test_without_the_package_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastembed", None)
    with pytest.raises(MissingExtra, match=r"pip install 'wellworn\[fastembed\]'"):
        choose_embedder("fastembed:BAAI/bge-small-en-v1.5")
