"""From what a user writes to an embedder or a language model.

Knows every provider by name and imports no third-party package: each provider does so itself, when it is chosen.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from wellworn.core.errors import InvalidInput
from wellworn.models.anthropic import AnthropicModel
from wellworn.models.base import (
    CheckedEmbedder,
    CheckedModel,
    EmbedderBase,
    EmbedFunction,
    FunctionEmbedder,
    FunctionModel,
    ModelBase,
    ModelFunction,
)
from wellworn.models.cache import CachedEmbedder
from wellworn.models.cache_levels import TTL_S, DiskVectors, RedisVectors, VectorLevel
from wellworn.models.hashing import HashEmbedder
from wellworn.models.langchain import LangChainChat, LangChainEmbedder, LangChainEmbeddings, LangChainModel
from wellworn.models.ledger import Meter
from wellworn.models.openai import OllamaModel, OpenAIEmbedder, OpenAIModel
from wellworn.models.port import Embedder, Model
from wellworn.models.scripted import ScriptedModel
from wellworn.models.sentence_transformers import SentenceTransformersEmbedder
from wellworn.models.static import StaticEmbedder

EmbedderSpec: TypeAlias = str | Embedder | LangChainEmbeddings | EmbedFunction | None
ModelSpec: TypeAlias = str | Model | LangChainChat | ModelFunction | None

EMBEDDERS = ("static", "hash", "hash:WIDTH", "openai:MODEL", "sentence-transformers:MODEL", "none")
MODELS = ("rules", "openai:MODEL", "openai:MODEL@ADDRESS", "ollama:MODEL", "anthropic:MODEL", "scripted:FILE")

_EMBEDDER_REMEDY = f"use one of {', '.join(EMBEDDERS)}, an Embedder, a LangChain Embeddings or a callable"
_MODEL_REMEDY = f"use one of {', '.join(MODELS)}, a Model, a LangChain chat model or a callable"
_AT_ADDRESS = re.compile(r"(?P<model>.+?)@(?P<url>https?://.*)")


def choose_embedder(spec: EmbedderSpec) -> Embedder | None:
    """The embedder for a name, an object or a callable; None for None and `none` (words only).

    An `Embedder` of this package is taken as it is, another one with its answers checked. Anything else that may be
    slow gets a cache; `static` and `hash` do not: they take tens of microseconds, so a cache would save little and be
    one more place for a forget to reach.
    """
    if spec is None or spec == "none":
        return None
    if isinstance(spec, str):
        return _named_embedder(spec)
    _refuse_class("embedder", spec)
    if _has(spec, "name", "width", "embed", "embed_query"):
        ours = isinstance(spec, StaticEmbedder | HashEmbedder | CachedEmbedder | EmbedderBase)
        return spec if ours else CheckedEmbedder(spec)  # type: ignore[return-value,arg-type]  # just checked
    if _has(spec, "embed_documents", "embed_query"):
        return CachedEmbedder(LangChainEmbedder(spec))  # type: ignore[arg-type]  # just checked
    if _has(spec, "encode", "similarity"):  # a SentenceTransformer is callable, but does not take texts when called
        remedy = "wrap it: SentenceTransformersEmbedder(model, name='…')"
        raise InvalidInput("embedder", f"a loaded {type(spec).__qualname__} does not know its name", remedy)
    if callable(spec):
        return CachedEmbedder(FunctionEmbedder(spec))
    raise InvalidInput("embedder", f"{type(spec).__qualname__} is none", _EMBEDDER_REMEDY)


def cached_embedder(
    spec: EmbedderSpec,
    *,
    disk: str | Path | None = None,
    redis: Any = None,
    ttl_s: int = TTL_S,
    max_entries: int = 10_000,
    max_disk_entries: int = 100_000,
) -> CachedEmbedder:
    """An embedder with a cache of up to three levels: this process, a file `disk`, a `redis` (URL or client).

    For `Memory.open(embedder=…)`. Vectors stay in Redis for `ttl_s` seconds. Close it when its memory is closed.
    """
    inner = choose_embedder(spec)
    if inner is None:
        raise InvalidInput("embedder", "there is none to keep vectors of", _EMBEDDER_REMEDY)
    if isinstance(inner, CachedEmbedder):
        inner = inner.inner
    levels: list[VectorLevel] = []
    if disk is not None:
        levels.append(DiskVectors(disk, max_entries=max_disk_entries))
    if redis is not None:
        levels.append(RedisVectors(redis, ttl_s=ttl_s))
    return CachedEmbedder(inner, max_entries=max_entries, levels=levels)


def choose_model(spec: ModelSpec) -> Model | None:
    """The model for a name, an object or a callable; None for None, `rules` and `none` (no model at all).

    A model of this package is taken as it is, another one with its answers checked.
    """
    if spec is None or spec in ("rules", "none"):
        return None
    if isinstance(spec, str):
        return _named_model(spec)
    _refuse_class("llm", spec)
    if _has(spec, "name", "complete", "acomplete"):
        return spec if isinstance(spec, ModelBase | Meter) else CheckedModel(spec)  # type: ignore[arg-type]
    if _has(spec, "invoke", "ainvoke"):
        return LangChainModel(spec)  # type: ignore[arg-type]  # just checked
    if callable(spec):
        return FunctionModel(spec)
    raise InvalidInput("llm", f"{type(spec).__qualname__} is none", _MODEL_REMEDY)


def _named_embedder(spec: str) -> Embedder:
    provider, _, model = spec.partition(":")
    if spec == "static":
        return StaticEmbedder()
    if spec == "hash":
        return HashEmbedder()
    if provider == "hash" and model.isdecimal() and int(model) > 0:
        return HashEmbedder(int(model))
    if provider == "openai" and model:
        return CachedEmbedder(OpenAIEmbedder(model))
    if provider == "sentence-transformers" and model:
        return CachedEmbedder(SentenceTransformersEmbedder(model))
    raise InvalidInput("embedder", f"unknown embedder {spec!r}", _EMBEDDER_REMEDY)


def _named_model(spec: str) -> Model:
    providers: dict[str, Callable[[str], Model]] = {
        "openai": _openai,
        "ollama": OllamaModel,
        "anthropic": AnthropicModel,
        "scripted": ScriptedModel.from_file,
    }
    provider, _, model = spec.partition(":")
    if provider not in providers or not model.strip():
        without_password = re.sub(r"://[^/@]*@", "://", spec)
        raise InvalidInput("llm", f"unknown model {without_password!r}", _MODEL_REMEDY)
    return providers[provider](model)


def _openai(model: str) -> Model:
    at = _AT_ADDRESS.fullmatch(model)
    return OpenAIModel(at["model"], base_url=at["url"]) if at else OpenAIModel(model)


def _refuse_class(field: str, spec: object) -> None:
    if isinstance(spec, type):
        raise InvalidInput(field, f"{spec.__qualname__} is a class", f"give an instance, {spec.__qualname__}(…)")


def _has(spec: object, *names: str) -> bool:
    # Not isinstance(spec, Embedder): in Python 3.11 that reads properties such as `width`, which may call a provider.
    return all(inspect.getattr_static(spec, name, None) is not None for name in names)
