"""Our own arithmetic against numpy's."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.learning import exact

seeds = st.integers(0, 10_000)


@given(seed=seeds)
def test_the_exponential_is_right_to_two_units_in_the_last_place(seed: int) -> None:
    x = -np.random.default_rng(seed).exponential(20.0, size=50)
    assert np.all(np.abs(exact.exp(x) - np.exp(x)) <= 2 * np.spacing(np.exp(x)))


def test_the_exponential_at_its_ends() -> None:
    assert exact.exp(np.array([0.0, -701.0, -np.inf])).tolist() == [1.0, 0.0, 0.0]
    assert exact.exp(np.array([-700.0]))[0] > 0.0


@settings(deadline=None)
@given(seed=seeds, size=st.integers(1, 14))
def test_solving_gives_what_elimination_gives(seed: int, size: int) -> None:
    dice = np.random.default_rng(seed)
    root = dice.normal(size=(size, size))
    matrix, right = root @ root.T + np.eye(size), dice.normal(size=size)
    np.testing.assert_allclose(exact.solve(matrix, right), np.linalg.solve(matrix, right), rtol=1e-8, atol=1e-10)


def test_a_matrix_that_is_not_positive_definite_has_no_solution() -> None:
    for matrix in (np.array([[1.0, 2.0], [2.0, 1.0]]), np.array([[np.nan]]), np.array([[np.inf]]), np.zeros((2, 2))):
        assert np.isnan(exact.solve(matrix, np.ones(len(matrix)))).all()


@given(seed=seeds, rows=st.integers(1, 40))
def test_a_sum_by_halves_is_the_sum(seed: int, rows: int) -> None:
    many = np.random.default_rng(seed).normal(size=(rows, 2, 3))
    np.testing.assert_allclose(exact.halved(many.copy()), many.sum(axis=0), atol=1e-12)


@given(seed=seeds)
def test_sums_and_products(seed: int) -> None:
    dice = np.random.default_rng(seed)
    matrix, vector = dice.normal(size=(7, 5)), dice.normal(size=5)
    np.testing.assert_allclose(exact.times(matrix, vector), matrix @ vector, atol=1e-12)
    np.testing.assert_allclose(exact.total(matrix), matrix.sum(axis=0), atol=1e-12)
    np.testing.assert_allclose(exact.softmax(vector), np.exp(vector) / np.exp(vector).sum(), rtol=1e-12)
    assert exact.total(np.zeros((0, 3))).tolist() == [0.0, 0.0, 0.0]
