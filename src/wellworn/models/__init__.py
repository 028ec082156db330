"""Embedders and language models: two small ports, one file per provider, a vector cache, and a ledger under a budget."""

from __future__ import annotations

from wellworn.models.anthropic import AnthropicModel
from wellworn.models.base import FunctionEmbedder, FunctionModel
from wellworn.models.cache import CachedEmbedder
from wellworn.models.choose import ModelSpec, cached_embedder, choose_embedder, choose_model
from wellworn.models.costs import Budget, Price, Prices
from wellworn.models.hashing import HashEmbedder
from wellworn.models.langchain import LangChainEmbedder, LangChainModel
from wellworn.models.ledger import InFlight, Meter
from wellworn.models.openai import OllamaModel, OpenAIEmbedder, OpenAIModel
from wellworn.models.port import Embedder, Message, Model, Reply, Request
from wellworn.models.scripted import ScriptedModel
from wellworn.models.sentence_transformers import SentenceTransformersEmbedder
from wellworn.models.static import StaticEmbedder
from wellworn.models.structured import find_json, read_json

__all__ = [
    "AnthropicModel",
    "Budget",
    "CachedEmbedder",
    "Embedder",
    "FunctionEmbedder",
    "FunctionModel",
    "HashEmbedder",
    "InFlight",
    "LangChainEmbedder",
    "LangChainModel",
    "Message",
    "Meter",
    "Model",
    "ModelSpec",
    "OllamaModel",
    "OpenAIEmbedder",
    "OpenAIModel",
    "Price",
    "Prices",
    "Reply",
    "Request",
    "ScriptedModel",
    "SentenceTransformersEmbedder",
    "StaticEmbedder",
    "cached_embedder",
    "choose_embedder",
    "choose_model",
    "find_json",
    "read_json",
]
