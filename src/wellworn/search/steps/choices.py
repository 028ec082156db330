"""The decompositions that a policy chooses among, by name, and the plan of each for a question.

| name      | plan                                                              |
|-----------|-------------------------------------------------------------------|
| `planner` | what the planner makes of it: rules, a model, or your own         |
| `plain`   | none: one search                                                  |
| `bridge`  | the best hits, and what they name                                 |
| `turns`   | the same, turns of dialogues followed too                         |
| `parts`   | a search for each side or clause, then as `bridge`                |
| `gather`  | one hit a place                                                   |
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from wellworn.core.values import Layer
from wellworn.ingest.terms import read_question
from wellworn.search.steps.actions import Aggregate, DrillDown, FilterByRelevance, Plan, SearchLayer
from wellworn.search.steps.cues import READ_CHARS, Shape, sides
from wellworn.search.steps.plans import SOURCES, Planner, RulePlanner

Choice = Literal["planner", "plain", "bridge", "turns", "parts", "gather"]
CHOICES: tuple[Choice, ...] = ("planner", "plain", "bridge", "turns", "parts", "gather")

MOST_PARTS = 4
_BY_RULES: dict[Shape, Choice] = {"bridge": "bridge", "plain": "bridge", "gather": "gather"}
"""What the rules do already for a shape, and so is no choice of its own beside them."""
_CLAUSES = re.compile(r",|;|\b(?:and|or|that|which|who|whose|where|when|while|before|after|then)\b", re.I)
_BRIDGE: Plan = (FilterByRelevance(top=SOURCES), DrillDown(), Aggregate(strategy="combine"))


def choices_for(shape: Shape, planner: Planner) -> tuple[Choice, ...]:
    """What there is to choose from for a question of this shape; the planner's own comes first."""
    same = _BY_RULES.get(shape) if isinstance(planner, RulePlanner) else None
    return tuple(choice for choice in CHOICES if choice != same)


def plan_of(choice: Choice, query: str, shape: Shape, *, planner: Planner, layers: Sequence[Layer]) -> Plan:
    """The plan of a choice; empty for `plain`. Only `planner` asks the planner, which may cost something."""
    match choice:
        case "planner":
            return planner.plan(query, shape, layers=layers, depth=0)
        case "plain":
            return ()
        case "bridge":
            return _BRIDGE
        case "turns":
            return (FilterByRelevance(top=SOURCES), DrillDown(turns=True), Aggregate(strategy="combine"))
        case "parts":
            return (*(SearchLayer(query=part) for part in parts_of(query)), *_BRIDGE)
        case "gather":
            return (Aggregate(strategy="summarize"),)


def parts_of(query: str) -> list[str]:
    """The sides of a comparison, else the clauses that say something, each as a question of its own."""
    query = query[:READ_CHARS]
    pair = sides(query)
    if pair is not None:
        return [*pair]
    clauses = [clause.strip(" ?.!") for clause in _CLAUSES.split(query)]
    return [clause for clause in clauses if len(read_question(clause).terms) >= 2][:MOST_PARTS]
