"""LangChain's `Embeddings` and chat models as an embedder and a language model.

Needs only their methods, so LangChain itself is never imported here. Temperature and output limit of a chat model are
the object's own: every integration names them differently.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from wellworn.models.base import Completion, EmbedderBase, ModelBase
from wellworn.models.port import Request
from wellworn.models.remote import joined

_MODEL_FIELDS = ("model", "model_name", "model_id", "deployment", "deployment_name")


class LangChainEmbedder(EmbedderBase):
    """A `langchain_core.embeddings.Embeddings`: texts go through `embed_documents`, questions through `embed_query`.

    The name is `langchain:CLASS:MODEL`, without the last part where the object does not tell its model.
    """

    def __init__(self, embeddings: Any, *, name: str | None = None) -> None:
        super().__init__(name or _name_of(embeddings))
        self._embeddings = embeddings

    def _ask(self, texts: list[str], *, query: bool) -> npt.ArrayLike:
        if query:
            return [self._embeddings.embed_query(text) for text in texts]
        answer: npt.ArrayLike = self._embeddings.embed_documents(texts)
        return answer


class LangChainModel(ModelBase):
    """A `langchain_core.language_models.BaseChatModel`. Its name is made as for `LangChainEmbedder`."""

    def __init__(self, chat: Any, *, name: str | None = None) -> None:
        super().__init__(name or _name_of(chat))
        self._chat = chat

    def _ask(self, request: Request) -> Completion:
        messages = [{"role": message.role, "content": message.text} for message in request.messages]
        # The tag keeps our calls out of the stream of an agent that they are made in.
        config = {"tags": ["nostream"], "run_name": f"wellworn:{request.purpose}"}
        answer = self._chat.invoke(messages, config=config)
        if isinstance(answer, str):  # of a plain LLM
            return Completion(text=answer)
        usage = getattr(answer, "usage_metadata", None) or {}
        read, written = usage.get("input_tokens"), usage.get("output_tokens")
        return Completion(text=joined(answer.content), input_tokens=read, output_tokens=written)


def _name_of(wrapped: object) -> str:
    own = f"langchain:{type(wrapped).__qualname__}"
    models = (getattr(wrapped, field, None) for field in _MODEL_FIELDS)
    model = next((model for model in models if isinstance(model, str) and model), None)
    return f"{own}:{model}" if model else own
