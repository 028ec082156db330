"""Any LangChain `Embeddings` as an embedder.

Needs only its two methods, so LangChain itself is never imported here: whoever has the object has the package.
"""

from __future__ import annotations

from typing import Protocol

import numpy.typing as npt

from wellworn.models.embedders.provider import Provider

_MODEL_FIELDS = ("model", "model_name", "model_id", "deployment")


class LangChainEmbeddings(Protocol):
    """The part of `langchain_core.embeddings.Embeddings` that is used."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]: ...

    def embed_query(self, text: str) -> list[float]: ...


class LangChainEmbedder(Provider):
    """Texts through `embed_documents`, questions through `embed_query`.

    The name is `langchain:CLASS`, and `langchain:CLASS:MODEL` where the object says which model it is.
    """

    def __init__(self, embeddings: LangChainEmbeddings, *, name: str | None = None, width: int | None = None) -> None:
        super().__init__(name or _name_of(embeddings), width)
        self._embeddings = embeddings

    def _ask(self, texts: list[str], *, query: bool) -> npt.ArrayLike:
        if query:
            return [self._embeddings.embed_query(text) for text in texts]
        return self._embeddings.embed_documents(texts)


def _name_of(embeddings: LangChainEmbeddings) -> str:
    own = f"langchain:{type(embeddings).__qualname__}"
    models = (getattr(embeddings, field, None) for field in _MODEL_FIELDS)
    model = next((model for model in models if isinstance(model, str) and model), None)
    return f"{own}:{model}" if model else own
