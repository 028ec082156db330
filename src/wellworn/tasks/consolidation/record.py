"""What a run changed, written so that it can be taken back: ids and numbers only.

What an entry said before is in its own history, which goes with it when it is forgotten. Here is only what the history
cannot tell: by how much counters were raised (they are not kept in it), and what the rest looked like afterwards, so
that an undo sees what was changed since by others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from wellworn.core.clock import to_micros
from wellworn.core.values import Entry
from wellworn.ingest.hashing import hash64
from wellworn.tasks.consolidation.rows import CONSOLIDATED, PROMOTED
from wellworn.tasks.consolidation.settle import MERGED

COUNTERS = ("usage_count", "success_count", "failure_count", "repeats")
_OWN_KEYS = (CONSOLIDATED, MERGED, PROMOTED)


@dataclass(frozen=True, kw_only=True)
class Change:
    """How one entry was changed by a run."""

    id: str
    raised: dict[str, int]
    """Counter → by how much; only those that were."""
    confidence: float
    """After the change; so are all below."""
    state: str
    at: int
    evidence: int
    """Its hash."""

    def value(self) -> dict[str, Any]:
        return dict(vars(self))


def change_of(before: Entry, after: Entry) -> Change:
    raised = {name: getattr(after, name) - getattr(before, name) for name in COUNTERS}
    return Change(
        id=after.id,
        raised={name: by for name, by in raised.items() if by},
        confidence=after.confidence,
        state=after.state,
        at=to_micros(after.at),
        evidence=hash64(after.evidence),
    )


def taken_back(now_is: Entry, before: Entry, change: Change, now: datetime) -> Entry:
    """The entry as it would stand without the change: whatever others did to it since stays."""
    counters = {name: max(0, getattr(now_is, name) - by) for name, by in change.raised.items()}
    sure = before.confidence + (now_is.confidence - change.confidence)
    back = replace(
        now_is,
        **counters,
        confidence=min(1.0, max(0.0, sure)) if now_is.confidence != change.confidence else before.confidence,
        metadata=_own_keys_of(before, now_is),
        updated_at=max(now, now_is.updated_at),
    )
    if now_is.state == change.state:
        back = replace(back, state=before.state, valid_to=before.valid_to)
    if to_micros(now_is.at) == change.at:
        back = replace(back, at=before.at)
    if hash64(now_is.evidence) == change.evidence:
        back = replace(back, evidence=before.evidence)
    return back


def _own_keys_of(before: Entry, now_is: Entry) -> dict[str, Any]:
    """The entry's metadata with what consolidation keeps in it as it was before."""
    others = {key: value for key, value in now_is.metadata.items() if key not in _OWN_KEYS}
    return {**others, **{key: before.metadata[key] for key in _OWN_KEYS if key in before.metadata}}
