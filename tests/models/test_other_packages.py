"""Embedders of other packages, each played by as much of the package as is used."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from wellworn.core.errors import EmbeddingFailed, MissingExtra
from wellworn.models import CachedEmbedder, choose_embedder
from wellworn.models.port import Matrix


class TextEmbedding:
    """Of fastembed."""

    def __init__(self, model: str, **options: Any) -> None:
        if model != "known":
            raise ValueError(f"Model {model} is not supported")

    def passage_embed(self, texts: list[str], batch_size: int) -> Iterator[Matrix]:
        yield from (np.array([len(text), 1.0], dtype=np.float32) for text in texts)

    def query_embed(self, texts: list[str]) -> Iterator[Matrix]:
        return self.passage_embed([f"query: {text}" for text in texts], batch_size=1)


class SentenceTransformer(TextEmbedding):
    """Of sentence-transformers 3; 5 has `encode_query` too."""

    def encode(self, texts: list[str], **options: Any) -> Matrix:
        assert options["show_progress_bar"] is False
        return np.stack([*self.passage_embed(texts, batch_size=1)])

    def encode_query(self, texts: list[str], **options: Any) -> Matrix:
        return self.encode([f"query: {text}" for text in texts], **options)


KINDS = pytest.mark.parametrize(
    ("package", "kind"), [("fastembed", TextEmbedding), ("sentence-transformers", SentenceTransformer)]
)


@KINDS
def test_a_model_is_chosen_by_name_and_gets_its_prompts(
    package: str, kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = types.ModuleType(package)
    monkeypatch.setattr(module, kind.__name__, kind, raising=False)
    monkeypatch.setitem(sys.modules, package.replace("-", "_"), module)
    embedder = choose_embedder(f"{package}:known")
    assert isinstance(embedder, CachedEmbedder)
    assert (embedder.name, embedder.width) == (f"{package}:known", 2)
    np.testing.assert_allclose(embedder.embed(["a"]), [[2**-0.5, 2**-0.5]], atol=1e-6)
    assert embedder.embed_query("a")[0] > embedder.embed(["a"])[0, 0]
    with pytest.raises(EmbeddingFailed, match="cannot load 'unknown'"):
        choose_embedder(f"{package}:unknown")


@KINDS
def test_without_the_package_the_error_names_the_extra(
    package: str, kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package.replace("-", "_"), None)
    with pytest.raises(MissingExtra, match=rf"pip install 'wellworn\[{package}\]'"):
        choose_embedder(f"{package}:known")
