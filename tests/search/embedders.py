"""Embedders whose vectors a test can work out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

WORDS = ["harbour", "violin", "tram", "cedar", "lantern", "ninety", "walnut", "ferry"]


class Fixed:
    """A vector for every text it knows, and one for all the others, if it has one."""

    name, width = "fixed:1", 3

    def __init__(self, vectors: dict[str, Sequence[float]], other: Sequence[float] | None = None) -> None:
        self.vectors = vectors
        self.other = other

    def embed(self, texts: Sequence[str]) -> Any:  # an array
        return np.stack([self.embed_query(text) for text in texts])

    def embed_query(self, text: str) -> Any:  # an array
        known = self.vectors[text] if self.other is None else self.vectors.get(text, self.other)
        vector = np.array(known, dtype=np.float32)
        return vector / np.linalg.norm(vector)


class WordsEmbedder:
    """One number for each of the words."""

    name = "test:words"
    width = 2 * len(WORDS)

    def embed(self, texts: Any) -> Any:
        rest = [0.1] * len(WORDS)
        rows = np.array([[*(text.lower().count(word) for word in WORDS), *rest] for text in texts], dtype=np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def embed_query(self, text: str) -> Any:
        return self.embed([text])[0]
