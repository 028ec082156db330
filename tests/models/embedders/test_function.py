from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from wellworn.core.errors import EmbeddingFailed, InvalidInput
from wellworn.models.embedders.function import EmbedFunction, FunctionEmbedder


def lengths(texts: list[str]) -> list[list[float]]:
    return [[float(len(text)), 1.0, 0.0] for text in texts]


def test_vectors_are_scaled_to_unit_length_and_the_width_is_discovered() -> None:
    embedder = FunctionEmbedder(lengths)
    assert embedder.width == 3
    rows = embedder.embed(["abc", "d"])
    np.testing.assert_allclose(rows, [[3 / 10**0.5, 1 / 10**0.5, 0], [2**-0.5, 2**-0.5, 0]], atol=1e-6)
    np.testing.assert_array_equal(embedder.embed_query("abc"), rows[0])
    assert rows.dtype == np.float32


def test_the_name_is_given_or_the_functions_own() -> None:
    assert FunctionEmbedder(lengths).name == "function:lengths"
    assert FunctionEmbedder(partial(lengths)).name == "function:partial"
    assert FunctionEmbedder(lengths, name="mine").name == "mine"


def test_the_width_is_probed_only_once_and_not_at_all_when_given() -> None:
    asked: list[list[str]] = []

    def counting(texts: list[str]) -> list[list[float]]:
        asked.append(texts)
        return lengths(texts)

    embedder = FunctionEmbedder(counting)
    assert embedder.width == embedder.width == 3
    assert len(asked) == 1
    assert FunctionEmbedder(counting, width=3).width == 3
    assert len(asked) == 1


def test_no_texts_give_no_rows() -> None:
    assert FunctionEmbedder(lengths).embed([]).shape == (0, 3)


def test_blank_texts_are_zero_and_not_asked_for() -> None:
    asked: list[str] = []

    def noting(texts: list[str]) -> list[list[float]]:
        asked.extend(texts)
        return lengths(texts)

    embedder = FunctionEmbedder(noting, width=3)
    rows = embedder.embed(["", "ab", " \n"])
    assert asked == ["ab"]
    assert [bool(row.any()) for row in rows] == [False, True, False]
    assert not embedder.embed_query(" ").any()


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (lambda texts: [[float("nan"), 1.0]] * len(texts), "not finite"),
        (lambda texts: [[float("inf"), 1.0]] * len(texts), "not finite"),
        (lambda texts: [[1.0, 2.0]], "expected one vector for each of 2 texts"),
        (lambda texts: [1.0, 2.0], "expected one vector"),
        (lambda texts: [[], []], "expected one vector"),
        (lambda texts: [[1.0], [1.0, 2.0]], "matrix of numbers"),
        (lambda texts: None, "expected one vector"),
        (lambda texts: "no", "matrix of numbers"),
        (lambda texts: 1 / 0, "failed with ZeroDivisionError"),
    ],
)
def test_a_bad_answer_is_an_error_of_ours(function: EmbedFunction, problem: str) -> None:
    with pytest.raises(EmbeddingFailed, match=problem):
        FunctionEmbedder(function, name="bad").embed(["a", "b"])


def test_a_width_that_changes_is_an_error() -> None:
    widths = iter([3, 4])
    embedder = FunctionEmbedder(lambda texts: np.ones((len(texts), next(widths))), name="changing")
    embedder.embed(["a"])
    with pytest.raises(EmbeddingFailed, match=r"returned shape \(1, 4\), expected \(texts, 3\)"):
        embedder.embed(["a"])


def test_very_large_and_very_small_numbers_keep_their_direction() -> None:
    embedder = FunctionEmbedder(lambda texts: [[3e300, 4e300], [3e-300, 4e-300]], name="extreme")
    np.testing.assert_allclose(embedder.embed(["a", "b"]), [[0.6, 0.8]] * 2, atol=1e-6)


def test_the_words_of_a_foreign_error_are_its_cause_only() -> None:
    def leaking(texts: list[str]) -> list[list[float]]:
        raise RuntimeError("key sk-secret refused")

    with pytest.raises(EmbeddingFailed) as caught:
        FunctionEmbedder(leaking).embed(["a"])
    assert "sk-secret" not in str(caught.value)
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_a_width_below_one_is_refused() -> None:
    with pytest.raises(InvalidInput, match="width"):
        FunctionEmbedder(lengths, width=0)
