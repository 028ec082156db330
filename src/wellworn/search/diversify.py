"""Maximal marginal relevance: the best rows that do not say the same thing.

Picks greedily argmax λ · score - (1 - λ) · max cosine to what was picked. In the hit's score the penalty is the factor
`diversity`, minus that cosine with weight δ = (1 - λ) / λ: the same order, and an explanation shows what it cost.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def diversify(
    scores: npt.NDArray[np.float64], vectors: npt.NDArray[np.float32], k: int, *, lambda_: float
) -> tuple[list[int], list[float]]:
    """Up to k places in the order picked, and each pick's largest cosine to an earlier one (0 for the first)."""
    picked: list[int] = []
    redundancy: list[float] = []
    closest = np.zeros(len(scores))
    open_ = np.ones(len(scores), dtype=bool)
    while len(picked) < min(k, len(scores)):
        value = np.where(open_, lambda_ * scores - (1 - lambda_) * closest, -np.inf)
        best = int(value.argmax())
        picked.append(best)
        redundancy.append(float(closest[best]))
        open_[best] = False
        closest = np.maximum(closest, vectors @ vectors[best])
    return picked, redundancy
