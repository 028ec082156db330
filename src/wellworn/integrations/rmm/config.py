"""The numbers of the reranker on a user's own parts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from wellworn.core.errors import InvalidInput
from wellworn.ingest.validate import checked_flag, checked_k
from wellworn.learning.residual import BASELINE, CANDIDATES, ETA, SHOWN, TAU


@dataclass(frozen=True, kw_only=True)
class RerankerConfig:
    """Top-K, Top-M, τ and η are the paper's. `scale` and `baseline` are not, since its own do harm; see `paper`."""

    top_k: int = CANDIDATES
    """Candidates from the index."""
    top_m: int = SHOWN
    """Of these, memories that are shown."""
    temperature: float = TAU
    """τ: the lower, the less chance decides."""
    learning_rate: float = ETA
    """η."""
    baseline: float | None = None
    """b: what a reward, +1 or -1, is compared with; None is the running mean of this person's rewards."""
    scale: float = 20.0
    """What scores are multiplied with. Cosines differ by tenths: at 1.0 the lots of Equation 2 drown them."""
    sample: bool = True
    """Whether lots are drawn (Equation 2), or the best by score are shown."""
    seed: int | None = None
    """Of the lots."""

    @classmethod
    def paper(cls) -> RerankerConfig:
        """Every number as in the paper: b = 0.5, and scores as they are."""
        return cls(baseline=BASELINE, scale=1.0)

    def __post_init__(self) -> None:
        checked_k(self.top_k)
        checked_k(self.top_m)
        checked_flag("sample", self.sample)
        if self.top_m > self.top_k:
            raise InvalidInput("top_m", f"{self.top_m} is more than top_k, {self.top_k}", "show at most what is found")
        for name in ("temperature", "learning_rate", "scale"):
            _number(name, getattr(self, name), above=0.0)
        if self.baseline is not None:
            _number("baseline", self.baseline, above=-math.inf)


def config_of(given: RerankerConfig | Mapping[str, Any] | None) -> RerankerConfig:
    """The settings, checked; a mapping has the same names."""
    if given is None:
        return RerankerConfig()
    if isinstance(given, RerankerConfig):
        return given
    known = {field.name for field in fields(RerankerConfig)}
    unknown = [name for name in given if name not in known]
    if unknown:
        raise InvalidInput("reranker_config", f"{unknown[0]!r} is no setting", f"use {', '.join(sorted(known))}")
    return RerankerConfig(**given)


def _number(name: str, value: object, *, above: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not above < value < math.inf:
        raise InvalidInput(name, f"{value!r} is not a number" + (" above 0" if above == 0 else ""))
