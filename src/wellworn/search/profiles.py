"""Scoring profiles: every constant of ranking, as data.

`default` is the one that measures best (docs/recall.md has the table); `reasoningbank` is the four-factor score of
that paper; `paper` is RMM's plain dot product. A factor that is not in `weights` is not computed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field

from wellworn.core.dataclass import dataclass


@dataclass(frozen=True, kw_only=True)
class Profile:
    """How candidates are scored. Weights name the factors of `retrieval.features`."""

    name: str
    weights: Mapping[str, float]
    """By these candidates are chosen, and ranked where the vectors are not the bundled reader's."""
    in_chats: Mapping[str, float] = field(default_factory=dict)
    """With the reader's vectors: what each factor counts for turns of a chat of one person, and for all beside such chats,"""
    among_people: Mapping[str, float] = field(default_factory=dict)
    """for turns of a talk among people,"""
    remembered: Mapping[str, float] = field(default_factory=dict)
    """and for what is in no talk. Where they are empty, it is `weights`."""
    k1: float = 0.9
    b: float = 0.5
    pivot_terms: float = 50.0
    """Texts up to this long are not discounted for length; a fixed pivot, so no bank-wide average is needed."""
    absent_share: float = 0.5
    """A query term no entry has counts this much of its weight in the best score attainable."""
    related_share: float = 0.7
    """What a related word counts of the question's own."""
    near_terms: tuple[float, float] = (0.3, 0.2)
    """Share of the neighbours' lexical score at distance one and two."""
    near_meaning: tuple[float, float] = (0.6, 0.4)
    """Weight of the neighbours' vectors at distance one and two."""
    answer_share: float = 0.4
    """Share of a short question's lexical score that the turn after it inherits."""
    recency_days: float = 30.0
    """Recency falls to 1/e in this time."""
    confidence_half_life_days: float = math.inf
    """Confidence counts half after this long, in `reliability`; endless by default."""
    typical_chars: float = 150.0
    diversity: float = 0.0
    """Weight δ of the likeness to better hits that is taken off a score (MMR with λ = 1 / (1 + δ)); 0 turns it off."""
    reranker: str = "linear"
    """`linear` (named features, prior, guard) or `paper` (matrices and a sample)."""
    candidates: int = 100
    """Rows that get the full set of factors."""
    link_sources: int = 20
    """Best rows whose hand-made links bring in further candidates."""
    answers: float = 0.0
    """What the reader counts, in a chat, when it reads a question and a candidate together; see `search.together`."""
    reads: int = 0
    """How many of the best candidates it reads so."""
    margin: float = 0.0
    """How far above what it replaced, or what it may contradict, an entry stands at least; 0: neither is looked at."""
    link_share: float = field(default=0.5)
    """Share of a row's score that an entry linked to it is lifted to."""


PROFILES: dict[str, Profile] = {
    "default": Profile(
        name="default",
        margin=0.25,
        recency_days=180.0,
        weights={
            "terms": 8.0,
            "meaning": 10.0,
            "question": -0.8,
            "speaker": 0.8,
            "assistant": -1.5,
            "length": 0.5,
            "recency": 0.5,
            "date": 1.0,
            "unsure": 15.0,
        },
        in_chats={
            "terms": 1.8,
            "meaning": 4.6,
            "sentence": 11.2,
            "assistant": -2.0,
            "asked": 8.3,
            "past": 0.5,
            "recency": 2.4,
            "older": -36.0,
            "former": 83.0,
            "length": 0.7,
            "date": 1.0,
            "unsure": 15.0,
        },
        answers=0.5,
        reads=6,
        remembered={
            "terms": 2.5,
            "sentence": 14.0,
            "question": -0.8,
            "speaker": 0.8,
            "assistant": -1.5,
            "length": 0.5,
            "recency": 0.5,
            "date": 1.0,
            "unsure": 15.0,
        },
        among_people={"terms": 5.7, "meaning": 6.0, "similarity": 6.8, "question": -0.9, "date": 4.3, "unsure": 15.0},
    ),
    "reasoningbank": Profile(
        name="reasoningbank",
        weights={"similarity": 0.65, "recency": 0.15, "reliability": 0.20},
        near_terms=(0.0, 0.0),
        near_meaning=(0.0, 0.0),
        answer_share=0.0,
        link_share=0.0,
        diversity=0.10,
    ),
    "paper": Profile(
        name="paper",
        weights={"similarity": 1.0},
        reranker="paper",
        candidates=20,
        near_terms=(0.0, 0.0),
        near_meaning=(0.0, 0.0),
        answer_share=0.0,
        link_share=0.0,
    ),
}
