"""Our own arithmetic against numpy's."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from wellworn.learning import exact

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


def loops(matrix: list[list[float]], right: list[float]) -> list[float]:
    """What `solve` writes out: L Lᵀ = matrix and L y = right, row by row, then Lᵀ x = y from the last."""
    lower: list[list[float]] = []
    for row in (*matrix, right):
        done: list[float] = []
        for known in lower:
            value = row[len(done)]
            for a, b in zip(done, known, strict=False):
                value -= a * b
            done.append(value / known[len(done)])
        if len(lower) < len(right):
            pivot = row[len(done)]
            for a in done:
                pivot -= a * a
            lower.append([*done, math.sqrt(pivot)])
        else:
            x = done
    for i in reversed(range(len(x))):
        for k in range(i + 1, len(x)):
            x[i] -= lower[k][i] * x[k]
        x[i] /= lower[i][i]
    return x


@settings(deadline=None)
@given(seed=seeds, size=st.integers(1, 14))
def test_what_is_written_out_is_what_loops_do_to_the_bit(seed: int, size: int) -> None:
    dice = np.random.default_rng(seed)
    root = dice.normal(size=(size, size)) * 10.0 ** dice.integers(-3, 3, size=size)
    matrix, right = root @ root.T + np.eye(size), dice.normal(size=size)
    assert exact.solve(matrix, right) == loops(matrix.tolist(), right.tolist())


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
