"""Comparing a bank in blocks finds what comparing everything with everything finds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wellworn.tasks.consolidation import alike
from wellworn.tasks.consolidation.alike import Components, Floats, Ints, compare

SEED_MATRIX = np.array(
    [[1.0, 0.96, 0.91, 0.15], [0.96, 1.0, 0.88, 0.12], [0.91, 0.88, 1.0, 0.18], [0.15, 0.12, 0.18, 1.0]]
)
"""The worked example of the design: M1 to M4."""


def unit(rows: object) -> Floats:
    made = np.asarray(rows, dtype=np.float64)
    return np.asarray(made / np.linalg.norm(made, axis=1, keepdims=True), dtype=np.float32)


def vectors_of(gram: Floats) -> Floats:
    return np.asarray(np.linalg.cholesky(gram), dtype=np.float32)


def plain_sets(vectors: Floats, groups: Ints, threshold: float) -> set[frozenset[int]]:
    """Single linkage the long way: merge the sets of any two rows that are alike until nothing changes."""
    sets = [{row} for row in range(len(vectors))]
    products = vectors @ vectors.T
    for a in range(len(vectors)):
        for b in range(a):
            if products[a, b] >= threshold and groups[a] == groups[b]:
                one = next(each for each in sets if a in each)
                other = next(each for each in sets if b in each)
                if one is not other:
                    one |= other
                    sets.remove(other)
    return {frozenset(each) for each in sets if len(each) > 1}


def found_sets(components: Components) -> set[frozenset[int]]:
    return {frozenset(int(row) for row in each) for each in components.sets()}


def test_the_cluster_example_of_the_design() -> None:
    nothing = np.zeros(4, dtype=np.int64)
    found = compare(vectors_of(SEED_MATRIX), nothing, nothing, duplicate=0.95, related=0.95)
    assert found_sets(found.duplicates) == {frozenset({0, 1})}
    chained = compare(vectors_of(SEED_MATRIX), nothing, nothing, duplicate=0.91, related=0.91)
    assert found_sets(chained.duplicates) == {frozenset({0, 1, 2})}  # M3 is like M1 only: single linkage takes it


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), size=st.integers(0, 60), block=st.integers(1, 17), groups=st.integers(1, 3))
def test_blocks_of_any_size_find_the_same_sets(seed: int, size: int, block: int, groups: int) -> None:
    dice = np.random.default_rng(seed)
    centres = dice.standard_normal((6, 5))
    vectors = (
        unit(centres[dice.integers(0, 6, size)] + 0.15 * dice.standard_normal((size, 5)))
        if size
        else np.zeros((0, 5), dtype=np.float32)
    )
    codes = dice.integers(0, groups, size)
    found = compare(vectors, np.zeros(size, dtype=np.int64), codes, duplicate=0.95, related=0.7, block=block)
    assert found_sets(found.duplicates) == plain_sets(vectors, codes, 0.95)


@pytest.mark.parametrize("spread", [0.02, 0.06, 1.0])
def test_bounds_rule_out_nothing_that_is_alike(spread: float, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = np.random.default_rng(3)
    size = 2 * alike.BLOCK + 100
    vectors = unit(
        dice.standard_normal((40, 48))[dice.integers(0, 40, size)] + spread * dice.standard_normal((size, 48))
    )
    short = alike.shortened(vectors, 16)
    assert (short @ short.T - vectors @ vectors.T).min() > -1e-5
    nothing, groups = np.zeros(size, dtype=np.int64), dice.integers(0, 2, size)
    monkeypatch.setattr(alike, "MOST_PAIRS", size)
    bounded = compare(vectors, nothing, groups, duplicate=0.95, related=0.9)
    monkeypatch.setattr(alike, "SHORT", 10**6)
    plain = compare(vectors, nothing, groups, duplicate=0.95, related=0.9)
    assert (bounded.duplicates.labels == plain.duplicates.labels).all()
    assert {pair[:2] for pair in bounded.pairs} == {pair[:2] for pair in plain.pairs}


def test_rows_of_different_realms_are_never_compared() -> None:
    same = unit(np.ones((4, 3)))
    realms = np.array([1, 2, 1, 2])
    found = compare(same, realms, np.zeros(4, dtype=np.int64), duplicate=0.95, related=0.7, block=2)
    assert found_sets(found.duplicates) == {frozenset({0, 2}), frozenset({1, 3})}
    assert found.pairs == []


def test_like_rows_of_different_groups_are_pairs_and_each_row_has_at_most_so_many() -> None:
    rows = 200
    found = compare(
        unit(np.ones((rows, 3))), np.zeros(rows, dtype=np.int64), np.arange(rows), duplicate=0.95, related=0.7, block=64
    )
    had = np.bincount([row for a, b, _ in found.pairs for row in (a, b)], minlength=rows)
    assert had.max() == alike.MOST_PAIRS
    assert found.left_out + len(found.pairs) == rows * (rows - 1) // 2
    assert all(a < b and similar == pytest.approx(1.0) for a, b, similar in found.pairs)


def test_zero_vectors_are_like_nothing() -> None:
    nothing = np.zeros((5, 4), dtype=np.float32)
    found = compare(nothing, np.zeros(5, dtype=np.int64), np.zeros(5, dtype=np.int64), duplicate=0.95, related=0.7)
    assert found.duplicates.sets() == []
    assert found.pairs == []


def test_a_long_chain_is_one_set() -> None:
    chain = np.arange(2000)
    components = Components(2000)
    components.join(chain[:-1], chain[1:])
    assert [len(each) for each in components.sets()] == [2000]
