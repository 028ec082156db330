"""From what a user writes to a model.

Knows every provider by name and imports no third-party package: each provider does so itself, when it is chosen.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import TypeAlias

from wellworn.core.errors import InvalidInput
from wellworn.models.llms.anthropic import AnthropicModel
from wellworn.models.llms.base import Model
from wellworn.models.llms.checked import CheckedModel
from wellworn.models.llms.function import FunctionModel, ModelFunction
from wellworn.models.llms.langchain import LangChainChat, LangChainModel
from wellworn.models.llms.ledger import Meter
from wellworn.models.llms.local import LocalModel
from wellworn.models.llms.ollama import OllamaModel
from wellworn.models.llms.openai import OpenAIModel
from wellworn.models.llms.provider import Provider
from wellworn.models.llms.scripted import ScriptedModel

ModelSpec: TypeAlias = str | Model | LangChainChat | ModelFunction | None

CHOICES = (
    "rules",
    "openai:MODEL",
    "openai:MODEL@ADDRESS",
    "ollama:MODEL",
    "anthropic:MODEL",
    "local:FILE_OR_PACKAGE",
    "scripted:FILE",
)

_REMEDY = f"use one of {', '.join(CHOICES)}, a Model, a LangChain chat model or a callable"
_ADDRESS = re.compile(r"(?P<model>.+?)@(?P<url>https?://.*)")


def choose_model(spec: ModelSpec) -> Model | None:
    """The model for a name, an object or a callable; None for None and `rules` (no model at all; `none` says the same).

    A model of this package is taken as it is, another one with its answers checked.
    """
    if spec is None:
        return None
    if isinstance(spec, str):
        return _named(spec)
    if isinstance(spec, type):
        raise InvalidInput("llm", f"{spec.__qualname__} is a class", f"give an instance, {spec.__qualname__}(…)")
    if _has(spec, "name", "complete", "acomplete"):
        return spec if isinstance(spec, _OURS) else CheckedModel(spec)  # type: ignore[arg-type]  # just checked
    if _has(spec, "invoke", "ainvoke"):
        return LangChainModel(spec)  # type: ignore[arg-type]  # just checked
    if callable(spec):
        return FunctionModel(spec)
    raise InvalidInput("llm", f"{type(spec).__qualname__} is none", _REMEDY)


def _named(spec: str) -> Model | None:
    if spec in ("rules", "none"):
        return None
    provider, _, model = spec.partition(":")
    make = _PROVIDERS.get(provider)
    if make is None or not model.strip():
        raise InvalidInput("llm", f"unknown model {_without_secrets(spec)!r}", _REMEDY)
    return make(model)


def _openai(model: str) -> Model:
    at = _ADDRESS.fullmatch(model)
    return OpenAIModel(at["model"], base_url=at["url"]) if at else OpenAIModel(model)


def _without_secrets(spec: str) -> str:
    """An address may carry a password."""
    return re.sub(r"://[^/@]*@", "://", spec)


_OURS = (Provider, Meter)

_PROVIDERS: dict[str, Callable[[str], Model]] = {
    "openai": _openai,
    "ollama": OllamaModel,
    "anthropic": AnthropicModel,
    "local": LocalModel,
    "scripted": ScriptedModel.from_file,
}


def _has(spec: object, *names: str) -> bool:
    # Not isinstance(spec, Model): in Python 3.11 that reads the `name` property, which may do anything.
    return all(inspect.getattr_static(spec, name, None) is not None for name in names)
