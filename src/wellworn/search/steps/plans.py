"""From a question to a plan: a port, and the planner that goes by rules and needs no model.

A plan is made before the search is opened and without reading anything, so that a planner may take its time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from wellworn.core.values import LAYERS, Layer
from wellworn.search.steps.actions import (
    Action,
    Aggregate,
    DrillDown,
    FilterByRecency,
    FilterByRelevance,
    Plan,
    RecursiveCall,
    SearchLayer,
)
from wellworn.search.steps.cues import READ_CHARS, Shape, sides

SOURCES = 3
"""Best hits that are read for what they name: with one MuSiQue loses 6 points, four and five add nothing."""
_AGES = {"yesterday": 2.0, "week": 14.0, "month": 62.0, "quarter": 184.0, "year": 731.0}
"""Days back that "last …" may mean: the whole of the one before the present one."""
_LAST = re.compile(
    r"\b(?:since|over|during|within|in)\s+(?:the\s+)?(?:last|past|previous)\s+(week|month|quarter|year)\b"
    r"|\bsince\s+(yesterday)\b",
    re.I,
)
"""A span up to now. "What did Ada write last week?" is none: it may ask for what Ada said of the week before."""
_LAYER_WORDS = re.compile(rf"\b(?:across|all|every|each)\b[^?.]*?\b({'|'.join(LAYERS)})s\b", re.I)


class Planner(Protocol):
    """Makes plans. Give your own to `Recursion(planner=…)`; a plan that fails falls back to plain search."""

    def plan(self, query: str, shape: Shape, *, layers: Sequence[Layer], depth: int) -> Plan:
        """What to do for a question; `layers` are those the scope names, `depth` is 0 for the user's question."""
        ...


class RulePlanner:
    """Plans by the shape of the question."""

    def plan(self, query: str, shape: Shape, *, layers: Sequence[Layer], depth: int) -> Plan:
        """One plan a shape; a window of time that the question names comes first, since it leaves less to order."""
        window = [] if depth else _window(query)
        if shape == "gather":
            return (*window, *_by_layer(query, layers), Aggregate(strategy="summarize"))
        if shape == "suppose":
            return (*window, Aggregate(strategy="infer"))
        pair = None if depth else sides(query[:READ_CHARS])
        if pair:
            return (*window, *(RecursiveCall(sub_query=side) for side in pair), Aggregate(strategy="compare"))
        return (*window, FilterByRelevance(top=SOURCES), DrillDown(), Aggregate(strategy="combine"))


def _window(query: str) -> list[Action]:
    found = _LAST.search(query[:READ_CHARS])
    return [FilterByRecency(max_age_days=_AGES[(found[1] or found[2]).lower()])] if found else []


def _by_layer(query: str, layers: Sequence[Layer]) -> list[Action]:
    """A search of its own on a layer that is asked for as such, where the scope names more than that."""
    found = _LAYER_WORDS.search(query[:READ_CHARS])
    return [
        SearchLayer(query=query, layer=layer)
        for layer in layers
        if len(layers) > 1 and found is not None and found[1].lower() == layer
    ]
