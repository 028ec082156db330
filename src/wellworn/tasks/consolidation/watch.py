"""Consolidation by itself: a partition that has so many new strategies and guardrails gets a durable job.

The count is kept beside the entries and raised in the transaction that stores them, so none is missed or counted twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from wellworn.core.clock import Clock
from wellworn.core.values import Partition
from wellworn.jobs.queue import Queue
from wellworn.store.port import Job, Record, Tx
from wellworn.tasks.consolidation.report import Consolidation
from wellworn.tasks.consolidation.run import Consolidator

CONSOLIDATE = "consolidate"
"""The kind of the job."""
TALLY = "consolidation_tally"
"""The kind of the record that counts new entries of a partition."""
_KEY = "new"


@dataclass(frozen=True, kw_only=True)
class ConsolidationWatch:
    """Told of every entry that is added; runs the jobs that come of it."""

    consolidator: Consolidator
    queue: Queue
    clock: Clock
    committed: Callable[[], None]
    """To be called after a transaction in which a job was queued: lets the worker know."""

    def added(self, tx: Tx, partition: Partition, number: int = 1) -> bool:
        """Count new strategies and guardrails in the transaction that adds them; whether a job was queued."""
        now = self.clock()
        tally = tx.record(partition, TALLY, _KEY) or Record(
            partition=partition, kind=TALLY, key=_KEY, body={"new": 0, "all": 0}, created_at=now, updated_at=now
        )
        new, total = tally.body["new"] + number, tally.body["all"] + number
        due = new >= self.consolidator.settings.every
        body = {"new": 0 if due else new, "all": total}
        tx.put_record(replace(tally, body=body, updated_at=now))
        return due and self.queue.add(tx, partition, CONSOLIDATE, f"after {total}", {"after": total})

    def pending(self, partition: Partition) -> int:
        """New entries since a job was last queued."""
        tally = self.queue.store.record(partition, TALLY, _KEY)
        return 0 if tally is None else int(tally.body["new"])

    def run_job(self, job: Job) -> None:
        """The handler: its last transaction ends the job too."""

        def finish(tx: Tx, run: Consolidation) -> None:
            self.queue.finish(tx, job, {"run": run.id, **run.counts})

        self.consolidator.run(job.partition, finish=finish)
