"""The public names, for type checkers and for `lazy`, which reads them here."""

from wellworn.models.anthropic import AnthropicModel as AnthropicModel
from wellworn.models.base import FunctionEmbedder as FunctionEmbedder
from wellworn.models.base import FunctionModel as FunctionModel
from wellworn.models.cache import CachedEmbedder as CachedEmbedder
from wellworn.models.choose import FallbackEmbedder as FallbackEmbedder
from wellworn.models.choose import ModelSpec as ModelSpec
from wellworn.models.choose import cached_embedder as cached_embedder
from wellworn.models.choose import choose_embedder as choose_embedder
from wellworn.models.choose import choose_model as choose_model
from wellworn.models.hashing import HashEmbedder as HashEmbedder
from wellworn.models.langchain import LangChainEmbedder as LangChainEmbedder
from wellworn.models.langchain import LangChainModel as LangChainModel
from wellworn.models.ledger import Budget as Budget
from wellworn.models.ledger import InFlight as InFlight
from wellworn.models.ledger import Meter as Meter
from wellworn.models.ledger import Price as Price
from wellworn.models.ledger import Prices as Prices
from wellworn.models.local import FastembedEmbedder as FastembedEmbedder
from wellworn.models.local import OnnxEmbedder as OnnxEmbedder
from wellworn.models.local import SentenceTransformersEmbedder as SentenceTransformersEmbedder
from wellworn.models.openai import OllamaModel as OllamaModel
from wellworn.models.openai import OpenAIEmbedder as OpenAIEmbedder
from wellworn.models.openai import OpenAIModel as OpenAIModel
from wellworn.models.port import Embedder as Embedder
from wellworn.models.port import Message as Message
from wellworn.models.port import Model as Model
from wellworn.models.port import Reply as Reply
from wellworn.models.port import Request as Request
from wellworn.models.scripted import ScriptedModel as ScriptedModel
from wellworn.models.static import StaticEmbedder as StaticEmbedder
from wellworn.models.structured import find_json as find_json
from wellworn.models.structured import read_json as read_json

__all__: list[str]
