from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellworn.core.errors import InvalidInput
from wellworn.models.hashing import HashEmbedder


def test_similar_texts_are_nearer_than_unrelated_ones() -> None:
    pairs = [
        ("The cat sat on the mat", "A cat is sitting on a mat", "Quarterly revenue rose by nine percent"),
        ("deploy the postgres database", "database deployment with PostgreSQL", "my sister likes hiking"),
        ("東京に住んでいます", "東京に引っ越しました", "猫が好き"),
        ("colour of the house", "the houses' colours", "an unrelated remark"),
    ]
    for text, near, far in pairs:
        a, b, c = HashEmbedder().embed([text, near, far])
        assert a @ b > a @ c + 0.1, text


def test_vectors_are_the_same_in_every_version() -> None:
    gram = 0.222988  # one three- or four-character gram; the word itself adds 3.33 times as much to place 10
    expected = np.zeros(16)
    expected[[1, 3, 5, 7]] = -2 * gram, -gram, -gram, -gram
    expected[[10, 11, 14]] = 0.743294, gram, gram
    np.testing.assert_allclose(HashEmbedder(16).embed_query("memory"), expected, atol=1e-6)


@given(st.lists(st.text(st.characters(categories=["L", "N", "P", "Z", "S", "Cs", "Cc"])), max_size=5))
def test_a_text_has_the_same_vector_alone_and_in_company(texts: list[str]) -> None:
    embedder = HashEmbedder()
    rows = embedder.embed(texts)
    assert rows.shape == (len(texts), 256)
    for text, row in zip(texts, rows, strict=True):
        np.testing.assert_array_equal(row, embedder.embed_query(text))


def test_blank_texts_give_zero_rows_and_symbols_do_not() -> None:
    rows = HashEmbedder().embed(["", " \n", "😀", "!?"])
    assert [bool(row.any()) for row in rows] == [False, False, True, True]
    with pytest.raises(InvalidInput, match="0 is not a vector width"):
        HashEmbedder(0)
