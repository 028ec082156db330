"""Models of the fastembed package, by name (extra `fastembed`).

fastembed downloads a model when it is first used; nothing else here touches the network. Knows no other provider.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from wellworn.core.errors import EmbeddingFailed, MissingExtra
from wellworn.models.base import EmbedderBase


class FastembedEmbedder(EmbedderBase):
    """One model, as `TextEmbedding.list_supported_models()` names it; `options` are those of `TextEmbedding`.

    Texts and questions get the model's own prompts where fastembed knows them.
    """

    def __init__(self, model: str, **options: Any) -> None:  # Any: whatever fastembed takes
        try:
            from fastembed import TextEmbedding
        except ImportError as error:
            raise MissingExtra(f"the embedder 'fastembed:{model}'", "fastembed") from error
        try:
            self._model = TextEmbedding(model, **options)
        except Exception as error:  # also kinds of onnxruntime and of the network
            raise EmbeddingFailed(
                f"fastembed cannot load {model!r}: check the name, or download it where there is a network"
            ) from error
        super().__init__(f"fastembed:{model}")

    def _ask(self, texts: list[str], *, query: bool) -> npt.ArrayLike:
        if query:
            return list(self._model.query_embed(texts))
        return list(self._model.passage_embed(texts, batch_size=64))
