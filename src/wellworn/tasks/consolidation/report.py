"""What a consolidation did, as people and programs read it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from wellworn.core.values import Partition
from wellworn.store.port import Record
from wellworn.tasks.consolidation.settle import Decision

RUN = "consolidation"
"""The kind of a run's record; `RUN_PART` is that of what it changed, a batch at a time: ids and numbers, no text."""
RUN_PART = "consolidation_part"
REVIEW = "review"
"""The kind of a question to people, see `reasoning.review`."""
ACTIONS = ("merge", "resolve", "flag", "prune", "promote", "decay", "ask")


@dataclass(frozen=True, kw_only=True)
class Consolidation:
    """One run over a partition."""

    id: str
    partition: Partition
    at: datetime
    state: str
    """`running`, `done` or `undone`; a run whose process died stays `running`."""
    entries: int
    """Strategies and guardrails that were looked at."""
    counts: Mapping[str, int]
    """How many of each action: `merge, resolve, flag, prune, promote, decay, ask`."""
    left_out: int = 0
    """Pairs of like entries that were not read for a contradiction, because the entry had enough of them."""
    seconds: float = 0.0
    dry_run: bool = False
    decisions: list[Decision] = field(default_factory=list)
    """In the order made; empty when the run is looked up later."""

    @property
    def changed(self) -> int:
        """How many decisions were made."""
        return sum(self.counts.values())

    def record(self, *, state: str, now: datetime) -> Record:
        body: dict[str, Any] = {
            "entries": self.entries,
            "counts": dict(self.counts),
            "left_out": self.left_out,
            "seconds": self.seconds,
        }
        return Record(
            partition=self.partition, kind=RUN, key=self.id, state=state, body=body, created_at=self.at, updated_at=now
        )


def counted(decisions: list[Decision]) -> dict[str, int]:
    """Decisions by action, in the order of `ACTIONS`, none left out."""
    found = Counter(decision.action for decision in decisions)
    return {action: found.get(action, 0) for action in ACTIONS}


def run_of(record: Record) -> Consolidation:
    """A run as it was recorded."""
    body = record.body
    return Consolidation(
        id=record.key,
        partition=record.partition,
        at=record.created_at,
        state=record.state,
        entries=body["entries"],
        counts=body["counts"],
        left_out=body["left_out"],
        seconds=body["seconds"],
    )


@dataclass(frozen=True, kw_only=True)
class Undone:
    """What taking a run back did."""

    id: str
    restored: int
    """Entries that stand as they stood before the run, but for what happened to them since."""
    kept: list[str]
    """Entries whose state was left as it is: changed since, or said again by another entry."""
    gone: int
    """Entries that were forgotten since."""
