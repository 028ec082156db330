"""From what a user writes to an embedder.

Knows every provider by name and imports no third-party package: each provider does so itself, when it is chosen.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from wellworn.core.errors import InvalidInput
from wellworn.models.embedders.base import Embedder
from wellworn.models.embedders.cached import CachedEmbedder
from wellworn.models.embedders.checked import CheckedEmbedder
from wellworn.models.embedders.disk import DiskVectors
from wellworn.models.embedders.function import EmbedFunction, FunctionEmbedder
from wellworn.models.embedders.hashing import HashEmbedder
from wellworn.models.embedders.langchain import LangChainEmbedder, LangChainEmbeddings
from wellworn.models.embedders.levels import Level
from wellworn.models.embedders.openai import OpenAIEmbedder
from wellworn.models.embedders.provider import Provider
from wellworn.models.embedders.redis import TTL_S, RedisVectors
from wellworn.models.embedders.sentence_transformers import SentenceTransformersEmbedder
from wellworn.models.embedders.static import StaticEmbedder

EmbedderSpec: TypeAlias = str | Embedder | LangChainEmbeddings | EmbedFunction | None

CHOICES = ("static", "hash", "hash:WIDTH", "openai:MODEL", "sentence-transformers:MODEL", "none")

_REMEDY = f"use one of {', '.join(CHOICES)}, an Embedder, a LangChain Embeddings or a callable"


def choose_embedder(spec: EmbedderSpec) -> Embedder | None:
    """The embedder for a name, an object or a callable; None for None and `none` (words only).

    An `Embedder` of this package is taken as it is, another one with its answers checked. Anything else that may be
    slow gets a cache; `static` and `hash` do not: they take tens of microseconds, so a cache would save little and be
    one more place for a forget to reach.
    """
    if spec is None:
        return None
    if isinstance(spec, str):
        return _named(spec)
    if isinstance(spec, type):
        raise InvalidInput("embedder", f"{spec.__qualname__} is a class", f"give an instance, {spec.__qualname__}(…)")
    if _has(spec, "name", "width", "embed", "embed_query"):
        return spec if isinstance(spec, _OURS) else CheckedEmbedder(spec)  # type: ignore[arg-type]  # just checked
    if _has(spec, "embed_documents", "embed_query"):
        return CachedEmbedder(LangChainEmbedder(spec))  # type: ignore[arg-type]  # just checked
    if _has(spec, "encode", "similarity"):  # a SentenceTransformer is callable, but does not take texts when called
        remedy = "wrap it: SentenceTransformersEmbedder(model, name='…')"
        raise InvalidInput("embedder", f"a loaded {type(spec).__qualname__} does not know its name", remedy)
    if callable(spec):
        return CachedEmbedder(FunctionEmbedder(spec))
    raise InvalidInput("embedder", f"{type(spec).__qualname__} is none", _REMEDY)


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
        raise InvalidInput("embedder", "there is none to keep vectors of", _REMEDY)
    if isinstance(inner, CachedEmbedder):
        inner = inner.inner
    levels: list[Level] = []
    if disk is not None:
        levels.append(DiskVectors(disk, max_entries=max_disk_entries))
    if redis is not None:
        levels.append(RedisVectors(redis, ttl_s=ttl_s))
    return CachedEmbedder(inner, max_entries=max_entries, levels=levels)


def _named(spec: str) -> Embedder | None:
    provider, _, model = spec.partition(":")
    if spec == "none":
        return None
    if spec == "static":
        return StaticEmbedder()
    if spec == "hash":
        return HashEmbedder()
    if provider == "hash" and model.isdecimal() and int(model) > 0:
        return HashEmbedder(int(model))
    make = _REMOTE.get(provider)
    if make is None or not model:
        raise InvalidInput("embedder", f"unknown embedder {spec!r}", _REMEDY)
    return CachedEmbedder(make(model))


_OURS = (StaticEmbedder, HashEmbedder, CachedEmbedder, Provider)

# Any: each constructor has further keywords of its own.
_REMOTE: dict[str, Callable[[str], Any]] = {
    "openai": OpenAIEmbedder,
    "sentence-transformers": SentenceTransformersEmbedder,
}


def _has(spec: object, *names: str) -> bool:
    # Not isinstance(spec, Embedder): in Python 3.11 that reads the `width` property, which may call a provider.
    return all(inspect.getattr_static(spec, name, None) is not None for name in names)
