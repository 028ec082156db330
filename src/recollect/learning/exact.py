"""The little arithmetic that learning rests on, with the same bits on every machine.

BLAS, LAPACK and vectorised exponentials differ in the last bit between processors, and a fold of thousands of steps
would carry that on. Here is only addition, multiplication, division and square root of doubles, which IEEE 754 fixes,
in an order that is written down. Small sizes only: about a dozen features, some forty rows.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

# ln 2 in two parts: the first has 32 trailing zero bits, so that k · _LN2_HIGH is exact for every k that can occur.
_LN2_HIGH = float.fromhex("0x1.62e42feep-1")
_LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
_FACTORIALS = [np.array(1.0 / math.factorial(n)) for n in range(13, -1, -1)]
"""As arrays: numpy would make one of a float, each time."""


def total(rows: Array) -> Array:
    """The sum over the first axis, from first to last (`sum` would choose an order of its own)."""
    if len(rows) == 0:
        return np.zeros(rows.shape[1:])
    summed: Array = np.add.accumulate(rows, axis=0)[-1]
    return summed


def times(matrix: Array, vector: Array) -> Array:
    """matrix (n, m) times vector (m,)."""
    return total((matrix * vector).T)


def exp(x: Array) -> Array:
    """e^x for x ≤ 0, to within two units in the last place; 0 below -700."""
    usual = np.maximum(x, -700.0)
    # e^x = 2^k · e^r with |r| ≤ ln 2 / 2, where thirteen terms of the series suffice.
    k = np.rint(usual / math.log(2.0))
    r = (usual - k * _LN2_HIGH) - k * _LN2_LOW
    series = np.full_like(r, _FACTORIALS[0])
    for factor in _FACTORIALS[1:]:
        np.multiply(series, r, out=series)
        np.add(series, factor, out=series)
    value: Array = np.where(x < -700.0, 0.0, np.ldexp(series, k.astype(np.int32)))
    return value


def softmax(x: Array) -> Array:
    """e^x / Σ e^x, shape (n,) with n ≥ 1."""
    raised = exp(x - x.max())
    return raised / total(raised)


def solve(matrix: Array, right: Array) -> Array:
    """x with matrix · x = right, for a symmetric positive definite matrix (its lower half is read); else all NaN.

    Cholesky, matrix = L Lᵀ: half the work of elimination, and it needs no pivoting. L y = right is solved on the way,
    y being one more row of L. At a dozen rows, loops over lists take half the time of calls to numpy.
    """
    n = len(right)
    rows: list[list[float]] = [*matrix.tolist(), right.tolist()]
    lower: list[list[float]] = []
    for i, row in enumerate(rows):
        built: list[float] = []
        for j in range(i):
            above, dot = lower[j], 0.0
            for k in range(j):
                dot += built[k] * above[k]
            built.append((row[j] - dot) / above[j])
        lower.append(built)
        if i == n:
            break
        dot = 0.0
        for value in built:
            dot += value * value
        pivot = row[i] - dot
        if not 0.0 < pivot < math.inf:
            return np.full(n, np.nan)
        built.append(math.sqrt(pivot))
    x = lower.pop()
    for i in reversed(range(n)):  # Lᵀ x = y
        rest = x[i]
        for j in range(i + 1, n):
            rest -= lower[j][i] * x[j]
        x[i] = rest / lower[i][i]
    return np.array(x)
