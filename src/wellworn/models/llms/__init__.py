"""Language models: one small port (`base`), one file per provider, a meter with a budget around any of them.

The names below load on first use, so that importing one part does not bring the others.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wellworn.models.llms.anthropic import AnthropicModel
    from wellworn.models.llms.base import Message, Model, Reply, Request
    from wellworn.models.llms.budget import Budget
    from wellworn.models.llms.choose import ModelSpec, choose_model
    from wellworn.models.llms.function import FunctionModel
    from wellworn.models.llms.langchain import LangChainModel
    from wellworn.models.llms.ledger import InFlight, Meter
    from wellworn.models.llms.local import LocalModel
    from wellworn.models.llms.ollama import OllamaModel
    from wellworn.models.llms.openai import OpenAIModel
    from wellworn.models.llms.prices import Price, Prices
    from wellworn.models.llms.scripted import ScriptedModel
    from wellworn.models.llms.structured import find_json, read_json

_HOME = {
    "AnthropicModel": "anthropic",
    "Budget": "budget",
    "FunctionModel": "function",
    "InFlight": "ledger",
    "LangChainModel": "langchain",
    "LocalModel": "local",
    "Message": "base",
    "Meter": "ledger",
    "Model": "base",
    "ModelSpec": "choose",
    "OllamaModel": "ollama",
    "OpenAIModel": "openai",
    "Price": "prices",
    "Prices": "prices",
    "Reply": "base",
    "Request": "base",
    "ScriptedModel": "scripted",
    "choose_model": "choose",
    "find_json": "structured",
    "read_json": "structured",
}

__all__ = [
    "AnthropicModel",
    "Budget",
    "FunctionModel",
    "InFlight",
    "LangChainModel",
    "LocalModel",
    "Message",
    "Meter",
    "Model",
    "ModelSpec",
    "OllamaModel",
    "OpenAIModel",
    "Price",
    "Prices",
    "Reply",
    "Request",
    "ScriptedModel",
    "choose_model",
    "find_json",
    "read_json",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value
