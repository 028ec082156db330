"""Rows as shares of orthonormal ones, the short way and the long one."""

from __future__ import annotations

import numpy as np
import pytest

from wellworn.learning.basis import Basis
from wellworn.learning.residual import Factors

DICE = np.random.default_rng(5)


@pytest.mark.parametrize("nearly", [None, 0.0, 1e-9, 1e-3])
def test_rows_are_parts_of_orthonormal_ones(nearly: float | None) -> None:
    rows = DICE.normal(size=(9, 40)) * np.logspace(-6, 3, 9)[:, None]
    if nearly is not None:
        rows[5] = 7 * rows[2] + nearly * rows[5]
    basis = Basis.of(rows)
    q = basis.mixed(np.eye(9))
    np.testing.assert_allclose(basis.parts @ q, rows, rtol=1e-9, atol=1e-12 * np.abs(rows).max())
    kept = np.einsum("rd,rd->r", q, q) > 0.5
    assert kept.sum() == (8 if nearly == 0.0 else 9)
    np.testing.assert_allclose((q @ q.T)[np.ix_(kept, kept)], np.eye(kept.sum()), atol=1e-7)
    assert basis.orthonormal is (nearly in (0.0, 1e-9))


@pytest.mark.parametrize("twice", [False, True])
def test_what_exceeds_the_rank_goes_as_in_a_dense_matrix(twice: bool) -> None:
    old = Factors(*(DICE.normal(size=(2, 6, 64)).astype(np.float32)))
    left, right = DICE.normal(size=(2, 20, 64))
    if twice:
        right[3], left[7] = right[4], 0.0
    grown = old.grown(left, right, 6)
    dense = old.left.T.astype(float) @ old.right + left.T @ right
    u, size, vt = np.linalg.svd(dense)
    nearest = (u[:, :6] * size[:6]) @ vt[:6]
    assert grown.left.shape == grown.right.shape == (6, 64)
    np.testing.assert_allclose(grown.left.T.astype(float) @ grown.right, nearest, atol=2e-6 * size[0])
