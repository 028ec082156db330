"""Does a statement tell that something is over? "Finally got shot of the Civic" does, and ends "I drive a Civic".

People have many words for that, so no list holds them. A linear model looks at the words of a text, at its pairs of words and
at its gist; a second one weighs what it says with what the text has in common with an older one. Both were trained
on 1,920 triples written for it (`evals/over`): an old statement, one that ends it, and one that only sounds so. They know English.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from functools import lru_cache
from importlib.resources import files
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from wellworn.core.hashes import hash64
from wellworn.ingest.terms import stem
from wellworn.ingest.topics import vectors_of, without_values
from wellworn.models.port import Matrix


class Over:
    """A trained model."""

    def __init__(self, saved: Mapping[str, npt.NDArray[Any]]) -> None:
        self._vector, self._of_pair = (saved[name].astype(np.float32) for name in ("vector", "pair"))
        self._grams, self._of_gram, self._bias = saved["grams"], saved["gram_weights"], float(saved["bias"])
        self._common = np.log1p(saved["often"], dtype=np.float32) / np.float32(np.log1p(int(saved["sentences"])))
        """For each word or pair how common it is, from 0 to 1."""

    def told_by(self, text: str) -> float:
        """The logarithm of the odds that a text tells of an end."""
        known = self._known(grams_of(text))
        by_words = float(self._of_gram[known].sum(dtype=np.float32)) / math.sqrt(max(1, len(known)))
        return float(vectors_of([text])[0] @ self._vector) + by_words + self._bias

    def looks_at(self, told: float, before: Set[str], after: Set[str], near: float) -> Matrix:
        """What the second model looks at: how much of the newer text is in the older one, the rarest word of that, and how near
        they are. To share a rare word says more."""
        shared, every = self._rarities(before & after), self._rarities(after)
        rarest = shared.max(initial=0.0)
        return np.array([1.0, told, shared.sum() / max(1e-6, every.sum()), rarest, near], dtype=np.float32)

    def probability(self, told: float, before: Set[str], after: Set[str], near: float) -> float:
        """That a text of which this is told ends an older one, by the words of both, and how near they are in meaning."""
        score = float(self.looks_at(told, before, after, near) @ self._of_pair)
        return 1 / (1 + math.exp(-max(-30.0, score)))

    def _rarities(self, stems: Set[str]) -> Matrix:
        known = self._known(_hashes(stems))
        return np.concatenate([1 - self._common[known], np.ones(len(stems) - len(known), dtype=np.float32)])

    def _known(self, hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.intp]:
        places = np.minimum(self._grams.searchsorted(hashes), len(self._grams) - 1)
        known: npt.NDArray[np.intp] = places[self._grams[places] == hashes]
        return known


def grams_of(text: str) -> npt.NDArray[np.uint64]:
    """Hashes of the stems of the words of a text without values, and of each two in a row, in order."""
    stems = [stem(word) for word in without_values(text).split()]
    return _hashes({*stems, *map(" ".join, pairwise(stems))})


def _hashes(found: Set[str]) -> npt.NDArray[np.uint64]:
    return np.array(sorted(map(hash64, found)), dtype=np.uint64)


@lru_cache(maxsize=1)
def over() -> Over:
    """The model that ships with the package."""
    with (files("wellworn.ingest") / "over.npz").open("rb") as file, np.load(file) as saved:
        return Over(dict(saved))
