"""The little arithmetic that learning rests on, with the same bits on every machine.

BLAS, LAPACK and vectorised exponentials differ in the last bit between processors, and a fold of thousands of steps
would carry that on. Here is only addition, multiplication, division and square root of doubles, which IEEE 754 fixes,
in an order that is written down. Small sizes only: about a dozen features, some forty rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

# ln 2 in two parts: the first has 32 trailing zero bits, so that k · _LN2_HIGH is exact for every k that can occur.
_LN2_HIGH = float.fromhex("0x1.62e42feep-1")
_LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
_FACTORIALS = np.array([[1.0 / math.factorial(n)] for n in range(14)])


def total(rows: Array) -> Array:
    """The sum over the first axis, from first to last (`sum` would choose an order of its own)."""
    if len(rows) == 0:
        return np.zeros(rows.shape[1:])
    summed: Array = np.add.accumulate(rows, axis=0)[-1]
    return summed


def times(matrix: Array, vector: Array) -> Array:
    """matrix (n, m) times vector (m,)."""
    return total((matrix * vector).T)


def halved(rows: Array) -> Array:
    """The sum over the first axis, the second half of the rows added to the first until one is left.

    For large rows: `total` keeps every sum on its way. Leaves other values in `rows`.
    """
    count = len(rows)
    while count > 1:
        half = count // 2
        rows[:half] += rows[count - half : count]
        count -= half
    summed: Array = rows[0]
    return summed


def exp(x: Array) -> Array:
    """e^x for x ≤ 0, to within two units in the last place; 0 below -700."""
    usual = x if x.min(initial=0.0) >= -700.0 else np.maximum(x, -700.0)
    # e^x = 2^k · e^r with |r| ≤ ln 2 / 2, where thirteen terms of the series suffice.
    k = np.rint(usual / math.log(2.0))
    r = (usual - k * _LN2_HIGH) - k * _LN2_LOW
    powers = np.empty((len(_FACTORIALS), r.size))
    powers[0], powers[1:] = 1.0, r.ravel()
    np.multiply.accumulate(powers, axis=0, out=powers)
    powers *= _FACTORIALS
    series = total(powers[::-1]).reshape(r.shape)  # from the smallest
    value: Array = np.ldexp(series, k.astype(np.int32))
    return value if usual is x else np.where(x < -700.0, 0.0, value)


def softmax(x: Array) -> Array:
    """e^x / Σ e^x over the first axis, which has n ≥ 1 places."""
    raised = exp(x - x.max(axis=0))
    return raised / total(raised)


def solve(matrix: Array, right: Array) -> list[float]:
    """x with matrix · x = right, for a symmetric positive definite matrix (its lower half is read); else all NaN.

    Cholesky, matrix = L Lᵀ: half the work of elimination, and it needs no pivoting.
    """
    try:
        return _written_out(len(right))(matrix.tolist(), right.tolist())
    except (ValueError, ZeroDivisionError, OverflowError):  # a pivot that is negative, zero or no number
        return [math.nan] * len(right)


@lru_cache(maxsize=8)
def _written_out(n: int) -> Callable[[list[list[float]], list[float]], list[float]]:
    """Cholesky for n rows with every step written out, as `namedtuple` writes its methods.

    Why not plain code: two of these are a twentieth of an outcome, and whatever gives the same bits takes longer.
    Against this, at a dozen rows: loops over lists 2.9 times, rows as they shrink 4.5, blocks of four rows with their
    arithmetic spelled out 3, numpy column by column 4.5, or 2.5 for two matrices at once. LAPACK has other bits on
    another processor. What is executed is made of the number n and of nothing else; `loops` in the tests says the same
    in ten lines, and a test holds both to the same bits.
    """
    rows = ", ".join(f"[{', '.join(f'a{i}_{j}' if j <= i else '_' for j in range(n))}]" for i in range(n))
    lines = [f"[{rows}] = matrix", f"[{', '.join(f'x{i}' for i in range(n))}] = right"]
    for i in range(n):
        # L[i, j] = (a[i, j] - Σ_k L[i, k] L[j, k]) / L[j, j]
        lines += [
            f"l{i}_{j} = (a{i}_{j}{_minus((f'l{i}_{k}', f'l{j}_{k}') for k in range(j))}) / l{j}_{j}" for j in range(i)
        ]
        lines.append(f"l{i}_{i} = root(a{i}_{i}{_minus((f'l{i}_{k}', f'l{i}_{k}') for k in range(i))})")
        lines.append(f"x{i} = (x{i}{_minus((f'l{i}_{k}', f'x{k}') for k in range(i))}) / l{i}_{i}")  # L y = right
    lines += [
        f"x{i} = (x{i}{_minus((f'l{k}_{i}', f'x{k}') for k in range(i + 1, n))}) / l{i}_{i}" for i in reversed(range(n))
    ]  # Lᵀ x = y
    body = "".join(f"    {line}\n" for line in lines)
    space: dict[str, Any] = {"root": _root}
    exec(f"def solved(matrix, right):\n{body}    return [{', '.join(f'x{i}' for i in range(n))}]", space)  # noqa: S102
    solved: Callable[[list[list[float]], list[float]], list[float]] = space["solved"]
    return solved


def _minus(pairs: Iterable[tuple[str, str]]) -> str:
    return "".join(f" - {a} * {b}" for a, b in pairs)


def _root(pivot: float) -> float:
    """The root of what is positive and finite; ValueError for the rest."""
    if not 0.0 < pivot < math.inf:
        raise ValueError(pivot)
    return math.sqrt(pivot)
