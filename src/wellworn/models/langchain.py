"""LangChain's `Embeddings` and chat models as an embedder and a language model.

Needs only their methods, so LangChain itself is never imported here. Temperature and output limit of a chat model are
the object's own: every integration names them differently.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy.typing as npt

from wellworn.models.base import Completion, EmbedderBase, ModelBase
from wellworn.models.port import Request
from wellworn.models.remote import joined

_MODEL_FIELDS = ("model", "model_name", "model_id", "deployment", "deployment_name")


class LangChainEmbeddings(Protocol):
    """The part of `langchain_core.embeddings.Embeddings` that is used."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]: ...

    def embed_query(self, text: str) -> list[float]: ...


class LangChainChat(Protocol):
    """The part of `langchain_core.language_models.BaseChatModel` that is used."""

    def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any: ...

    async def ainvoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any: ...


class LangChainEmbedder(EmbedderBase):
    """Texts go through `embed_documents`, questions through `embed_query`.

    The name is `langchain:CLASS:MODEL`, without the last part where the object does not tell its model.
    """

    def __init__(self, embeddings: LangChainEmbeddings, *, name: str | None = None, width: int | None = None) -> None:
        super().__init__(name or _name_of(embeddings), width)
        self._embeddings = embeddings

    def _ask(self, texts: list[str], *, query: bool) -> npt.ArrayLike:
        if query:
            return [self._embeddings.embed_query(text) for text in texts]
        return self._embeddings.embed_documents(texts)


class LangChainModel(ModelBase):
    """A chat model. Its name is made as for `LangChainEmbedder`."""

    def __init__(self, chat: LangChainChat, *, name: str | None = None) -> None:
        super().__init__(name or _name_of(chat))
        self._chat = chat

    def _ask(self, request: Request) -> Completion:
        return _completion(self._chat.invoke(_messages(request), config=_config(request)))

    async def _aask(self, request: Request) -> Completion:
        return _completion(await self._chat.ainvoke(_messages(request), config=_config(request)))


def _messages(request: Request) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.text} for message in request.messages]


def _config(request: Request) -> dict[str, Any]:
    # The tag keeps our calls out of the stream of an agent that they are made in.
    return {"tags": ["nostream"], "run_name": f"wellworn:{request.purpose}"}


def _completion(answer: Any) -> Completion:
    """From an AIMessage, or the string of a plain LLM."""
    if isinstance(answer, str):
        return Completion(text=answer)
    usage = getattr(answer, "usage_metadata", None) or {}
    return Completion(
        text=joined(answer.content), input_tokens=usage.get("input_tokens"), output_tokens=usage.get("output_tokens")
    )


def _name_of(wrapped: object) -> str:
    own = f"langchain:{type(wrapped).__qualname__}"
    models = (getattr(wrapped, field, None) for field in _MODEL_FIELDS)
    model = next((model for model in models if isinstance(model, str) and model), None)
    return f"{own}:{model}" if model else own
