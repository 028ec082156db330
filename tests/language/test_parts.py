"""Vectors of sentences as a store keeps them: packed and back, damaged, and made by whoever reads sentences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellworn.core.errors import EmbeddingFailed
from wellworn.language.parts import MOST, embedded, nearest, packed, reader_of, unpacked
from wellworn.language.reader import WIDTH, bundled
from wellworn.language.sentences import sentences
from wellworn.models.cache import CachedEmbedder
from wellworn.models.choose import choose_embedder
from wellworn.models.hashing import HashEmbedder
from wellworn.models.port import Matrix, ReadText

TEXTS = [
    "I live in Oslo. My cat is called Momo and likes fish.",
    "I like tea.",
    "日本語の文です。もう一つの文です。",
    "",
]


def unit(count: int, width: int, seed: int = 0) -> Matrix:
    rows = np.random.default_rng(seed).normal(size=(count, width))
    scaled: Matrix = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return scaled


class Reading(HashEmbedder):
    """Reads sentences too; `harm` is done to what it reads."""

    harm: Exception | None = None

    def read(self, texts: Sequence[str]) -> list[ReadText]:
        if self.harm is not None:
            raise self.harm
        spans = [sentences(text) for text in texts]
        parts = [self.embed([text[a:b] for a, b in some]) for text, some in zip(texts, spans, strict=True)]
        return [ReadText(*one) for one in zip(self.embed(texts), spans, parts, strict=True)]


class Theirs:
    """An embedder of somebody else, that reads sentences and does not scale its vectors."""

    name, width = "theirs", 16

    def __init__(self) -> None:
        self._inner = Reading(16)

    def embed(self, texts: Sequence[str]) -> Matrix:
        return 3 * self._inner.embed(texts)

    def embed_query(self, text: str) -> Matrix:
        return 3 * self._inner.embed_query(text)

    def read(self, texts: Sequence[str]) -> list[ReadText]:
        return [one._replace(vector=3 * one.vector) for one in self._inner.read(texts)]


@given(
    st.integers(2, 2 * MOST),
    st.integers(1, 40),
    st.integers(0, 2**16),
    st.sets(st.integers(0, 2**32 - 1), min_size=4 * MOST, max_size=4 * MOST),
)
def test_what_is_packed_comes_back_nearly_as_it_was(count: int, width: int, seed: int, ends: set[int]) -> None:
    vectors, places = unit(count, width, seed), sorted(ends)
    spans = [*zip(places[: 2 * count : 2], places[1 : 2 * count : 2], strict=True)]
    blob = packed(spans, vectors)
    assert blob is not None
    found, rows = unpacked(blob, width)
    assert found == spans[:MOST]
    assert rows.dtype == np.float32
    assert np.abs(rows - vectors[:MOST]).max() <= 0.5 / 127 + 1e-6
    assert unpacked(blob[:-1], width)[0] == []
    cosine, span = nearest({7: blob, 8: blob[1:]}, vectors[1])[7]
    assert span == found[int((rows @ vectors[1]).argmax())]
    assert cosine == pytest.approx(float((rows @ vectors[1]).max()), abs=1e-5)


def test_one_sentence_has_none_and_a_zero_vector_stays_zero() -> None:
    assert packed([], unit(0, 4)) is None
    assert packed([(0, 3)], unit(1, 4)) is None
    blob = packed([(0, 3), (4, 9)], np.zeros((2, 4), dtype=np.float32))
    assert blob is not None
    assert not unpacked(blob, 4)[1].any()
    with pytest.raises(ValueError, match="1 vectors for 2 sentences"):
        packed([(0, 3), (4, 9)], unit(1, 4))


@given(st.binary(max_size=60), st.integers(1, 6))
def test_a_damaged_blob_is_none_and_harms_no_other(damaged: bytes, width: int) -> None:
    spans, rows = unpacked(damaged, width)
    assert len(spans) == len(rows)
    sound = packed([(0, 3), (4, 9)], unit(2, width))
    assert sound is not None
    query = unit(1, width, 1)[0]
    found = nearest({1: damaged, 2: sound}, query)
    assert found[2] == nearest({2: sound}, query)[2]
    assert all(np.isfinite(cosine) and begin < end for cosine, (begin, end) in found.values())
    assert nearest({1: b"", 2: sound[:-1]}, query) == {}


def test_the_bundled_reader_makes_them_and_they_are_those_of_the_sentences() -> None:
    reader = bundled()
    vectors, parts = embedded(reader, TEXTS)
    assert np.abs(np.array(vectors) - reader.embed(TEXTS)).max() < 1e-5
    assert [blob is None for blob in parts] == [False, True, True, True]
    spans, rows = unpacked(parts[0] or b"", WIDTH)
    assert [TEXTS[0][begin:end] for begin, end in spans] == ["I live in Oslo.", "My cat is called Momo and likes fish."]
    assert int((rows @ reader.embed_query("What is the name of my pet?")).argmax()) == 1


def test_a_cache_and_checks_are_gone_around_and_lose_nothing() -> None:
    bare, expected = Reading(16), embedded(Reading(16), TEXTS)
    cached, theirs = CachedEmbedder(bare), choose_embedder(Theirs())
    cached.embed(TEXTS)
    assert theirs is not None
    assert (reader_of(cached), reader_of(bare), reader_of(HashEmbedder(16)), reader_of(None)) == (
        bare,
        bare,
        None,
        None,
    )
    for embedder in (cached, CachedEmbedder(theirs), theirs):
        vectors, parts = embedded(embedder, TEXTS)
        assert np.allclose(vectors, expected[0], atol=1e-6)
        assert parts == expected[1]
    vectors, parts = embedded(HashEmbedder(16), TEXTS)
    assert np.array_equal(vectors, expected[0])
    assert parts == [None] * len(TEXTS)
    assert embedded(bare, [])[1] == []


def test_a_reader_that_fails_says_so_without_its_own_words() -> None:
    theirs = Reading(16)
    theirs.harm = RuntimeError("key sk-123 is wrong")
    with pytest.raises(EmbeddingFailed, match="RuntimeError; nothing was stored") as caught:
        embedded(theirs, TEXTS)
    assert "sk-123" not in str(caught.value)
