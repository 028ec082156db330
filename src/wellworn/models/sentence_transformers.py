"""Sentence-transformers models, by name or already loaded (extra `sentence-transformers`).

A name may make the library download the model; nothing else here touches the network. Knows no other provider.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from wellworn.core.errors import EmbeddingFailed, InvalidInput, MissingExtra
from wellworn.core.locks import ForkLock
from wellworn.models.base import EmbedderBase


class SentenceTransformersEmbedder(EmbedderBase):
    """One model; texts and questions get the model's own prompts where it has them.

    `model` is a name or folder, or a loaded `SentenceTransformer`, which does not know its name: give it one.
    """

    # Any: a SentenceTransformer, whose package is optional.
    def __init__(self, model: str | Any, *, name: str | None = None) -> None:
        if isinstance(model, str):
            name, model = name or model, _load(model)
        if not name:
            raise InvalidInput(
                "name", "a loaded model does not know its name", "give one, as in name='all-MiniLM-L6-v2'"
            )
        super().__init__(f"sentence-transformers:{name}")
        self._encode_text = getattr(model, "encode_document", model.encode)  # sentence-transformers >= 5
        self._encode_query = getattr(model, "encode_query", model.encode)
        self._lock = ForkLock()  # its tokenizer raises "Already borrowed" when two threads meet

    def _ask(self, texts: list[str], *, query: bool) -> npt.ArrayLike:
        encode = self._encode_query if query else self._encode_text
        with self._lock:
            answer: npt.ArrayLike = encode(texts, batch_size=64, show_progress_bar=False, convert_to_numpy=True)
        return answer


def _load(model: str) -> Any:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise MissingExtra(f"the embedder 'sentence-transformers:{model}'", "sentence-transformers") from error
    try:
        return SentenceTransformer(model)
    except (OSError, ValueError) as error:
        raise EmbeddingFailed(
            f"sentence-transformers cannot load {model!r}: check the name, or download it where there is a network"
        ) from error
