"""Language models: one small port (`base`), one file per provider, a meter with a budget around any of them.

The names below load on first use, so that importing one part does not bring the others.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recollect.llm.anthropic import AnthropicModel
    from recollect.llm.base import Message, Model, Reply, Request
    from recollect.llm.budget import Budget
    from recollect.llm.choose import ModelSpec, choose_model
    from recollect.llm.function import FunctionModel
    from recollect.llm.langchain import LangChainModel
    from recollect.llm.ledger import InFlight, Meter
    from recollect.llm.local import LocalModel
    from recollect.llm.ollama import OllamaModel
    from recollect.llm.openai import OpenAIModel
    from recollect.llm.prices import Price, Prices
    from recollect.llm.scripted import ScriptedModel
    from recollect.llm.structured import find_json, read_json

_HOME = {
    "AnthropicModel": "anthropic", "Budget": "budget", "FunctionModel": "function", "InFlight": "ledger",
    "LangChainModel": "langchain", "LocalModel": "local", "Message": "base", "Meter": "ledger", "Model": "base",
    "ModelSpec": "choose", "OllamaModel": "ollama", "OpenAIModel": "openai", "Price": "prices", "Prices": "prices",
    "Reply": "base", "Request": "base", "ScriptedModel": "scripted", "choose_model": "choose",
    "find_json": "structured", "read_json": "structured",
}  # fmt: skip

__all__ = [
    "AnthropicModel", "Budget", "FunctionModel", "InFlight", "LangChainModel", "LocalModel", "Message", "Meter",
    "Model", "ModelSpec", "OllamaModel", "OpenAIModel", "Price", "Prices", "Reply", "Request", "ScriptedModel",
    "choose_model", "find_json", "read_json",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value
