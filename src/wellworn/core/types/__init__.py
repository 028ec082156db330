"""The nouns: what is remembered, where it lives, and what a recall answers.

Frozen values without I/O. Knows nothing about how they are stored, embedded or ranked; checking of outside input
happens once, in `ingest.validate`.
"""

from wellworn.core.types.accounts import CacheLevel, CurvePoint, LearningStatus, Receipt, Searching, Stats
from wellworn.core.types.entry import Entry, Link, Turn, Version, fence_item
from wellworn.core.types.recall import (
    Cost,
    Factor,
    Hit,
    Reasoning,
    ReasoningStep,
    Recall,
    RecallResult,
    Step,
    altered,
    filled,
)
from wellworn.core.types.scope import MAX_NAME_CHARS, Partition, Scope
from wellworn.core.types.words import (
    AUTOMATIC_LINK_TYPES,
    KINDS,
    LAYERS,
    LINK_TYPES,
    STATES,
    Kind,
    Layer,
    LinkType,
    State,
    Trust,
)

__all__ = [
    "AUTOMATIC_LINK_TYPES",
    "KINDS",
    "LAYERS",
    "LINK_TYPES",
    "MAX_NAME_CHARS",
    "STATES",
    "CacheLevel",
    "Cost",
    "CurvePoint",
    "Entry",
    "Factor",
    "Hit",
    "Kind",
    "Layer",
    "LearningStatus",
    "Link",
    "LinkType",
    "Partition",
    "Reasoning",
    "ReasoningStep",
    "Recall",
    "RecallResult",
    "Receipt",
    "Scope",
    "Searching",
    "State",
    "Stats",
    "Step",
    "Trust",
    "Turn",
    "Version",
    "altered",
    "fence_item",
    "filled",
]
