"""What a plan is made of: typed values that say what to do, and do nothing themselves.

A plan is a sequence of them; `Aggregate` is usually its last. Layers are named as everywhere; none means any.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from wellworn.core.values import Layer

Strategy = Literal["combine", "compare", "summarize", "infer"]


@dataclass(frozen=True, kw_only=True)
class SearchLayer:
    """Search one layer, or all, with a query of its own; what is found comes into the ranking."""

    query: str
    layer: Layer | None = None


@dataclass(frozen=True, kw_only=True)
class DrillDown:
    """Go from the best found (on `source`) to what it names or is linked to (on `target`)."""

    source: Layer | None = None
    target: Layer | None = None
    filter: str = ""
    """Words that the target must have one of; empty for no condition."""
    turns: bool = False
    """Whether turns of a dialogue are followed too: what stands around them is in their score already, and on LoCoMo
    following them changed nothing but the time it took."""


@dataclass(frozen=True, kw_only=True)
class FilterByRelevance:
    """Go on from the best only: at most `top`, none whose score is less than `min_share` of the best one's."""

    top: int = 3
    min_share: float = 0.0


@dataclass(frozen=True, kw_only=True)
class FilterByRecency:
    """Leave out what happened longer ago, counted from the newest entry; not if nothing would be left."""

    max_age_days: float


@dataclass(frozen=True, kw_only=True)
class RecursiveCall:
    """Answer another question with a plan of its own, one level deeper; its hits come into the ranking."""

    sub_query: str


@dataclass(frozen=True, kw_only=True)
class Aggregate:
    """Order what was found: `combine` so that together they cover the question, `compare` so that each side is
    there, `summarize` so that each place is there once, `infer` so that what a person tells of the subject is."""

    strategy: Strategy = "combine"


Action = SearchLayer | DrillDown | FilterByRelevance | FilterByRecency | RecursiveCall | Aggregate
Plan = tuple[Action, ...]

NAMES: dict[type[Action], str] = {
    SearchLayer: "search_layer",
    DrillDown: "drill_down",
    FilterByRelevance: "filter_by_relevance",
    FilterByRecency: "filter_by_recency",
    RecursiveCall: "recursive_call",
    Aggregate: "aggregate",
}


def detail_of(action: Action) -> str:
    """The action's values in words, those that are not set left out."""
    values = ((field.name, getattr(action, field.name)) for field in fields(action))
    return ", ".join(f"{name}={value}" for name, value in values if value not in (None, "", 0.0, False))
