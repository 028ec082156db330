"""What a plan is made of, who makes plans, and the plans the package has.

Actions are values: they say what to do and do nothing themselves. A plan is a sequence of them. It is made before the
search is opened and reads no entry, so a planner may take its time. Layers are named as everywhere; None means any.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Literal, Protocol

from wellworn.core.dataclass import dataclass
from wellworn.core.values import Layer
from wellworn.search.steps.router import Shape

Strategy = Literal["combine", "compare", "summarize"]


@dataclass(frozen=True, kw_only=True)
class SearchLayer:
    """Search one layer, or all, with another query, and add the best rows to the ranking."""

    query: str
    layer: Layer | None = None


@dataclass(frozen=True, kw_only=True)
class DrillDown:
    """Go from the chosen rows (on `source`) to what they name or are linked to (on `target`)."""

    source: Layer | None = None
    target: Layer | None = None
    filter: str = ""
    """The target must have one of these words; empty for no condition."""
    turns: bool = False
    """Whether turns of a dialogue are followed too. On LoCoMo that changed nothing but the time it took."""


@dataclass(frozen=True, kw_only=True)
class FilterByRelevance:
    """Choose the rows to go on from: at most `top`, none that scores less than `min_share` of the best."""

    top: int = 3
    """With one, MuSiQue loses 6 points; four and five add nothing."""
    min_share: float = 0.0


@dataclass(frozen=True, kw_only=True)
class FilterByRecency:
    """Leave out what happened longer ago, counted from the newest entry; not if nothing would be left."""

    max_age_days: float


@dataclass(frozen=True, kw_only=True)
class RecursiveCall:
    """Answer another question with a plan of its own, one level deeper, and add its best rows to the ranking."""

    sub_query: str


@dataclass(frozen=True, kw_only=True)
class Aggregate:
    """Put together what was found: `combine` orders the entries so that they cover the question together; `compare` keeps
    the best of each sub-question and makes a table of them; `summarize` makes a summary (`Recall.digest`)."""

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
    """The action's values in words, without those that are not set."""
    values = ((each.name, getattr(action, each.name)) for each in fields(action))
    return ", ".join(f"{name}={value}" for name, value in values if value not in (None, "", 0.0, False))


class Planner(Protocol):
    """Makes plans. Give your own to `Recursion(planner=…)`; if it fails, the question is searched plainly."""

    def plan(self, query: str, shape: Shape, *, layers: Sequence[Layer], depth: int) -> Plan:
        """The plan for a question; `layers` are those the scope names, `depth` is 0 for the user's question."""
        ...


class RulePlanner:
    """Goes from the best hits to what they name. The only plan by rules: others gained nothing on unseen data."""

    def plan(self, query: str, shape: Shape, *, layers: Sequence[Layer], depth: int) -> Plan:
        return BRIDGE


BRIDGE: Plan = (FilterByRelevance(), DrillDown(), Aggregate())
TURNS: Plan = (FilterByRelevance(), DrillDown(turns=True), Aggregate())

Choice = Literal["planner", "plain", "turns"]
"""The ways of searching that a learned policy chooses among: the planner's plan, one search, or from hits to what they
name along turns of dialogues too."""
