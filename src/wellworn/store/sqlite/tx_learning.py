"""Writing the log that learning reads again, and what was learned from it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from wellworn.core.errors import StoreError
from wellworn.core.values import Partition
from wellworn.store.logged import own_recall
from wellworn.store.port import LoggedRecall
from wellworn.store.sqlite import learning_log
from wellworn.store.sqlite.tx_numbers import NumbersTx


class LearningTx(NumbersTx):
    """Recalls, outcomes and policies."""

    def add_recalls(self, recalls: Sequence[LoggedRecall]) -> None:
        for recall in [own_recall(recall) for recall in recalls]:
            if not learning_log.has_recall(self._db, recall.id):
                learning_log.add_recall(self._db, self._partition_no(recall.partition), recall)

    def logged_recall(self, recall_id: str) -> LoggedRecall | None:
        found = learning_log.recall_by_id(self._db, recall_id)
        if found is None:
            return None
        recall, self._numbers[recall.partition], self._recalls[recall_id] = found
        return recall

    def logged_query(self, recall: LoggedRecall) -> str | None:
        found = learning_log.numbers_of(self._db, recall.id)
        if found is None:
            return None
        self._recalls[recall.id], self._numbers[recall.partition], query = found
        return query

    def add_outcome(self, recall_id: str, kind: str, value: dict[str, Any], at: datetime) -> int | None:
        number = self._recalls.get(recall_id)
        if number is None:
            found = learning_log.numbers_of(self._db, recall_id)
            if found is None:
                raise StoreError(f"no recall {recall_id!r} in the log to tell an outcome of")
            number = found[0]
        return learning_log.add_outcome(self._db, number, kind, value, at)

    def policy(self, tenant: str, partition: Partition | None, *, profile: str = "default") -> str | None:
        return learning_log.policy(self._db, tenant, partition, profile)

    def policies(self, partition: Partition, *, profile: str = "default") -> tuple[str | None, str | None]:
        return learning_log.policies(self._db, partition, profile)

    def put_policy(self, tenant: str, partition: Partition | None, state: str, *, profile: str = "default") -> None:
        if partition is not None and partition.tenant != tenant:
            raise StoreError(f"partition {partition} is not of tenant {tenant!r}")
        learning_log.put_policy(
            self._db, tenant, None if partition is None else self._partition_no(partition), state, profile
        )

    def drop_policies(self, tenant: str, *, profile: str | None = None) -> int:
        return learning_log.drop_policies(self._db, tenant, profile)
