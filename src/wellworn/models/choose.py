"""From what a user writes to an embedder or a language model.

Knows every provider by name and imports no third-party package: each provider does so itself, when it is chosen.

Of several embedders in a list one model serves: the one whose vectors the store holds, else the first that answers. Only
members with the same model (at another address, say) take over from each other: vectors of two models never mix.
"""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

from wellworn.core.errors import EmbeddingFailed, InvalidInput, MissingExtra, WellwornError
from wellworn.core.lazy import regex
from wellworn.core.locks import fork_lock
from wellworn.language.reader import Reader, bundled
from wellworn.models.anthropic import AnthropicModel
from wellworn.models.base import CheckedEmbedder, CheckedModel, EmbedderBase, FunctionEmbedder, FunctionModel, ModelBase
from wellworn.models.cache import TTL_S, CachedEmbedder, RedisVectors
from wellworn.models.hashing import HashEmbedder
from wellworn.models.langchain import LangChainEmbedder, LangChainModel
from wellworn.models.ledger import Meter
from wellworn.models.local import FastembedEmbedder, OnnxEmbedder, SentenceTransformersEmbedder, minilm
from wellworn.models.openai import OllamaModel, OpenAIEmbedder, OpenAIModel
from wellworn.models.port import Embedder, Matrix, Model
from wellworn.models.scripted import ScriptedModel
from wellworn.models.static import StaticEmbedder

_log = logging.getLogger("wellworn.models")
T = TypeVar("T")


class FallbackEmbedder:
    """The members of one model are asked in turn until one answers; one that fails is asked last from then on."""

    def __init__(self, members: Sequence[Embedder]) -> None:
        self.members = tuple(members)
        self._lock = fork_lock()
        self._serving: list[Embedder] = []  # those of the chosen model, the next to be asked first

    def choose(self, stored: str | None) -> None:
        """Serve the model of this name if a member has it, else that of the first member that answers."""
        if stored not in [member.name for member in self.members]:
            stored = self._first(self.members, lambda member: (member.embed_query("?"), member.name))[1]
        with self._lock:
            self._serving = [member for member in self.members if member.name == stored]

    @property
    def name(self) -> str:
        return self._chosen()[0].name

    @property
    def width(self) -> int:
        return self._ask(lambda member: member.width)

    def embed(self, texts: Sequence[str]) -> Matrix:
        return self._ask(lambda member: member.embed(texts))

    def embed_query(self, text: str) -> Matrix:
        return self._ask(lambda member: member.embed_query(text))

    def _chosen(self) -> list[Embedder]:
        if not self._serving:
            self.choose(None)
        return self._serving

    def _ask(self, ask: Callable[[Embedder], T]) -> T:
        return self._first(tuple(self._chosen()), ask)

    def _first(self, members: Sequence[Embedder], ask: Callable[[Embedder], T]) -> T:
        """The first answer; the first failure where there is none."""
        failures: list[EmbeddingFailed] = []
        for member in members:
            try:
                return ask(member)
            except EmbeddingFailed as error:
                failures.append(error)
                _log.warning("embedder %s failed; the next one of the list is asked", member.name)
                with self._lock:
                    if member in self._serving:
                        self._serving.remove(member)
                        self._serving.append(member)
        raise failures[0]


# -- by name -----------------------------------------------------------------------------------------------------------

EmbedderSpec: TypeAlias = Any
"""A name, an `Embedder`, a LangChain `Embeddings`, a function, a list of these, or None."""
ModelSpec: TypeAlias = Any
"""A name, a `Model`, a LangChain chat model, a function, or None."""

_LOCAL = (
    "reader",
    "static",
    "minilm",
    "onnx:FOLDER",
    "fastembed:MODEL",
    "sentence-transformers:MODEL",
    "hash",
    "hash:WIDTH",
)
EMBEDDERS = (*_LOCAL, "openai:MODEL", "openai:MODEL@ADDRESS", "none")
MODELS = ("rules", "openai:MODEL", "openai:MODEL@ADDRESS", "ollama:MODEL", "anthropic:MODEL", "scripted:FILE")

_EMBEDDER_NAMES = f"use one of {', '.join(EMBEDDERS)}"
_MODEL_NAMES = f"use one of {', '.join(MODELS)}"
_EMBEDDER_REMEDY = f"{_EMBEDDER_NAMES}, an Embedder, a LangChain Embeddings, a callable, or a list of these"
_MODEL_REMEDY = f"{_MODEL_NAMES}, a Model, a LangChain chat model or a callable"
_AT_ADDRESS = regex(r"(?P<model>.+?)@(?P<base_url>https?://.*)")


def choose_embedder(spec: EmbedderSpec) -> Embedder | None:
    """The embedder for a name, an object or a callable; None for None and `none` (words only).

    An `Embedder` of this package is taken as it is, another one with its answers checked. Anything else that may be
    slow gets a cache; `static` and `hash` do not: they take tens of microseconds, so a cache would save little and be
    one more place for a forget to reach.
    """
    if spec is None or spec == "none":
        return None
    if isinstance(spec, list | tuple):
        return CachedEmbedder(FallbackEmbedder(_members(spec)))
    made = _one_embedder(spec)
    bare = made is spec or isinstance(made, Reader | StaticEmbedder | HashEmbedder | CheckedEmbedder)
    return made if bare else CachedEmbedder(made)


def cached_embedder(spec: EmbedderSpec, *, redis: Any = None, ttl_s: int = TTL_S) -> CachedEmbedder:
    """An embedder with a cache in this process and, behind it, in a `redis` (URL or client) that machines share.

    For `Memory.open(embedder=…)`. Vectors stay in Redis for `ttl_s` seconds.
    """
    inner = choose_embedder(spec)
    if inner is None:
        raise InvalidInput("embedder", "there is none to keep vectors of", _EMBEDDER_REMEDY)
    if isinstance(inner, CachedEmbedder):
        inner = inner.inner
    return CachedEmbedder(inner, shared=None if redis is None else RedisVectors(redis, ttl_s=ttl_s))


def choose_model(spec: ModelSpec) -> Model | None:
    """The model for a name, an object or a callable; None for None, `rules` and `none` (no model at all).

    A model of this package is taken as it is, another one with its answers checked.
    """
    if spec is None or spec in ("rules", "none"):
        return None
    if isinstance(spec, str):
        return _named_model(spec)
    _refuse_class("llm", spec)
    if _has(spec, "name", "complete"):
        return spec if isinstance(spec, ModelBase | Meter) else CheckedModel(spec)
    if _has(spec, "invoke", "ainvoke"):
        return LangChainModel(spec)
    if callable(spec):
        return FunctionModel(spec)
    raise InvalidInput("llm", f"{type(spec).__qualname__} is none", _MODEL_REMEDY)


def _members(specs: Sequence[EmbedderSpec]) -> list[Embedder]:
    """The members that can be made here; an unknown name is an error, a package or a key that is missing is not."""
    members: list[Embedder] = []
    missing: list[WellwornError] = []
    for spec in specs:
        if spec is None or spec == "none":
            raise InvalidInput("embedder", f"{spec!r} stands in a list", "leave it out; None alone means words only")
        try:
            members.append(_one_embedder(spec))
        except (MissingExtra, EmbeddingFailed, InvalidInput) as error:
            if isinstance(error, InvalidInput) and error.field == "embedder":
                raise
            missing.append(error)
    if not members:
        raise missing[0] if missing else InvalidInput("embedder", "the list is empty", _EMBEDDER_REMEDY)
    return members


def _one_embedder(spec: EmbedderSpec) -> Embedder:
    if isinstance(spec, str):
        return _named_embedder(spec)
    _refuse_class("embedder", spec)
    if _has(spec, "name", "width", "embed", "embed_query"):
        ours = isinstance(
            spec, Reader | StaticEmbedder | HashEmbedder | CachedEmbedder | FallbackEmbedder | EmbedderBase
        )
        embedder: Embedder = spec if ours else CheckedEmbedder(spec)
        return embedder
    if _has(spec, "embed_documents", "embed_query"):
        return LangChainEmbedder(spec)
    if _has(spec, "encode", "similarity"):  # a SentenceTransformer is callable, but does not take texts when called
        remedy = "give 'sentence-transformers:MODEL'"
        raise InvalidInput("embedder", f"a loaded {type(spec).__qualname__} does not know its name", remedy)
    if callable(spec):
        return FunctionEmbedder(spec)
    raise InvalidInput("embedder", f"{type(spec).__qualname__} is none", _EMBEDDER_REMEDY)


def _named_embedder(spec: str) -> Embedder:
    named: dict[str, Callable[[], Embedder]] = {
        "reader": bundled,
        "static": StaticEmbedder,
        "minilm": minilm,
        "hash": HashEmbedder,
    }
    providers: dict[str, Callable[[str], Embedder]] = {
        "onnx": OnnxEmbedder,
        "fastembed": FastembedEmbedder,
        "sentence-transformers": SentenceTransformersEmbedder,
        "openai": lambda model: OpenAIEmbedder(**_at_address(model)),
    }
    provider, _, model = spec.partition(":")
    if spec in named:
        return named[spec]()
    if provider == "hash" and model.isdecimal() and int(model) > 0:
        return HashEmbedder(int(model))
    if provider in providers and model.strip():
        return providers[provider](model)
    raise InvalidInput("embedder", f"unknown embedder {_without_password(spec)!r}", _EMBEDDER_NAMES)


def _named_model(spec: str) -> Model:
    providers: dict[str, Callable[[str], Model]] = {
        "openai": lambda model: OpenAIModel(**_at_address(model)),
        "ollama": OllamaModel,
        "anthropic": AnthropicModel,
        "scripted": ScriptedModel.from_file,
    }
    provider, _, model = spec.partition(":")
    if provider not in providers or not model.strip():
        raise InvalidInput("llm", f"unknown model {_without_password(spec)!r}", _MODEL_NAMES)
    return providers[provider](model)


def _at_address(model: str) -> dict[str, Any]:  # keywords of a provider
    at = _AT_ADDRESS.fullmatch(model)
    return at.groupdict() if at else {"model": model}


def _without_password(spec: str) -> str:
    return re.sub(r"://[^/@]*@", "://", spec)


def _refuse_class(field: str, spec: object) -> None:
    if isinstance(spec, type):
        raise InvalidInput(field, f"{spec.__qualname__} is a class", f"give an instance, {spec.__qualname__}(…)")


def _has(spec: object, *names: str) -> bool:
    # Not isinstance(spec, Embedder): in Python 3.11 that reads properties such as `width`, which may call a provider.
    return all(inspect.getattr_static(spec, name, None) is not None for name in names)
