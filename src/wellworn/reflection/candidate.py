"""What reflection proposes: a memory that is not stored yet, with the turns it rests on.

A value only. Who extracted it, a model or the rules, and what becomes of it, is not known here.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from wellworn.core.values import Kind


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A memory proposed from a session."""

    summary: str
    """A sentence that stands alone: names, not "I"; dates resolved against the turn's time."""
    turns: tuple[int, ...]
    """The numbers of the turns it rests on, ascending: its evidence."""
    kind: Kind = "fact"
    speaker: str | None = None
    """Whom it is about, who said it."""
    title: str = ""
    """The topic, in a few words; empty where nothing but the summary would name it."""
    confidence: float = 0.6
    valid_from: datetime | None = None
    """When the text says since when it holds; None where it does not say."""
    valid_to: datetime | None = None
