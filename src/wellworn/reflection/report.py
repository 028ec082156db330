"""What a reflection did, or would do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from wellworn.core.values import Cost


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
    why: str = ""
    id: str | None = None
    """The entry that says it now; None while nothing was written."""
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
    cost: Cost = field(default_factory=Cost)
    dry_run: bool = False

    def counts(self) -> dict[str, int]:
        """How many memories by what was done with them."""
        found: dict[str, int] = {}
        for written in self.memories:
            found[written.action] = found.get(written.action, 0) + 1
        return found

    def result(self) -> dict[str, Any]:
        """What a job keeps of it: ids and numbers, no text."""
        return {
            **self.counts(),
            "dropped": sum(self.dropped.values()),
            "by": self.by,
            "ids": [written.id for written in self.memories if written.id is not None],
        }
