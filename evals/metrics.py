"""How good a ranking is, with binary relevance: pure functions over names.

A ranking is best first. A name that occurs again counts where it occurs first, so the k in every metric counts
distinct names. Every score lies in [0, 1]. Knows nothing about memories or data sets.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import TypeVar

Name = TypeVar("Name", bound=Hashable)


def distinct(names: Iterable[Name]) -> list[Name]:
    """The names without repeats, in the order of their first occurrence."""
    return list(dict.fromkeys(names))


def recall_at_k(ranked: Sequence[Name], relevant: Collection[Name], k: int) -> float:
    """The share of the relevant names that are among the first k."""
    wanted = _checked(relevant, k)
    return len(wanted.intersection(distinct(ranked)[:k])) / len(wanted)


def hit_at_k(ranked: Sequence[Name], relevant: Collection[Name], k: int) -> float:
    """1 when at least one relevant name is among the first k, else 0."""
    return float(recall_at_k(ranked, relevant, k) > 0)


def all_at_k(ranked: Sequence[Name], relevant: Collection[Name], k: int) -> float:
    """1 when every relevant name is among the first k, else 0."""
    return float(recall_at_k(ranked, relevant, k) == 1)


def ndcg_at_k(ranked: Sequence[Name], relevant: Collection[Name], k: int) -> float:
    """Discounted gain over the best possible one: a relevant name at rank i (from 1) gains 1 / log2(i + 1)."""
    wanted = _checked(relevant, k)
    gain = sum(_discount(rank) for rank, name in enumerate(distinct(ranked)[:k], start=1) if name in wanted)
    best = sum(_discount(rank) for rank in range(1, min(k, len(wanted)) + 1))
    return gain / best


def _discount(rank: int) -> float:
    return 1.0 / math.log2(rank + 1)


def _checked(relevant: Collection[Name], k: int) -> set[Name]:
    if k < 1:
        raise ValueError(f"k is {k}; it counts from 1")
    if not relevant:
        raise ValueError("no relevant name: leave such a question out instead of scoring it")
    return set(relevant)
