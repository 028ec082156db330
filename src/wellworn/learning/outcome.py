"""An outcome as a caller reports it, checked, and what it changes about the entries themselves.

usage += 1                             for each cited entry
confidence = min(c + 0.05, 0.95)       after success, never lowering a higher confidence
confidence = max(c - 0.10, 0.05)       after failure
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import InvalidInput
from wellworn.core.values import Entry, Partition, Scope
from wellworn.ingest.validate import checked_flag, checked_fraction, checked_places, checked_query
from wellworn.learning.records import LoggedRecall

MaySee = Callable[[Partition], bool]
"""Whether the caller may report outcomes of the recalls of a partition."""

SUCCESS_STEP, HIGHEST = 0.05, 0.95
FAILURE_STEP, LOWEST = 0.10, 0.05


@dataclass(frozen=True, kw_only=True)
class OutcomeInput:
    """One outcome. `places` are those that were cited, or those that a verdict is about (None: all shown)."""

    kind: str
    value: dict[str, Any]
    places: tuple[int, ...] | None = None

    def rows(self, recall: LoggedRecall) -> list[int]:
        """Row numbers of the entries it is about."""
        if self.places is None:
            return list(recall.nos[: recall.shown])
        for place in self.places:
            if place >= recall.shown:
                raise InvalidInput(self.kind, f"{place} is past the {recall.shown} hits of this recall", "count from 0")
        return [recall.nos[place] for place in self.places]


def seen_by(scope: Scope) -> MaySee:
    """Recalls of the partitions that a scope sees."""
    return frozenset(scope.partitions()).__contains__


def outcome_input(
    *,
    cited: Sequence[int] | None = None,
    used: float | None = None,
    ignored: bool = False,
    refined: str | None = None,
    success: bool | None = None,
) -> OutcomeInput:
    """The one outcome given; none or several are an error."""
    given: list[OutcomeInput] = []
    if cited is not None:
        given.append(OutcomeInput(kind="cited", value={}, places=checked_places(cited)))
    if used is not None:
        given.append(OutcomeInput(kind="used", value={"quality": checked_fraction("used", used)}))
    if checked_flag("ignored", ignored):
        given.append(OutcomeInput(kind="ignored", value={}))
    if refined is not None:
        given.append(OutcomeInput(kind="refined", value={"query": checked_query(refined)}))
    if success is not None:
        given.append(OutcomeInput(kind="verdict", value={"success": checked_flag("success", success)}))
    if len(given) != 1:
        raise InvalidInput("outcome", f"{len(given)} were given", "give one of cited, used, ignored, refined, success")
    return given[0]


def judged(entry: Entry, success: bool, now: datetime, *, step: float = FAILURE_STEP) -> Entry:
    """An entry that was part of a success or a failure; `step` is what a failure costs."""
    if success:
        higher = max(entry.confidence, min(HIGHEST, round(entry.confidence + SUCCESS_STEP, 6)))
        entry = replace(entry, confidence=higher, success_count=entry.success_count + 1)
    else:
        lower = min(entry.confidence, max(LOWEST, round(entry.confidence - step, 6)))
        entry = replace(entry, confidence=lower, failure_count=entry.failure_count + 1)
    return replace(entry, updated_at=max(now, entry.updated_at))
