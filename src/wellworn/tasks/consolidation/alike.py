"""Which entries are nearly the same, found by blocked matrix products: exact, in memory that does not grow with n².

Rows are unit vectors, float32. Similarities are computed a block of rows against a block of rows, thresholded, and
dropped; of a bank of n entries only the vectors (4·n·d bytes), a label a row and the pairs found are held. Duplicates
are the connected components of "at least so alike, and in the same group", which is what single linkage cut at that
height gives, in one pass instead of n merges.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]

BLOCK = 1024
MOST_PAIRS = 16
"""Pairs that are kept of one row, of those that may contradict it: a row that half a bank resembles is read so far."""
_SLACK = np.float32(1e-6)
"""float32 products of unit vectors round by about this much: equal texts must not fall short of a threshold of 1."""
SHORT = 2
"""Bounds are computed on this part of the width, one in so many; see `shortened`."""
MANY = 64
"""Where more than one product in so many may be above the threshold, the whole block is computed."""


class Components:
    """Disjoint sets of row numbers, joined many pairs at a time. The label of a set is its smallest row."""

    def __init__(self, size: int) -> None:
        self._parent: Ints = np.arange(size, dtype=np.int64)

    def join(self, left: Ints, right: Ints) -> None:
        """Put the sets of each pair together.

        Each round hangs the larger label of every pair that is still apart below the smaller one and then shortens all
        paths, so the rounds are few: about the logarithm of the longest chain.
        """
        while True:
            a, b = self._parent[left], self._parent[right]
            apart = a != b
            if not apart.any():
                return
            left, right, a, b = left[apart], right[apart], a[apart], b[apart]
            np.minimum.at(self._parent, np.maximum(a, b), np.minimum(a, b))
            self._shorten()

    def _shorten(self) -> None:
        while True:
            higher = self._parent[self._parent]
            if np.array_equal(higher, self._parent):
                return
            self._parent = higher

    @property
    def labels(self) -> Ints:
        """The set of each row."""
        return self._parent

    def sets(self) -> list[Ints]:
        """Sets of more than one row, each ascending, in order of their first rows."""
        order = np.argsort(self._parent, kind="stable")
        sizes = np.bincount(self._parent, minlength=len(order))[self._parent[order]]
        several = order[sizes > 1]  # most rows are alone
        cuts = np.flatnonzero(np.diff(self._parent[several])) + 1
        return [part for part in np.split(several, cuts) if len(part)]


@dataclass(frozen=True, kw_only=True)
class Found:
    """What one comparison of a bank found."""

    duplicates: Components
    pairs: list[tuple[int, int, float]]
    """Rows of one realm but different groups that are alike, with how much: they may contradict each other."""
    left_out: int
    """Pairs of that sort beyond `MOST_PAIRS` of a row, which nobody looks at."""


def compare(
    vectors: Floats,
    realms: Ints,
    groups: Ints,
    *,
    duplicate: float,
    related: float,
    block: int = BLOCK,
    progress: Callable[[int, int], None] | None = None,
) -> Found:
    """Compare every row with every other of its realm.

    `vectors` has shape (n, d); `realms` and `groups` (n,): rows of different realms are never compared, rows of one
    group are duplicates when their product is at least `duplicate`. Rows of zeros are like nothing.
    """
    search = _Search(vectors, groups, duplicate=duplicate, related=related)
    order = np.argsort(realms, kind="stable")
    parts = [part for part in np.split(order, np.flatnonzero(np.diff(realms[order])) + 1) if len(part) > 1]
    total = max(1, sum(len(part) for part in parts))
    done = 0
    for part in parts:
        for start in range(0, len(part), block):
            rows = part[start : start + block]
            for other in range(start, len(part), block):
                search.look(rows, part[other : other + block], same=other == start)
            done += len(rows)
            if progress is not None:
                progress(done, total)
    pairs = sorted(search.pairs)
    return Found(duplicates=search.components, pairs=pairs, left_out=search.left_out)


def shortened(vectors: Floats, width: int) -> Floats:
    """Shorter vectors whose products are never less than those of the whole ones.

    a·b = a₁·b₁ + a₂·b₂ ≤ a₁·b₁ + |a₂||b₂|, where ₁ is the part in the directions that hold most of the bank and ₂ the
    rest. With |·₂| as one more column, the bound is one product of half the width.
    """
    sample = vectors[:: max(1, len(vectors) // 4096)].astype(np.float64)
    _, directions = np.linalg.eigh(sample.T @ sample)  # ascending
    head = vectors @ directions[:, -width:].astype(np.float32)
    rest = np.einsum("ij,ij->i", vectors, vectors) - np.einsum("ij,ij->i", head, head)
    return np.concatenate([head, np.sqrt(np.maximum(rest, 0.0))[:, None]], axis=1).astype(np.float32)


class _Search:
    """Collects what blocks show."""

    def __init__(self, vectors: Floats, groups: Ints, *, duplicate: float, related: float) -> None:
        self._vectors, self._groups = vectors, groups
        self._duplicate = np.float32(duplicate) - _SLACK
        self._related = np.float32(min(related, duplicate)) - _SLACK
        self._kept = np.zeros(len(groups), dtype=np.int64)
        long = len(vectors) > 2 * BLOCK and vectors.shape[1] >= 16 * SHORT
        self._short = shortened(vectors, vectors.shape[1] // SHORT) if long else None
        self._tried = self._in_vain = 0
        self.components = Components(len(groups))
        self.pairs: list[tuple[int, int, float]] = []
        self.left_out = 0

    def look(self, rows: Ints, columns: Ints, *, same: bool) -> None:
        """One block of products; `same` when both are the same rows, of which half is enough."""
        left, right, alike = self._alike(rows, columns)
        if same:
            upper = left < right
            left, right, alike = left[upper], right[upper], alike[upper]
        if not len(left):
            return
        left, right = rows[left], columns[right]
        equal = self._groups[left] == self._groups[right]
        joined = equal & (alike >= self._duplicate)
        self.components.join(left[joined], right[joined])
        self._keep(left[~equal], right[~equal], alike[~equal])

    def _alike(self, rows: Ints, columns: Ints) -> tuple[Ints, Ints, Floats]:
        """Places in the block whose product is at least `related`, and the products."""
        near = None if self._short is None else self._possible(self._short, rows, columns)
        if near is None:
            products = self._vectors[rows] @ self._vectors[columns].T
            places = np.flatnonzero(products >= self._related)
            a, b = np.divmod(places, len(columns))
            return a, b, products.ravel()[places]
        a, b = np.divmod(near, len(columns))
        alike = np.einsum("ij,ij->i", self._vectors[rows[a]], self._vectors[columns[b]])
        high = alike >= self._related
        return a[high], b[high], alike[high]

    def _possible(self, short: Floats, rows: Ints, columns: Ints) -> Ints | None:
        """Places that the bounds do not rule out; None when they rule out too little to be of use."""
        bounds = short[rows] @ short[columns].T
        near = np.flatnonzero(bounds >= self._related - 100 * _SLACK)
        self._tried += 1
        if len(near) * MANY <= bounds.size:
            return near
        self._in_vain += 1
        if self._tried >= 8 and 2 * self._in_vain > self._tried:
            self._short = None  # this bank is too much alike
        return None

    def _keep(self, left: Ints, right: Ints, alike: Floats) -> None:
        """The nearest of each row that has not had its share, the most alike first."""
        free = (self._kept[left] < MOST_PAIRS) & (self._kept[right] < MOST_PAIRS)
        self.left_out += int(len(left) - free.sum())
        left, right, alike = left[free], right[free], alike[free]
        order = np.lexsort((right, -alike, left))
        left, right, alike = left[order], right[order], alike[order]
        rank = np.arange(len(left)) - np.searchsorted(left, left)  # its place among the pairs of its left row
        near = rank < MOST_PAIRS
        self.left_out += int(len(left) - near.sum())
        left, right, alike = left[near], right[near], alike[near]
        for place in np.lexsort((right, left, -alike)):
            a, b = int(left[place]), int(right[place])
            if self._kept[a] >= MOST_PAIRS or self._kept[b] >= MOST_PAIRS:
                self.left_out += 1
                continue
            self._kept[a] += 1
            self._kept[b] += 1
            self.pairs.append((min(a, b), max(a, b), float(alike[place])))
