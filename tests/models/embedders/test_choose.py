from __future__ import annotations

import importlib.util
import subprocess
import sys
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding

from wellworn.core.errors import InvalidInput, MissingExtra
from wellworn.models.embedders.cached import CachedEmbedder
from wellworn.models.embedders.choose import CHOICES, choose_embedder
from wellworn.models.embedders.function import FunctionEmbedder
from wellworn.models.embedders.hashing import HashEmbedder
from wellworn.models.embedders.langchain import LangChainEmbedder
from wellworn.models.embedders.openai import OpenAIEmbedder
from wellworn.models.embedders.static import StaticEmbedder


def constant(texts: list[str]) -> list[list[float]]:
    return [[1.0, 0.0] for _ in texts]


def test_fast_embedders_come_without_a_cache() -> None:
    assert isinstance(choose_embedder("static"), StaticEmbedder)
    assert isinstance(choose_embedder("hash"), HashEmbedder)
    wide = choose_embedder("hash:512")
    assert isinstance(wide, HashEmbedder)
    assert wide.width == 512


@pytest.mark.parametrize("spec", [None, "none"])
def test_none_means_words_only(spec: str | None) -> None:
    assert choose_embedder(spec) is None


def test_an_embedder_is_taken_as_it_is() -> None:
    embedder = HashEmbedder(8)
    assert choose_embedder(embedder) is embedder


def test_choosing_does_not_ask_a_provider_for_its_width() -> None:
    def unwilling(texts: list[str]) -> list[list[float]]:
        raise AssertionError("asked")

    embedder = FunctionEmbedder(unwilling)
    assert choose_embedder(embedder) is embedder
    choose_embedder(unwilling)


def test_langchain_embeddings_and_callables_are_wrapped_in_a_cache() -> None:
    langchain = choose_embedder(DeterministicFakeEmbedding(size=4))
    assert isinstance(langchain, CachedEmbedder)
    assert isinstance(langchain.inner, LangChainEmbedder)
    function = choose_embedder(constant)
    assert isinstance(function, CachedEmbedder)
    assert isinstance(function.inner, FunctionEmbedder)
    assert function.name == "function:constant"


def test_openai_is_chosen_by_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    embedder = choose_embedder("openai:text-embedding-3-small")
    assert isinstance(embedder, CachedEmbedder)
    assert isinstance(embedder.inner, OpenAIEmbedder)
    assert (embedder.name, embedder.width) == ("openai:text-embedding-3-small", 1536)


@pytest.mark.skipif(importlib.util.find_spec("sentence_transformers") is not None, reason="the extra is installed")
def test_a_missing_extra_is_said_at_once() -> None:
    with pytest.raises(MissingExtra, match="sentence-transformers"):
        choose_embedder("sentence-transformers:all-MiniLM-L6-v2")


@pytest.mark.parametrize(
    "spec", ["", "Static", "glove", "hash:", "hash:wide", "hash:0", "openai", "openai:", "static:x"]
)
def test_an_unknown_name_is_refused_with_the_choices(spec: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        choose_embedder(spec)
    assert repr(spec) in str(caught.value)
    assert all(choice in str(caught.value) for choice in CHOICES)


def test_a_class_is_refused() -> None:
    with pytest.raises(InvalidInput, match="give an instance"):
        choose_embedder(HashEmbedder)  # type: ignore[arg-type]


def test_a_loaded_sentence_transformer_is_sent_to_its_wrapper() -> None:
    class SentenceTransformer:
        def encode(self, texts: list[str]) -> None: ...

        def similarity(self, a: Any, b: Any) -> None: ...

        def __call__(self, features: Any) -> Any: ...

    with pytest.raises(InvalidInput, match="SentenceTransformersEmbedder"):
        choose_embedder(SentenceTransformer())


def test_anything_else_is_refused() -> None:
    with pytest.raises(InvalidInput, match="int is none"):
        choose_embedder(5)  # type: ignore[arg-type]


def test_importing_imports_no_third_party_package() -> None:
    heavy = "{'httpx', 'langchain_core', 'sentence_transformers', 'wordllama', 'tokenizers', 'safetensors'}"
    code = f"import sys, wellworn.models.embedders.choose; assert not {heavy} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
