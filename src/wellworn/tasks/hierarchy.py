"""The bank as levels of memory: views over its entries, computed when asked for and stored nowhere.

| view                 | holds                                                                        |
|----------------------|------------------------------------------------------------------------------|
| `episodic.recent`    | learned in the last 24 hours, not promoted                                   |
| `episodic.working`   | learned in the last 30 days, not promoted                                    |
| `episodic.older`     | learned earlier, not promoted: what pruning and decay work on                |
| `semantic.knowledge` | promoted                                                                     |
| `semantic.meta`      | promoted, and about others: it `entails` or `refines` at least two entries   |
| `procedural.skills`  | promoted, and says what to do step by step                                   |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from wellworn.core.values import Entry, Link
from wellworn.tasks.consolidation.rows import PROMOTED

RECENT = timedelta(hours=24)
WORKING = timedelta(days=30)
ABOUT = ("entails", "refines")
LEAST_ABOUT = 2
VIEWS = (
    "episodic.recent",
    "episodic.working",
    "episodic.older",
    "semantic.knowledge",
    "semantic.meta",
    "procedural.skills",
)


@dataclass(frozen=True, kw_only=True)
class Hierarchy:
    """Entries by view; each is in exactly one."""

    views: Mapping[str, Sequence[Entry]] = field(default_factory=dict)

    def __getitem__(self, view: str) -> Sequence[Entry]:
        return self.views[view]

    def counts(self) -> dict[str, int]:
        return {view: len(entries) for view, entries in self.views.items()}


def hierarchy_of(entries: Sequence[Entry], links: Sequence[Link], now: datetime) -> Hierarchy:
    """Sort active entries into the views, each view by falling confidence, then by age."""
    about = Counter(link.source for link in set(links) if link.type in ABOUT)
    views: dict[str, list[Entry]] = {view: [] for view in VIEWS}
    for entry in sorted(entries, key=lambda entry: (-entry.confidence, entry.created_at, entry.id)):
        views[view_of(entry, about[entry.id], now)].append(entry)
    return Hierarchy(views=views)


def view_of(entry: Entry, about: int, now: datetime) -> str:
    """The view of one entry that is about so many others."""
    promoted = entry.metadata.get(PROMOTED)
    if promoted:
        if promoted["to"] == "procedural":
            return "procedural.skills"
        return "semantic.meta" if about >= LEAST_ABOUT else "semantic.knowledge"
    age = now - entry.created_at
    return "episodic.recent" if age <= RECENT else "episodic.working" if age <= WORKING else "episodic.older"
