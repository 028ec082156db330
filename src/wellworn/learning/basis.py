"""Rows as shares of orthonormal ones: rows (r, d) = parts (r, r) · Q (r, d).

Sums over d are `einsum`, not `@`: at these sizes BLAS wakes its threads, and waiting for them costs more than the sum.
Gives the same bits on one machine; elsewhere, to rounding.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wellworn.learning.exact import Array

LEAST_ANGLE = 1e-4
"""Of a row to those before it, as its sine, for the short way: it is right to 1e-16 / 1e-4², as good as float32."""


class Basis(NamedTuple):
    """Q is not kept, but the rows that it is made of, and how."""

    parts: Array
    """Lower triangular."""
    rows: Array
    orthonormal: bool
    """Whether `rows` are Q itself, not yet those that are to be divided by the parts."""

    @classmethod
    def of(cls, rows: Array) -> Basis:
        """The basis of these rows; one that depends on those before it has a zero row in Q.

        rows · rowsᵀ = parts · partsᵀ: Cholesky of a small matrix, a tenth of the time of Gram-Schmidt. Where a row
        nearly depends on others (the same question twice), that would lose its digits.
        """
        rows = rows.astype(np.float64)
        inner = np.einsum("rd,sd->rs", rows, rows)
        try:
            parts = np.linalg.cholesky(inner)
        except np.linalg.LinAlgError:
            return cls(*_gram_schmidt(rows), orthonormal=True)
        sines = np.diagonal(parts) / np.sqrt(np.diagonal(inner))
        if not (sines > LEAST_ANGLE).all():
            return cls(*_gram_schmidt(rows), orthonormal=True)
        return cls(parts, rows, orthonormal=False)

    def mixed(self, shares: Array) -> Array:
        """shares (c, r) · Q, shape (c, d)."""
        if not self.orthonormal:
            shares = np.asarray(np.linalg.solve(self.parts.T, shares.T).T, dtype=np.float64)
        found: Array = np.einsum("cr,rd->cd", shares, self.rows)
        return found


def _gram_schmidt(rows: Array) -> tuple[Array, Array]:
    """Parts and Q, row by row; twice over, which is as good as Householder."""
    basis, parts = np.zeros_like(rows), np.zeros((len(rows), len(rows)))
    for i, row in enumerate(rows):
        rest = row
        for _ in range(2):
            share = np.einsum("rd,d->r", basis[:i], rest)
            rest = rest - np.einsum("r,rd->d", share, basis[:i])
            parts[i, :i] += share
        length = float(np.sqrt(np.einsum("d,d->", rest, rest)))
        if length > 1e-12 * float(np.sqrt(np.einsum("d,d->", row, row))):
            basis[i], parts[i, i] = rest / length, length
    return parts, basis
