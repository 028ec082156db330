"""What learning keeps in memory: recalls, their outcomes in the order they were told, and the learned states.

Recalls in here are never changed and shared between copies; an outcome's value is kept as JSON, as on disk.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from wellworn.core.errors import StoreError
from wellworn.core.values import Partition
from wellworn.store.logged import own_recall
from wellworn.store.port import LoggedOutcome, LoggedRecall


class Told(NamedTuple):
    """An outcome of a recall."""

    recall_id: str
    kind: str
    value: str
    at: datetime


@dataclass(kw_only=True)
class LearningLog:
    """The log of a whole store, and the policies made from it."""

    recalls: dict[str, LoggedRecall] = field(default_factory=dict)
    told: dict[int, Told] = field(default_factory=dict)
    """Outcomes by number; numbers ascend and do not return, so they are in order by themselves."""
    told_of: dict[str, dict[str, int]] = field(default_factory=dict)
    """Recall, kind → number."""
    policies: dict[tuple[str, Partition | None, str], str] = field(default_factory=dict)
    """Tenant, partition (None: the tenant as a whole), profile → state."""
    last_no: int = 0

    def copy(self) -> LearningLog:
        return replace(
            self,
            recalls=dict(self.recalls),
            told=dict(self.told),
            told_of={recall_id: dict(kinds) for recall_id, kinds in self.told_of.items()},
            policies=dict(self.policies),
        )

    # -- reading ---------------------------------------------------------------------------------------------------

    def recall(self, recall_id: str) -> LoggedRecall | None:
        found = self.recalls.get(recall_id)
        return None if found is None else own_recall(found)

    def outcomes(self, tenant: str, partition: Partition | None, after: int, limit: int) -> list[LoggedOutcome]:
        return list(islice(self._outcomes(tenant, partition, after), limit))

    def recent_outcomes(self, partition: Partition, recalls: int, after: int) -> list[LoggedOutcome]:
        ours = (recall.id for recall in reversed(self.recalls.values()) if recall.partition == partition)
        last = set(islice(ours, recalls))
        return [one for one in self._outcomes(partition.tenant, partition, after) if one.recall.id in last]

    def _outcomes(self, tenant: str, partition: Partition | None, after: int) -> Iterator[LoggedOutcome]:
        for no, told in self.told.items():
            recall = self.recalls[told.recall_id]
            if no > after and recall.partition.tenant == tenant and partition in (None, recall.partition):
                yield LoggedOutcome(
                    no=no, recall=own_recall(recall), kind=told.kind, value=json.loads(told.value), at=told.at
                )

    def size_bytes(self) -> int:
        """Bytes of queries and arrays, outcomes and policies."""
        recalls = sum(
            len(recall.query.encode()) + 8 * len(recall.nos) + recall.base.nbytes + recall.features.nbytes
            for recall in self.recalls.values()
        )
        told = sum(len(told.value.encode()) for told in self.told.values())
        return recalls + told + sum(len(state.encode()) for state in self.policies.values())

    # -- writing ---------------------------------------------------------------------------------------------------

    def tell(self, told: Told) -> int | None:
        """The outcome's number, or None when there is one of its kind."""
        if told.recall_id not in self.recalls:
            raise StoreError(f"no recall {told.recall_id!r} in the log to tell an outcome of")
        kinds = self.told_of.setdefault(told.recall_id, {})
        if told.kind in kinds:
            return None
        self.last_no += 1
        self.told[self.last_no] = told
        kinds[told.kind] = self.last_no
        return self.last_no

    def drop_partition(self, partition: Partition) -> int:
        """Take all that is a partition's; returns how many recalls that was."""
        gone = [recall.id for recall in self.recalls.values() if recall.partition == partition]
        for key in [key for key in self.policies if key[1] == partition]:
            del self.policies[key]
        return self._drop(gone)

    def blank_queries(self, tenant: str, nos: set[int]) -> None:
        """Take the query out of the tenant's recalls that showed one of these rows: it may be about them."""
        for recall in [*self.recalls.values()]:
            if recall.partition.tenant == tenant and not nos.isdisjoint(recall.nos[: recall.shown]):
                self.recalls[recall.id] = replace(recall, query="")

    def _drop(self, recall_ids: list[str]) -> int:
        for recall_id in recall_ids:
            del self.recalls[recall_id]
            for no in self.told_of.pop(recall_id, {}).values():
                del self.told[no]
        return len(recall_ids)

    def drop_policies(self, tenant: str, profile: str | None) -> int:
        gone = [key for key in self.policies if key[0] == tenant and profile in (None, key[2])]
        for key in gone:
            del self.policies[key]
        return len(gone)
