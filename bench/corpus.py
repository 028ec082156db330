"""Made-up texts that are like real ones where it matters for cost: length, word frequencies, sessions.

About half of the words are English stop words; the rest come from a vocabulary whose frequencies fall off as
1 / (rank + 10), as those of content words do. Everything follows from a seed. Knows nothing about wellworn's index.
"""

from __future__ import annotations

import random
from itertools import accumulate, product

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float32]

WIDTH = 256
"""Numbers per vector: that of the default embedder, and 1 KB as float32."""
VOCABULARY = 5_000
FLATTENED_RANKS = 10
_COMMON = "the a to of and in is it was for on with that this my we they at be have".split()  # noqa: SIM905
_SYLLABLES = [a + b for a, b in product("bdfgklmnprstvz", "aeiou")]


def vocabulary(seed: int = 1) -> list[str]:
    """Distinct pronounceable words, most frequent first."""
    rng = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < VOCABULARY:
        found["".join(rng.choices(_SYLLABLES, k=rng.randint(2, 4)))] = None
    return list(found)


class Corpus:
    """An endless, repeatable stream of short texts and of questions about them."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._words = vocabulary()
        self._shares = list(accumulate(1 / (rank + FLATTENED_RANKS) for rank in range(1, VOCABULARY + 1)))

    def _content(self, count: int) -> list[str]:
        return self._rng.choices(self._words, cum_weights=self._shares, k=count)

    def text(self) -> str:
        """A statement of 15 to 20 words; one in six is a question."""
        content = self._content(self._rng.randint(8, 10))
        common = self._rng.choices(_COMMON, k=self._rng.randint(7, 10))
        words = [*content, *common]
        self._rng.shuffle(words)
        return " ".join(words).capitalize() + ("?" if self._rng.random() < 1 / 6 else ".")

    def texts(self, count: int) -> list[str]:
        return [self.text() for _ in range(count)]

    def query(self) -> str:
        """A question with four to six content words, as frequent in it as they are in the texts."""
        return f"What was it about {' '.join(self._content(self._rng.randint(4, 6)))}?"

    def queries(self, count: int) -> list[str]:
        return [self.query() for _ in range(count)]


def unit_vectors(count: int, seed: int) -> Matrix:
    """Seeded random rows of length one, shape (count, WIDTH)."""
    rows = np.random.default_rng(seed).standard_normal((count, WIDTH), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows
