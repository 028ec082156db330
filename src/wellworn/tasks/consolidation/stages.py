"""How far items have come, consolidation included: derived from the runs, so that a run writes only what it changes.

A run looks at every strategy and guardrail of a partition that is older than itself. So one that is older than the last run
that came to its end, and that nobody has undone, is `active`; one that is older than a run under way is
`consolidating`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from wellworn.core.values import Entry, Partition
from wellworn.store.port import Store
from wellworn.tasks.consolidation.report import RUN
from wellworn.tasks.consolidation.run import STALE_S
from wellworn.tasks.items import Stage, stage_of

_MANY = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Stages:
    """What runs over some partitions say of their items."""

    ended: Mapping[Partition, datetime]
    """When the last run began that came to its end."""
    under_way: Mapping[Partition, datetime]
    """When the run began that is under way."""

    def of(self, entry: Entry) -> Stage:
        """How far an item has come."""
        if entry.state in ("pruned", "superseded"):
            return "pruned"
        if _older(entry, self.under_way):
            return "consolidating"
        return "active" if _older(entry, self.ended) else stage_of(entry)


def stages_of(store: Store, partitions: Iterable[Partition], now: datetime) -> Stages:
    """What the runs over these partitions say."""
    ended: dict[Partition, datetime] = {}
    under_way: dict[Partition, datetime] = {}
    for partition in partitions:
        for run in store.records(partition=partition, kinds=[RUN], limit=_MANY):
            if run.state == "done":
                ended[partition] = max(run.created_at, ended.get(partition, run.created_at))
            elif run.state == "running" and now - run.updated_at < timedelta(seconds=STALE_S):
                under_way[partition] = max(run.created_at, under_way.get(partition, run.created_at))
    return Stages(ended=ended, under_way=under_way)


def _older(entry: Entry, begins: Mapping[Partition, datetime]) -> bool:
    began = begins.get(entry.partition)
    return began is not None and entry.created_at <= began
