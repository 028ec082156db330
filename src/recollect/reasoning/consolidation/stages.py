"""How far items have come, consolidation included: derived from the runs, so that a run writes only what it changes.

A run looks at every strategy and guardrail of a shelf that is older than itself. So one that is older than the last run
that came to its end, and that nobody has undone, is `active`; one that is older than a run under way is
`consolidating`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from recollect.reasoning.consolidation.report import RUN
from recollect.reasoning.consolidation.run import STALE_S
from recollect.reasoning.items import Stage, stage_of
from recollect.stores.base import Store
from recollect.types import Entry, Shelf

_MANY = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Stages:
    """What runs over some shelves say of their items."""

    ended: Mapping[Shelf, datetime]
    """When the last run began that came to its end."""
    under_way: Mapping[Shelf, datetime]
    """When the run began that is under way."""

    def of(self, entry: Entry) -> Stage:
        """How far an item has come."""
        if entry.state in ("pruned", "superseded"):
            return "pruned"
        if _older(entry, self.under_way):
            return "consolidating"
        return "active" if _older(entry, self.ended) else stage_of(entry)


def stages_of(store: Store, shelves: Iterable[Shelf], now: datetime) -> Stages:
    """What the runs over these shelves say."""
    ended: dict[Shelf, datetime] = {}
    under_way: dict[Shelf, datetime] = {}
    for shelf in shelves:
        for run in store.dossiers(shelf=shelf, kinds=[RUN], limit=_MANY):
            if run.state == "done":
                ended[shelf] = max(run.created_at, ended.get(shelf, run.created_at))
            elif run.state == "running" and now - run.updated_at < timedelta(seconds=STALE_S):
                under_way[shelf] = max(run.created_at, under_way.get(shelf, run.created_at))
    return Stages(ended=ended, under_way=under_way)


def _older(entry: Entry, begins: Mapping[Shelf, datetime]) -> bool:
    began = begins.get(entry.shelf)
    return began is not None and entry.created_at <= began
