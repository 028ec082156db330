"""Which questions earn a recursive recall: a score from the words of the question, and a threshold.

    score = 0.20 · min(characters / 200, 1) + 0.40 · keywords + 0.20 · min(hops / 3, 1)
          + 0.10 · [a time is named] + 0.10 · [all are asked for] + 0.30 · [the shape says that it helps]

Signals and weights are those of the design this follows, but for two things. There a keyword counts a twelfth of its
weight, so that no question with one keyword reaches the threshold, its own examples included; here one keyword counts
three quarters of it and two count in full. And the last term is ours: most questions that need several entries use none
of those words (docs/recursive.md has the figures).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from wellworn.search.steps.cues import READ_CHARS, Shape, shape_of

THRESHOLD = 0.3
"""Scores from here on are recursive. 0.5 is a careful start: only what is complex twice over; above 1 is never."""

_WEIGHTS = {"length": 0.20, "keywords": 0.40, "hops": 0.20, "temporal": 0.10, "aggregate": 0.10, "shape": 0.30}
_FULL_LENGTH, _FULL_HOPS, _ONE_KEYWORD = 200, 3, 0.75
_KEYWORDS = re.compile(
    r"\b(?:compar(?:e|es|ed|ing|ison)|differences?|trends?|evolution|evolved?|histor(?:y|ies)|summari[sz]e|summary"
    r"|aggregate|impacts?|relationships?|sequence|analy[sz]e|trace)\b",
    re.I,
)
_HOPS = re.compile(r"\b(?:then|after|followed by|caused|leading to|led to)\b", re.I)
_TEMPORAL = re.compile(r"\b(?:last (?:week|month|quarter|year)|yesterday|since|before|periods?|over time)\b", re.I)
_AGGREGATE = re.compile(r"\b(?:all|every|total|average|count)\b", re.I)


@dataclass(frozen=True, kw_only=True)
class Signals:
    """What the score is made of, each 0 … 1 before its weight."""

    length: float
    keywords: float
    hops: float
    temporal: float
    aggregate: float
    shape: float

    @property
    def score(self) -> float:
        return min(1.0, sum((weight * float(getattr(self, name)) for name, weight in _WEIGHTS.items()), 0.0))


@dataclass(frozen=True, kw_only=True)
class Route:
    """How a question is to be answered, and why."""

    recursive: bool
    shape: Shape
    score: float
    signals: Signals


def signals_of(query: str, shape: Shape = "plain") -> Signals:
    """The signals in a question of this shape."""
    length, query = len(query), query[:READ_CHARS]
    keywords = len({found.lower()[:5] for found in _KEYWORDS.findall(query)})
    return Signals(
        length=min(length / _FULL_LENGTH, 1.0),
        keywords=0.0 if not keywords else _ONE_KEYWORD if keywords == 1 else 1.0,
        hops=min(len(_HOPS.findall(query)) / _FULL_HOPS, 1.0),
        temporal=float(bool(_TEMPORAL.search(query))),
        aggregate=float(bool(_AGGREGATE.search(query))),
        shape=float(shape != "plain"),
    )


def route(query: str, *, threshold: float = THRESHOLD) -> Route:
    """The way for a question: words only, no search, a few hundredths of a millisecond."""
    shape = shape_of(query)
    signals = signals_of(query, shape)
    return Route(recursive=signals.score >= threshold, shape=shape, score=signals.score, signals=signals)
