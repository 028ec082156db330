from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellworn.core.errors import InvalidInput
from wellworn.models.embedders.base import Matrix
from wellworn.models.embedders.cached import CachedEmbedder
from wellworn.models.embedders.hashing import HashEmbedder


class Counting(HashEmbedder):
    """Remembers what it was asked for."""

    def __init__(self) -> None:
        super().__init__(16)
        self.asked: list[list[str]] = []

    def embed(self, texts: Sequence[str]) -> Matrix:
        self.asked.append(list(texts))
        return super().embed(texts)


@given(
    st.lists(st.lists(st.sampled_from(["", "a", "b", "c d", "é", "\ud800"]), max_size=6), max_size=8),
    st.integers(0, 4),
    st.integers(0, 1500),
)
def test_it_equals_the_inner_embedder_whatever_the_limits(calls: list[list[str]], entries: int, bytes_: int) -> None:
    inner = HashEmbedder(16)
    cached = CachedEmbedder(inner, max_entries=entries, max_bytes=bytes_)
    for texts in calls:
        np.testing.assert_array_equal(cached.embed(texts), inner.embed(texts))
        for text in texts:
            np.testing.assert_array_equal(cached.embed_query(text), inner.embed_query(text))
        assert len(cached) <= entries
    assert cached.hits + cached.misses == 2 * sum(map(len, calls))


def test_misses_go_out_in_one_batch_each_text_once() -> None:
    inner = Counting()
    cached = CachedEmbedder(inner)
    cached.embed(["a", "b"])
    cached.embed(["b", "c", "a", "d", "c"])
    assert inner.asked == [["a", "b"], ["c", "d"]]
    assert (cached.hits, cached.misses) == (3, 4)


def test_texts_and_questions_are_kept_apart() -> None:
    cached = CachedEmbedder(HashEmbedder(16))
    cached.embed(["a"])
    cached.embed_query("a")
    assert cached.misses == 2
    cached.embed_query("a")
    assert cached.hits == 1


def test_the_least_recently_used_goes_first() -> None:
    inner = Counting()
    cached = CachedEmbedder(inner, max_entries=2)
    cached.embed(["a"])
    cached.embed(["b"])
    cached.embed(["a"])
    cached.embed(["c"])
    inner.asked.clear()
    cached.embed(["a"])
    cached.embed(["b"])
    assert inner.asked == [["b"]]


def test_bytes_are_bounded() -> None:
    cached = CachedEmbedder(HashEmbedder(1024), max_bytes=10_000)
    cached.embed([str(number) for number in range(50)])
    assert len(cached) == 2  # 4,096 bytes of numbers each, and the overhead


def test_forgetting_drops_a_text_in_both_roles() -> None:
    cached = CachedEmbedder(HashEmbedder(16))
    cached.embed(["a", "b"])
    cached.embed_query("a")
    assert cached.forget(["a", "never seen"]) == 2
    assert len(cached) == 1


def test_clearing_drops_everything_and_says_how_much() -> None:
    cached = CachedEmbedder(HashEmbedder(16))
    cached.embed(["a", "b"])
    assert cached.clear() == 2
    assert cached.clear() == len(cached) == 0


def test_a_text_forgotten_while_it_is_embedded_is_not_kept() -> None:
    class Forgetting(HashEmbedder):
        def embed(self, texts: Sequence[str]) -> Matrix:
            cached.forget(texts)
            return super().embed(texts)

    cached = CachedEmbedder(Forgetting(16))
    cached.embed(["a"])
    assert len(cached) == 0


def test_changing_an_answer_does_not_change_the_cache() -> None:
    cached = CachedEmbedder(HashEmbedder(16))
    for answer in (cached.embed(["a"]), cached.embed(["a"]), cached.embed_query("a"), cached.embed_query("a")):
        answer[...] = 7
    np.testing.assert_array_equal(cached.embed(["a"])[0], HashEmbedder(16).embed_query("a"))
    np.testing.assert_array_equal(cached.embed_query("a"), HashEmbedder(16).embed_query("a"))


def test_name_and_width_are_the_inner_ones() -> None:
    cached = CachedEmbedder(HashEmbedder(16))
    assert (cached.name, cached.width) == ("hash:16", 16)
    assert cached.embed([]).shape == (0, 16)


def test_many_threads_get_right_answers() -> None:
    inner = HashEmbedder(16)
    cached = CachedEmbedder(inner, max_entries=20)
    texts = [str(number) for number in range(40)]
    expected = inner.embed(texts)
    wrong: list[int] = []

    def work(seed: int) -> None:
        order = np.random.default_rng(seed).permutation(40)
        for _ in range(20):
            if not np.array_equal(cached.embed([texts[place] for place in order]), expected[order]):
                wrong.append(seed)
            cached.forget(texts[:3])

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(cached) <= 20
    assert cached.hits + cached.misses == 6 * 20 * 40


def test_negative_limits_are_refused() -> None:
    with pytest.raises(InvalidInput, match="use 0 to keep nothing"):
        CachedEmbedder(HashEmbedder(), max_entries=-1)
