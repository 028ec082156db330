"""Vectors without weights: signed feature hashing of words and of three- and four-character grams.

Deterministic on every machine and in every version of Python. Knows spelling, not meaning: texts are near when they
share words or parts of words. For tests, for scripts the bundled model does not know, and as the smallest default.

    v[h(f) mod width] += s(f) · weight(f)    for every feature f; h and s from one 64-bit hash (Weinberger et al., 2009)
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from wellworn.core.errors import InvalidInput
from wellworn.core.lazy import regex
from wellworn.models.port import Matrix, unit_rows

_Hashes = npt.NDArray[np.uint64]

_WORD = regex(r"\w+")
_SYMBOL = regex(r"\S")
_BATCH = 1024
_WORD_WEIGHT = 1.0
_GRAM_WEIGHT = 0.3  # a word has about as many grams as letters; together they weigh about twice the word
_GRAM_SIZES = (3, 4)
_SIGN_BIT = np.uint64(63)  # the bucket comes from the low bits
# Odd multipliers of splitmix64 (Steele et al., 2014); any odd number with mixed bits would do for the first.
_STEP, _MIX_1, _MIX_2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


class HashEmbedder:
    """Feature hashing into `width` numbers; a text without a visible character gives a zero row."""

    def __init__(self, width: int = 256) -> None:
        if width < 1:
            raise InvalidInput("width", f"{width} is not a vector width", "use 256, or more for fewer collisions")
        self._width = width

    @property
    def name(self) -> str:
        return f"hash:{self._width}"

    @property
    def width(self) -> int:
        return self._width

    def embed(self, texts: Sequence[str]) -> Matrix:
        """One unit vector per text, shape (len(texts), width)."""
        rows = np.zeros((len(texts), self.width), dtype=np.float32)
        for start in range(0, len(texts), _BATCH):
            batch = [_words(text) for text in texts[start : start + _BATCH]]
            rows[start : start + len(batch)] = self._features(batch)
        return unit_rows(rows, width=self.width, name=self.name)

    def embed_query(self, text: str) -> Matrix:
        """One unit vector, shape (width,); questions and texts are embedded alike."""
        row: Matrix = self.embed([text])[0]
        return row

    def _features(self, batch: list[list[str]]) -> npt.NDArray[np.float64]:
        total = np.zeros(len(batch) * self.width)
        owners = np.repeat(np.arange(len(batch)), [len(words) for words in batch])
        spelled = [word.encode("utf-8", "surrogatepass") for words in batch for word in words]
        digests = b"".join(hashlib.blake2b(word, digest_size=8).digest() for word in spelled)
        hashes = np.frombuffer(digests, dtype="<u8").astype(np.uint64)
        self._add(total, owners, hashes, _WORD_WEIGHT)
        for owners, hashes in _grams(batch):
            self._add(total, owners, hashes, _GRAM_WEIGHT)
        return total.reshape(len(batch), self.width)

    def _add(
        self, total: npt.NDArray[np.float64], owners: npt.NDArray[np.intp], hashes: _Hashes, weight: float
    ) -> None:
        cells = owners * self.width + (hashes % np.uint64(self.width)).astype(np.intp)
        signed = np.where(hashes >> _SIGN_BIT, weight, -weight)
        total += np.bincount(cells, weights=signed, minlength=total.size)


def _words(text: str) -> list[str]:
    """Words in one spelling (case and width folded); symbols one by one where there are no words."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return _WORD.findall(folded) or _SYMBOL.findall(folded)


def _grams(batch: list[list[str]]) -> list[tuple[npt.NDArray[np.intp], _Hashes]]:
    """For each gram size: which text each gram belongs to, and its hash. Grams run across one space between words."""
    padded = [f" {' '.join(words)} " if words else "" for words in batch]
    codes = np.frombuffer("".join(padded).encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint64)
    owners = np.repeat(np.arange(len(padded)), [len(text) for text in padded])
    found = []
    for size in _GRAM_SIZES:
        count = max(0, len(codes) - size + 1)
        whole = owners[:count] == owners[size - 1 : size - 1 + count]  # not across two texts
        hashes = np.full(count, size, dtype=np.uint64)
        for offset in range(size):  # a polynomial in the code points, modulo 2^64
            hashes = hashes * _STEP + codes[offset : offset + count]
        found.append((owners[:count][whole], _mixed(hashes[whole])))
    return found


def _mixed(hashes: _Hashes) -> _Hashes:
    """The finaliser of splitmix64: every bit of the input moves every bit of the output."""
    hashes = (hashes ^ (hashes >> np.uint64(30))) * _MIX_1
    hashes = (hashes ^ (hashes >> np.uint64(27))) * _MIX_2
    return hashes ^ (hashes >> np.uint64(31))
