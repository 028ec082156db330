"""Sessions become memories: what is worth keeping of a dialogue, with a language model or without one.

Here are the nouns: a proposed memory, what a reflection did, and the settings. Who extracted a memory, a model or the rules, and what becomes of it, is not known here.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import field, fields
from datetime import datetime
from typing import Any

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import InvalidInput
from wellworn.core.values import Kind


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A memory proposed from a session: not stored yet, with the turns it rests on."""

    summary: str
    """A sentence that stands alone: names, not "I"; dates resolved against the turn's time."""
    turns: tuple[int, ...]
    """The numbers of the turns it rests on, ascending: its evidence."""
    kind: Kind = "fact"
    speaker: str | None = None
    """Whom it is about, who said it."""
    confidence: float = 0.6
    valid_from: datetime | None = None
    """When the text says since when it holds; None where it does not say."""
    valid_to: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class ReflectedMemory:
    """One memory of a reflection: what was done with it, on which evidence."""

    action: str
    """`add`, `same` (was there already), `merge`, `supersede` or `correct`."""
    text: str
    kind: str
    turns: tuple[int, ...]
    evidence: str
    confidence: float
    id: str
    """The entry that says it now."""
    why: str = ""
    old_id: str | None = None
    """The entry that was merged into, superseded or corrected."""
    old_text: str = ""


@dataclass(frozen=True, kw_only=True)
class Reflection:
    """What became of turns [`start`, `stop`) of a session."""

    session_id: str
    start: int
    stop: int
    memories: list[ReflectedMemory] = field(default_factory=list)
    dropped: dict[str, int] = field(default_factory=dict)
    """Proposed memories that were not believed, by reason."""
    skipped: dict[int, str] = field(default_factory=dict)
    """Turn number → why the turn gave no memory: "question", "small talk", "said by the assistant", …"""
    by: str = "rules"
    """The model that extracted, or `rules`."""
    fallback: str = ""
    """Why rules answered although there is a model."""

    def counts(self) -> dict[str, int]:
        """How many memories by what was done with them."""
        return dict(Counter(written.action for written in self.memories))

    def result(self) -> dict[str, Any]:
        """What a job keeps of it: ids, numbers and reasons, no text."""
        return {
            **self.counts(),
            "dropped": sum(self.dropped.values()),
            "skipped": {str(number): why for number, why in self.skipped.items()},
            "by": self.by,
            "ids": [written.id for written in self.memories],
        }


@dataclass(frozen=True, kw_only=True)
class ReflectionSettings:
    """When sessions become memories."""

    every_turns: int | None = None
    """Reflect in the middle of a session, whenever this many turns are new; None waits for its end."""
    idle_minutes: float | None = 30.0
    """A session without an end is reflected on after this long without a turn; None leaves it."""
    summarize_above: int = 30
    """Turns of a session without a summary beyond which a summariser, if there is one, writes one."""
    keep_jobs_days: float | None = 7.0
    """Jobs that are done are dropped after this long; None keeps them."""

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            whole = each.name in ("every_turns", "summarize_above")
            if value is None and each.name != "summarize_above":
                continue
            if isinstance(value, bool) or not isinstance(value, int if whole else int | float) or not value >= whole:
                raise InvalidInput(f"reflection.{each.name}", f"{value!r} is not a number of at least {int(whole)}")
