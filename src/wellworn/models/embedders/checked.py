"""Someone's own `Embedder`, with its answers checked like any provider's."""

from __future__ import annotations

import numpy.typing as npt

from wellworn.core.errors import InvalidInput
from wellworn.models.embedders.base import Embedder
from wellworn.models.embedders.provider import Provider


class CheckedEmbedder(Provider):
    """Wraps an object that has the `Embedder` methods; a failed or misshapen answer is an `EmbeddingFailed`."""

    def __init__(self, inner: Embedder) -> None:
        name, width = inner.name, inner.width
        if not isinstance(name, str) or not name:
            raise InvalidInput("embedder", f"its name is {name!r}", "give it a name to be recorded with its vectors")
        if isinstance(width, bool) or not isinstance(width, int):
            raise InvalidInput("embedder", f"its width is {width!r}", "give it the number of numbers in a vector")
        super().__init__(name, width)
        self.inner = inner

    def _ask(self, texts: list[str], *, query: bool) -> npt.ArrayLike:
        if query:
            return [self.inner.embed_query(text) for text in texts]
        return self.inner.embed(texts)
