"""The best rows of a bank, found in less than a full partition: the same rows as a full one finds."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from wellworn.search.context import highest


@given(
    seed=st.integers(0, 10_000),
    size=st.integers(1, 2_000) | st.integers(4_096, 9_000),
    count=st.integers(1, 120),
    ties=st.booleans(),
)
def test_the_highest_are_those_that_a_full_partition_gives(seed: int, size: int, count: int, ties: bool) -> None:
    dice, count = np.random.default_rng(seed), min(count, size)
    scores = (dice.integers(0, 9, size) if ties else dice.normal(size=size)).astype(np.float32)
    scores[dice.random(size) < 0.1] = -np.inf
    expected = np.argpartition(scores, -count)[-count:]
    assert sorted(highest(scores, count).tolist()) == sorted(expected.tolist())


def test_scores_in_rising_order_are_no_trap() -> None:
    scores = np.arange(10_000, dtype=np.float32)
    assert sorted(highest(scores, 100).tolist()) == list(range(9_900, 10_000))
