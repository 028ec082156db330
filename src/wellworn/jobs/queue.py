"""The queue of durable jobs: how a job gets from one state to the next.

    queued ── claim ──▸ running ── finish ──▸ done
       ▴                 │    └─── fail, for good ──▸ dead
       ├── fail, wait ───┤                             │
       ├── lease over ───┘                             │
       └──────────────────── retry ────────────────────┘

A job is added in the transaction that gives reason for it, and finished in the one that writes its effects. A worker
has a job on a lease; one that outlives it loses the job, and then `finish` raises, which takes back the effects too. So
they happen once, however often the job is tried. Knows what a store keeps, not what jobs do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from wellworn.core.clock import Clock, NewId, TimeOrderedIds, aware, system_clock
from wellworn.core.errors import InvalidInput, LeaseLost, NotFound
from wellworn.core.values import Partition
from wellworn.jobs.failures import is_permanent, told
from wellworn.store.port import Job, Store, Tx

LEASE_S = 60.0
MAX_ATTEMPTS = 5


@dataclass(frozen=True, kw_only=True)
class Backoff:
    """How long a job waits after a failure: `first_s`, then `factor` times as long each time, up to `most_s`; and up
    to `jitter` of it more, by its id, so that jobs that failed together do not all return together."""

    first_s: float = 5.0
    factor: float = 2.0
    most_s: float = 3600.0
    jitter: float = 0.25

    def wait_s(self, job: Job) -> float:
        """Seconds after the attempt that the job counts."""
        wait_s = self.first_s
        for _ in range(job.attempts - 1):
            wait_s = min(wait_s * self.factor, self.most_s)
        lot = hashlib.blake2b(f"{job.id} {job.attempts}".encode(), digest_size=8).digest()
        return min(wait_s, self.most_s) * (1 + self.jitter * int.from_bytes(lot, "little") / 2**64)


class Queue:
    """Jobs of a store. Any number of queues, in any number of processes, may work on one store."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock = system_clock,
        new_id: NewId | None = None,
        max_attempts: int = MAX_ATTEMPTS,
        backoff: Backoff | None = None,
    ) -> None:
        if max_attempts < 1:
            raise InvalidInput("max_attempts", f"{max_attempts} is less than one", "give at least 1")
        self.store = store
        self._clock = aware(clock)
        self._new_id = new_id or TimeOrderedIds()
        self._max_attempts = max_attempts
        self._backoff = backoff or Backoff()

    # -- before a job runs ---------------------------------------------------------------------------------------

    def add(
        self,
        tx: Tx,
        partition: Partition,
        kind: str,
        key: str,
        payload: Mapping[str, Any],
        *,
        due_at: datetime | None = None,
    ) -> bool:
        """Queue a job in the caller's own transaction: either both last or neither.

        False when the partition has a job of this kind and key already, whatever became of it. `payload` holds ids and
        numbers, never text; a job about a session names it as `payload["session"]`.
        """
        return tx.add_job(self._new(partition, kind, key, payload, due_at))

    def _new(
        self, partition: Partition, kind: str, key: str, payload: Mapping[str, Any], due_at: datetime | None
    ) -> Job:
        now = self._clock()
        return Job(
            id=self._new_id(),
            partition=partition,
            kind=kind,
            key=key,
            payload=dict(payload),
            due_at=due_at or now,
            created_at=now,
            updated_at=now,
        )

    def claim(
        self,
        worker: str,
        *,
        lease_s: float = LEASE_S,
        kinds: Sequence[str] | None = None,
        tenant: str | None = None,
        id: str | None = None,
    ) -> Job | None:
        """The next job that is due, for this worker alone until the lease is over; None when there is none.

        A job that has had all its attempts and still runs on a lease that is over took its workers down with it; it
        is given up here.
        """
        now = self._clock()
        until = now + timedelta(seconds=lease_s)
        with self.store.transact() as tx:
            while (job := tx.claim_job(worker, now, until, kinds=kinds, tenant=tenant, id=id)) is not None:
                if job.attempts <= self._max_attempts:
                    return job
                lost = f"LeaseLost: {self._max_attempts} attempts began and none of them ended"
                tx.put_job(_ended(job, "dead", now, attempts=job.attempts - 1, error=lost))
        return None

    def take(
        self,
        worker: str,
        partition: Partition,
        kind: str,
        key: str,
        payload: Mapping[str, Any],
        *,
        lease_s: float = LEASE_S,
    ) -> Job | None:
        """Queue a job and claim it in one go; or claim the one that is there, if it waits or is dead. None when it is
        done or someone else has it."""
        job = self._new(partition, kind, key, payload, None)
        now = job.created_at
        with self.store.transact() as tx:
            if not tx.add_job(job):
                there = self.store.find_job(partition, kind, key)  # nobody else writes now
                if there is None or there.state not in ("queued", "dead"):
                    return None
                job = _ended(there, "queued", now, attempts=0, due_at=now)
                tx.put_job(job)
            return tx.claim_job(worker, now, now + timedelta(seconds=lease_s), id=job.id)

    def find(self, partition: Partition, kind: str, key: str) -> Job | None:
        """The job of a partition by what it does."""
        return self.store.find_job(partition, kind, key)

    # -- while it runs -------------------------------------------------------------------------------------------

    def held(self, tx: Tx, job: Job) -> Job:
        """The job as it stands, if it still is this claim's; else `LeaseLost`."""
        now = tx.job(job.id)
        if now is None or (now.state, now.worker, now.attempts) != ("running", job.worker, job.attempts):
            raise LeaseLost(job.id)
        return now

    def extend(self, job: Job, *, lease_s: float = LEASE_S) -> Job:
        """Begin the lease anew; `LeaseLost` when someone else has the job, or nobody."""
        now = self._clock()
        with self.store.transact() as tx:
            longer = replace(self.held(tx, job), lease_until=now + timedelta(seconds=lease_s), updated_at=now)
            tx.put_job(longer)
        return longer

    # -- when it ends --------------------------------------------------------------------------------------------

    def finish(self, tx: Tx, job: Job, result: Mapping[str, Any] | None = None) -> Job:
        """Say that the job is done, in the transaction that writes its effects: either both last or neither.

        `LeaseLost` when it is no longer this claim's; let it through, so that the transaction is rolled back.
        `result` holds ids and numbers, never text.
        """
        done = _ended(self.held(tx, job), "done", self._clock(), error="", result=dict(result or {}))
        tx.put_job(done)
        return done

    def settle(self, job: Job) -> Job | None:
        """The job after its handler returned, finished here if the handler did not; None when it is gone."""
        with self.store.transact() as tx:
            try:
                return self.finish(tx, job)
            except LeaseLost:
                return tx.job(job.id)

    def fail(self, job: Job, error: BaseException, *, not_before: datetime | None = None) -> Job | None:
        """End an attempt: the job waits, or is dead when it has had its attempts or another one is of no use.

        Returns the job as it stands then; a job that is no longer this claim's stays as it is, None when it is gone.
        """
        now = self._clock()
        due_at = max(now + timedelta(seconds=self._backoff.wait_s(job)), not_before or now)
        dead = is_permanent(error) or job.attempts >= self._max_attempts
        with self.store.transact() as tx:
            try:
                held = self.held(tx, job)
            except LeaseLost:
                return tx.job(job.id)
            failed = _ended(
                held, "dead" if dead else "queued", now, error=told(error), due_at=held.due_at if dead else due_at
            )
            tx.put_job(failed)
        return failed

    def release(self, job: Job) -> None:
        """Give a job back that was broken off, to be claimed at once; nothing when it is no longer this claim's."""
        with self.store.transact() as tx:
            try:
                tx.put_job(_ended(self.held(tx, job), "queued", self._clock()))
            except LeaseLost:
                return

    def prune(self, days: float) -> int:
        """Drop jobs that were done more than so many days ago, in whatever process; returns how many.

        They were kept as the record that something is done; whoever would queue it again finds that out by itself.
        """
        before = self._clock() - timedelta(days=days)
        with self.store.transact() as tx:
            return tx.prune_jobs(before)

    def retry(self, id: str, *, tenant: str | None = None) -> Job:
        """Queue a dead job again with all its attempts, or let one that waits be due at once."""
        now = self._clock()
        with self.store.transact() as tx:
            job = tx.job(id)
            if job is None or tenant not in (None, job.partition.tenant):
                raise NotFound("job", id)
            if job.state not in ("dead", "queued"):
                raise InvalidInput("job", f"{id} is {job.state}", "only a dead or waiting job can be tried again")
            again = _ended(job, "queued", now, attempts=0, due_at=now)
            tx.put_job(again)
        return again


def _ended(job: Job, state: str, now: datetime, **changes: Any) -> Job:  # any field of Job
    """The job in a state in which nobody holds it."""
    return replace(job, state=state, worker=None, lease_until=None, updated_at=now, **changes)
