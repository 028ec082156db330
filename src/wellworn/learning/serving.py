"""What serves a partition at a moment, as a recall needs it."""

from __future__ import annotations

from dataclasses import dataclass

from wellworn.learning.echoes import Echoes
from wellworn.learning.lowrank import LowRank
from wellworn.learning.ranker import Ranker


@dataclass(frozen=True, kw_only=True)
class Serving:
    """Which ranking serves a partition now: a level, its weights (None for the base), and how many outcomes it rests on.

    None while a person's feedback is distrusted: what it says of a candidate that is tried teaches nothing.
    """

    level: str
    ranker: Ranker | None
    outcomes: int
    residual: LowRank | None = None
    """Matrices on top of a person's ranker."""
    echoes: Echoes | None = None
    """What became of the person's earlier questions; None when nothing was told yet."""
    told: int = 0
    """The same for swapping neighbours, which whoever is distrusted for citing by place must be able to disprove."""
