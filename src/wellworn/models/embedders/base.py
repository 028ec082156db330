"""The embedding port: texts in, unit vectors out.

Knows nothing about storage or ranking. A provider says which model it is (`name`) and how wide its vectors are;
both are recorded beside every vector, so that vectors of two models never mix.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from wellworn.core.errors import EmbedderMismatch, EmbeddingFailed

Matrix = npt.NDArray[np.float32]


@runtime_checkable
class Embedder(Protocol):
    """Anything that turns texts into vectors."""

    @property
    def name(self) -> str:
        """Provider and model, as recorded in the store: `static:l2_supercat_256`."""
        ...

    @property
    def width(self) -> int:
        """Numbers per vector."""
        ...

    def embed(self, texts: Sequence[str]) -> Matrix:
        """One unit vector per text, shape (len(texts), width); a text without content gives a zero row."""
        ...

    def embed_query(self, text: str) -> Matrix:
        """One unit vector for a question, shape (width,)."""
        ...


def check_served(embedder: Embedder | None, stored: tuple[str, int] | None) -> None:
    """Refuse to mix: the store's vectors (name, width) must be this embedder's, if both have any."""
    if embedder is not None and stored is not None and stored != (embedder.name, embedder.width):
        raise EmbedderMismatch(*stored, embedder.name, embedder.width)


def unit_rows(matrix: npt.ArrayLike, *, width: int | None, name: str) -> Matrix:
    """Rows scaled to length one; zero rows stay zero. Not-a-number, infinite or misshapen rows are an error."""
    rows = np.ascontiguousarray(matrix, dtype=np.float32)
    if rows.ndim != 2 or (width is not None and rows.shape[1] != width):
        raise EmbeddingFailed(f"embedder {name!r} returned shape {rows.shape}, expected (texts, {width})")
    if not np.isfinite(rows).all():
        raise EmbeddingFailed(f"embedder {name!r} returned a vector that is not finite; nothing was stored")
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    lengths[lengths == 0] = 1.0
    scaled: Matrix = rows / lengths
    return scaled
