"""Neighbours that change places now and then, so that citing by content can be told from citing by place.

Who reads cites the better of two neighbours more often than the worse one, wherever they stand. Who goes by the place
cites what stands first, though it is the worse one. What was shown stays the same, so Recall@k costs nothing. A logged
recall says it in its level: `person+even` when places 0 and 1, 2 and 3 … were swapped, `person+odd` for 1 and 2, 3 and
4 …. Knows neither rankings nor people.
"""

from __future__ import annotations

from collections.abc import Sequence

from wellworn.ingest.hashing import hash64

PATTERNS = ("even", "odd")
"""By the first place that is swapped with the next."""
TIMES_EXPLORE = 2
"""Recalls with swapped neighbours for one whose last slot tries a candidate. At 1, who turned to citing the first was
not noticed within 200 outcomes; at 2, after some 90."""
FROM = 15
"""Outcomes of a person before any are swapped: what few of them say decides nothing yet."""
LEVELS = tuple(level + end for level in ("base", "prior", "person") for end in ("", "+even", "+odd"))
"""What a logged recall may say of its ranking."""


def lot(share: float, outcomes: int, terms: object) -> int | None:
    """The first place to swap, or None: by a hash of the query and of how much was told, so it can be repeated."""
    if outcomes < FROM:
        return None
    dice = hash64(f"swap:{outcomes}:{terms}")
    return dice // 1000 % 2 if dice % 1000 < 1000 * share else None


def swapped(count: int, first: int | None) -> list[int]:
    """So many places, every other pair from the first on swapped; the last stays where it has no neighbour."""
    order = [*range(count)]
    for place in pairs(count, first):
        order[place], order[place + 1] = order[place + 1], order[place]
    return order


def pairs(count: int, first: int | None) -> Sequence[int]:
    """The first places of the pairs that are swapped among so many."""
    return () if first is None else range(first, count - 1, 2)


def with_swap(level: str, first: int | None) -> str:
    """The level as it is logged."""
    return level if first is None else f"{level}+{PATTERNS[first]}"


def swap_of(level: str) -> int | None:
    """The first place that was swapped in a recall of this logged level."""
    _, _, pattern = level.partition("+")
    return PATTERNS.index(pattern) if pattern in PATTERNS else None


def without_swap(level: str) -> str:
    """The level alone: places of a recall that lost rows are no longer those that were swapped."""
    return level.partition("+")[0]
