"""Jobs in memory. Those in here are never changed and shared between copies; the port hands out copies of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from wellworn.core.errors import StoreError
from wellworn.core.values import Partition
from wellworn.store.port import Job


@dataclass(kw_only=True)
class Jobs:
    """The jobs of a whole store, in the order they were added."""

    by_id: dict[str, Job] = field(default_factory=dict)
    by_key: dict[tuple[Partition, str, str], str] = field(default_factory=dict)
    """Partition, kind and key → id."""

    def copy(self) -> Jobs:
        return Jobs(by_id=dict(self.by_id), by_key=dict(self.by_key))

    # -- reading ---------------------------------------------------------------------------------------------------

    def next_due(self, now: datetime, *, kinds: Sequence[str] | None, tenant: str | None, id: str | None) -> Job | None:
        """The one that has been due the longest and that nobody holds."""
        due = [
            job
            for job in self.by_id.values()
            if _claimable(job, now)
            and job.due_at <= now
            and (kinds is None or job.kind in kinds)
            and tenant in (None, job.partition.tenant)
            and id in (None, job.id)
        ]
        return min(due, key=lambda job: job.due_at, default=None)

    def listed(
        self,
        *,
        tenant: str | None,
        partition: Partition | None,
        states: Sequence[str] | None,
        kinds: Sequence[str] | None,
    ) -> Iterator[Job]:
        """Newest first."""
        for job in reversed(self.by_id.values()):
            if (
                tenant in (None, job.partition.tenant)
                and partition in (None, job.partition)
                and (states is None or job.state in states)
                and (kinds is None or job.kind in kinds)
            ):
                yield job

    # -- writing ---------------------------------------------------------------------------------------------------

    def add(self, job: Job) -> None:
        self.by_id[job.id] = job
        self.by_key[job.partition, job.kind, job.key] = job.id

    def put(self, job: Job) -> None:
        """In the place of the one with its id; when it was made stays."""
        if self.by_key.get((job.partition, job.kind, job.key)) != job.id:
            raise StoreError(f"no job {job.id!r} of this partition, kind and key to replace")
        self.by_id[job.id] = replace(job, created_at=self.by_id[job.id].created_at)

    def prune(self, before: datetime) -> int:
        return self._drop([job for job in self.by_id.values() if job.state == "done" and job.updated_at < before])

    def drop_partition(self, partition: Partition) -> int:
        return self._drop([job for job in self.by_id.values() if job.partition == partition])

    def forget_sessions(self, partition: Partition, gone: set[str], cut: set[str]) -> int:
        """Drop the jobs of sessions that are gone; of those that lost some turns drop the ended ones and queue the
        running ones again. Returns how many were dropped."""
        here = [job for job in self.by_id.values() if job.partition == partition]
        about = [(job, name) for job in here if isinstance(name := job.payload.get("session"), str)]
        for job, name in about:
            if name in cut and job.state == "running":
                self.by_id[job.id] = replace(job, state="queued", worker=None, lease_until=None)
        return self._drop(
            [job for job, name in about if name in gone or (name in cut and job.state in ("done", "dead"))]
        )

    def _drop(self, jobs: Sequence[Job]) -> int:
        for job in jobs:
            del self.by_id[job.id], self.by_key[job.partition, job.kind, job.key]
        return len(jobs)


def _claimable(job: Job, now: datetime) -> bool:
    expired = job.lease_until is not None and job.lease_until <= now
    return job.state == "queued" or (job.state == "running" and expired)
