"""The words that every part shares: kinds, states, layers, types of links.

Knows nothing of who uses them.
"""

from __future__ import annotations

from typing import Literal, get_args

Kind = Literal["fact", "preference", "pattern", "note", "episode", "strategy", "guardrail", "summary"]
State = Literal["active", "superseded", "flagged", "pruned"]
Trust = Literal["trusted", "untrusted"]
Layer = Literal["agent", "user", "session", "project", "team", "org", "company"]
LinkType = Literal[
    "context_of",
    "related_to",
    "follows",
    "similar_to",
    "supports",
    "contradicts",
    "elaborates",
    "example_of",
    "refines",
    "entails",
    "requires",
    "enables",
    "derived_from",
    "supersedes",
]

KINDS: tuple[str, ...] = get_args(Kind)
STATES: tuple[str, ...] = get_args(State)
LAYERS: tuple[Layer, ...] = get_args(Layer)
"""Most specific first."""
LINK_TYPES: tuple[str, ...] = get_args(LinkType)
AUTOMATIC_LINK_TYPES: tuple[str, ...] = LINK_TYPES[:4]
