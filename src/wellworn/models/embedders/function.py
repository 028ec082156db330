"""Any callable from a list of texts to a matrix, as an embedder. Knows nothing about what is behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy.typing as npt

from wellworn.models.embedders.provider import Provider

# Any: lists of lists, numpy arrays and tensors with __array__ are all fine; `Provider` checks the numbers.
EmbedFunction = Callable[[list[str]], Any]


class FunctionEmbedder(Provider):
    """Wraps `function(texts) -> one vector per text`; questions go through the same function.

    The name is recorded beside every vector. By default it is the function's own, so give one to a lambda, and a new
    one whenever the function starts to answer differently.
    """

    def __init__(self, function: EmbedFunction, *, name: str | None = None, width: int | None = None) -> None:
        own = getattr(function, "__qualname__", type(function).__qualname__)
        super().__init__(name or f"function:{own}", width)
        self._function = function

    def _ask(self, texts: list[str], *, query: bool) -> npt.ArrayLike:
        answer: npt.ArrayLike = self._function(texts)
        return answer
