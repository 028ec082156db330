"""The queue of durable jobs: how a job gets from one state to the next.

    queued ── claim ──▸ running ── finish ──▸ done
       ▴                 │    └─── fail, for good ──▸ dead
       ├── fail, wait ───┤                             │
       ├── lease over ───┘                             │
       └──────────────────── retry ────────────────────┘

A job is added in the transaction that gives reason for it, and finished in the one that writes its effects. A worker
has a job on a lease; one that outlives it loses the job, and then `finish` raises, which takes back the effects too.
So they happen once, however often the job is tried. Jobs are records of the store; this module does not know what they do.
"""

from __future__ import annotations

import hashlib
import re
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import PurePath
from typing import Any

from wellworn.core import errors
from wellworn.core.clock import Clock, NewId, TimeOrderedIds, aware, from_micros, system_clock, to_micros
from wellworn.core.lazy import regex
from wellworn.core.values import JOB_STATES, Job, JobState, Partition
from wellworn.store.events import trusted_now
from wellworn.store.port import Record, RecordFilter, Store, StoreReader, Tx

MOST_CHARS = 200
PERMANENT = (errors.InvalidInput, errors.NotFound, errors.MissingExtra, errors.EmbedderMismatch)
"""What another attempt will not change."""

_QUOTED = regex(r"'[^'\n]*'|\"[^\"\n]*\"|‘[^’\n]*’|“[^”\n]*”")
_ANSWER = regex(r"(HTTP \d{3}):.*", re.DOTALL)


def is_permanent(error: BaseException) -> bool:
    """Whether trying again is of no use: by its type, or because it says so (`retryable`)."""
    return isinstance(error, PERMANENT) or not getattr(error, "retryable", True)


def told(error: BaseException) -> str:
    """The error in one line. Of ours the message, but for what it quotes and what a provider answered; of any other
    only its type and where it came from, because its words may be anybody's."""
    name = type(error).__name__
    if isinstance(error, errors.WellwornError):
        message = _QUOTED.sub("'…'", _ANSWER.sub(r"\1", str(error)))
        line = f"{name}: {' '.join(message.split())}"
    else:
        frames = traceback.extract_tb(error.__traceback__)
        line = f"{name} in {PurePath(frames[-1].filename).name}:{frames[-1].lineno}" if frames else name
    return line if len(line) <= MOST_CHARS else line[: MOST_CHARS - 1] + "…"


JOB = "job"
"""The kind of record that a job is."""
OF_STORE = "whole store"
"""The key of a job that is about the whole store."""
LEASE_S = 60.0
MAX_ATTEMPTS = 5
FIRST_WAIT_S, MOST_WAIT_S = 5.0, 3600.0
_AT_ONCE = 16  # jobs that are looked at in one go for one that a worker can do


def wait_s(job: Job) -> float:
    """Seconds that a job waits after a failure: twice as long each time, and up to a quarter more, by its id, so that jobs
    that failed together do not all return together."""
    lot = hashlib.blake2b(f"{job.id} {job.attempts}".encode(), digest_size=8).digest()
    base = min(FIRST_WAIT_S * 2.0 ** min(job.attempts - 1, 30), MOST_WAIT_S)
    return base * (1 + int.from_bytes(lot, "little") / 2**66)


# -- jobs as records -----------------------------------------------------------------------------------------------


def list_jobs(
    reader: StoreReader,
    *,
    tenant: str | None = None,
    tenants: Sequence[str] | None = None,
    partition: Partition | None = None,
    states: Sequence[str] | None = None,
    kinds: Sequence[str] | None = None,
    limit: int | None = None,
) -> list[Job]:
    """Jobs, newest first."""
    wanted = RecordFilter(kinds=[JOB], tenant=tenant, tenants=tenants, partition=partition, states=states)
    jobs = readable_jobs(reader.records(replace(wanted, limit=limit if kinds is None else None)))
    return [job for job in jobs if kinds is None or job.kind in kinds][:limit]


def readable_jobs(records: Iterable[Record]) -> Iterator[Job]:
    """Jobs that make sense; `wellworn doctor` finds the others, which nobody runs."""
    for record in records:
        with suppress(errors.StoreCorrupt):
            yield job_from(record)


def find_job(reader: StoreReader, partition: Partition, kind: str, key: str) -> Job | None:
    """The job of a partition by what it does."""
    record = reader.record(partition, JOB, f"{kind} {key}")
    return None if record is None else job_from(record)


def job_of_store(reader: StoreReader, kind: str) -> Job | None:
    """The latest job of the whole store of a kind."""
    records = reader.records(RecordFilter(kinds=[JOB], keys=[f"{kind} {OF_STORE}"]))
    return next(readable_jobs(records), None)


def put_job(tx: Tx, job: Job) -> None:
    """Put a job in the place of the one that does the same."""
    tx.put_records([_record_of(job)])


def restart_jobs(tx: Tx, partition: Partition, session_ids: Sequence[str]) -> int:
    """Sessions have lost turns, so what workers have read of them is not all there any more: jobs about them that have
    ended are dropped, running ones are queued again. Returns how many were dropped."""
    dropped = 0
    for session_id in session_ids:
        about = RecordFilter(kinds=[JOB], partition=partition, session=session_id)
        for job in readable_jobs(tx.records(replace(about, states=["running"]))):
            put_job(tx, _ended(job, "queued", job.updated_at))
        dropped += tx.drop_records(replace(about, states=["done", "dead"]))
    return dropped


def job_problem(job: Job) -> str | None:
    """What is impossible about a job, if anything."""
    if job.state not in JOB_STATES:
        return f"is in state {job.state!r}, which is not one of {', '.join(JOB_STATES)}"
    if job.attempts < 0:
        return f"was tried {job.attempts} times"
    running = job.state == "running"
    if (job.lease_until is not None) != running or (job.worker is not None) != running:
        return "is running without a worker and a lease" if running else f"is {job.state} and has a worker or a lease"
    return None


_IN_BODY = ("id", "kind", "key", "payload", "attempts", "worker", "error", "result")


def _record_of(job: Job) -> Record:
    """A waiting job is due at its time, a running one when its lease ends, an ended one never."""
    if (problem := job_problem(job)) is not None:
        raise errors.StoreError(f"job {job.id!r} {problem}")
    return Record(
        partition=job.partition,
        kind=JOB,
        key=f"{job.kind} {job.key}",
        state=job.state,
        session=job.payload.get("session"),
        due_at={"queued": job.due_at, "running": job.lease_until}.get(job.state),
        body={**{name: getattr(job, name) for name in _IN_BODY}, "due_at": to_micros(job.due_at)},
        created_at=job.created_at,
        updated_at=job.updated_at,
    )


def job_from(record: Record) -> Job:
    if record.partition is None:
        raise errors.StoreCorrupt(f"job {record.key!r} is of no partition; run `wellworn doctor`")
    try:
        state: Any = record.state  # checked by whoever needs to know, see `job_problem`
        times = {"created_at": record.created_at, "updated_at": record.updated_at}
        times["due_at"] = from_micros(record.body["due_at"])
        lease_until = record.due_at if record.state == "running" else None
        return Job(partition=record.partition, state=state, lease_until=lease_until, **{**record.body, **times})
    except (KeyError, TypeError, ValueError, OverflowError) as problem:
        raise errors.StoreCorrupt(f"job {record.key!r} cannot be read: {problem}; run `wellworn doctor`") from problem


# -- the queue -----------------------------------------------------------------------------------------------------


class Queue:
    """Jobs of a store. Any number of queues, in any number of processes, may work on one store."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock = system_clock,
        new_id: NewId | None = None,
        max_attempts: int = MAX_ATTEMPTS,
    ) -> None:
        self.store = store
        self.tenants: set[str] = set()
        """Those that this queue was given jobs of, or was told to serve."""
        self._clock = aware(clock)
        self._new_id = new_id or TimeOrderedIds()
        self._max_attempts = max_attempts

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
        self.tenants.add(partition.tenant)
        return tx.add_record(_record_of(self._new(partition, kind, key, payload, due_at))) is not None

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

    def begin(self, kind: str, *, again: bool = False) -> None:
        """Queue a job of the whole store, if it has none of this kind that goes on, or `again` one that was given up. It
        lies with the first partition, whose tenant is not served for that."""

        def goes_on(reader: StoreReader) -> bool:
            job = job_of_store(reader, kind)
            return job is not None and (job.state in ("queued", "running") or (job.state == "dead" and not again))

        if goes_on(self.store):
            return
        with self.store.transact() as tx:
            if not goes_on(tx) and (partitions := tx.partitions()):
                put_job(tx, self._new(partitions[0], kind, OF_STORE, {}, None))

    def claim(
        self,
        worker: str,
        *,
        lease_s: float = LEASE_S,
        kinds: Sequence[str] | None = None,
        tenants: Sequence[str] | None = None,
    ) -> Job | None:
        """The next job that is due, for this worker alone until the lease is over; None when there is none.

        `tenants` says whose jobs; None takes anyone's. Those of the whole store anyone takes, when nothing else is due.

        A job that has had all its attempts and still runs on a lease that is over took its workers down with it; it
        is given up here.
        """
        now = self._clock()
        for due in _due(self.store, now, tenants, kinds):
            back = timedelta(seconds=lease_s)
            if due.lease_until is not None and due.lease_until > now and due.updated_at - now < back:
                continue  # it runs; the clock has gone back by less than a lease
            if kinds is not None and due.kind not in kinds:
                continue
            with self.store.transact(tenant=due.partition.tenant) as tx:
                job = find_job(tx, due.partition, due.kind, due.key)
                if job is None or job != due:
                    continue  # another worker has it, or it was changed
                if job.attempts < self._max_attempts:
                    return self._lease(tx, job, worker, now, lease_s)
                lost = f"LeaseLost: {self._max_attempts} attempts began and none of them ended"
                put_job(tx, _ended(job, "dead", now, error=lost))
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
        with self.store.transact(tenant=partition.tenant) as tx:
            job = find_job(tx, partition, kind, key) or self._new(partition, kind, key, payload, None)
            if job.state not in ("queued", "dead"):
                return None
            now = self._clock()
            return self._lease(tx, replace(job, attempts=0, due_at=now), worker, now, lease_s)

    def _lease(self, tx: Tx, job: Job, worker: str, now: datetime, lease_s: float) -> Job:
        running = replace(
            job,
            state="running",
            attempts=job.attempts + 1,
            worker=worker,
            lease_until=now + timedelta(seconds=lease_s),
            updated_at=now,
        )
        put_job(tx, running)
        return running

    # -- while it runs -------------------------------------------------------------------------------------------

    def held(self, tx: Tx, job: Job) -> Job:
        """The job as it stands, if it still is this claim's; else `LeaseLost`."""
        now = find_job(tx, job.partition, job.kind, job.key)
        claim = ("running", job.id, job.worker, job.attempts)
        if now is None or (now.state, now.id, now.worker, now.attempts) != claim:
            raise errors.LeaseLost(job.id)
        return now

    def extend(self, job: Job, *, lease_s: float = LEASE_S) -> Job:
        """Begin the lease anew; `LeaseLost` when someone else has the job, or nobody."""
        now = self._clock()
        with self.store.transact(tenant=job.partition.tenant) as tx:
            longer = replace(self.held(tx, job), lease_until=now + timedelta(seconds=lease_s), updated_at=now)
            put_job(tx, longer)
        return longer

    # -- when it ends --------------------------------------------------------------------------------------------

    def finish(self, tx: Tx, job: Job, result: Mapping[str, Any] | None = None) -> Job:
        """Say that the job is done, in the transaction that writes its effects: either both last or neither.

        `LeaseLost` when it is no longer this claim's; let it through, so that the transaction is rolled back.
        `result` holds ids and numbers, never text.
        """
        done = _ended(self.held(tx, job), "done", self._clock(), error="", result=dict(result or {}))
        put_job(tx, done)
        return done

    def pause(self, tx: Tx, job: Job, result: Mapping[str, Any]) -> None:
        """Say that a part of the job is done, in the transaction that writes its effects: the rest is due at once, and has all
        attempts."""
        now = self._clock()
        put_job(tx, _ended(self.held(tx, job), "queued", now, attempts=0, due_at=now, error="", result=dict(result)))

    def settle(self, job: Job) -> Job | None:
        """The job after its handler returned, finished here if the handler did not; None when it is gone."""
        return self._end(job, "done", error="", result={})

    def fail(self, job: Job, error: BaseException) -> Job | None:
        """End an attempt: the job waits, or is dead when it has had its attempts or another one is of no use.

        Returns the job as it stands then; a job that is no longer this claim's stays as it is, None when it is gone.
        """
        due_at = self._clock() + timedelta(seconds=wait_s(job))
        dead = is_permanent(error) or job.attempts >= self._max_attempts
        changes = {"error": told(error)} if dead else {"error": told(error), "due_at": due_at}
        return self._end(job, "dead" if dead else "queued", **changes)

    def release(self, job: Job) -> None:
        """Give a job back that was broken off, to be claimed at once; nothing when it is no longer this claim's."""
        self._end(job, "queued")

    def _end(self, job: Job, state: JobState, **changes: Any) -> Job | None:  # any field of Job
        """The job in this state if it is still this claim's, else as it stands; None when it is gone."""
        with self.store.transact(tenant=job.partition.tenant) as tx:
            try:
                ended = _ended(self.held(tx, job), state, self._clock(), **changes)
            except errors.LeaseLost:
                return find_job(tx, job.partition, job.kind, job.key)
            put_job(tx, ended)
        return ended

    def prune(self, days: float, *, tenants: Sequence[str] | None = None) -> int:
        """Drop jobs of these tenants that were done more than so many days ago, in whatever process; returns how many.

        They were kept as the record that something is done; whoever would queue it again finds that out by itself.
        """
        now, dropped = self._clock(), 0
        if tenants is None:
            tenants = [*dict.fromkeys(partition.tenant for partition in self.store.partitions())]
        for tenant in tenants:
            with self.store.transact(tenant=tenant) as tx:
                before = trusted_now(tx, tenant, now) - timedelta(days=days)
                dropped += tx.drop_records(RecordFilter(kinds=[JOB], tenant=tenant, states=["done"], before=before))
        return dropped

    def retry(self, id: str, *, tenant: str | None = None) -> Job:
        """Queue a dead job again with all its attempts, or let one that waits be due at once."""
        now = self._clock()
        with self.store.transact() as tx:
            job = next((job for job in list_jobs(tx, tenant=tenant) if job.id == id), None)
            if job is None:
                raise errors.NotFound("job", id)
            if job.state not in ("dead", "queued"):
                raise errors.InvalidInput(
                    "job", f"{id} is {job.state}", "only a dead or waiting job can be tried again"
                )
            again = _ended(job, "queued", now, attempts=0, due_at=now)
            put_job(tx, again)
        return again


def _due(
    reader: StoreReader, now: datetime, tenants: Sequence[str] | None, kinds: Sequence[str] | None
) -> Iterator[Job]:
    """Jobs that wait and are due, and those that run on a lease that is over, the longest due first."""
    wanted = RecordFilter(kinds=[JOB], tenants=tenants, states=["queued", "running"], due_by=now, order="due")
    first = reader.records(replace(wanted, limit=_AT_ONCE))
    yield from readable_jobs(first)
    if len(first) == _AT_ONCE:  # none of those was for this worker
        yield from readable_jobs(reader.records(wanted))
    if tenants is not None and kinds:
        yield from readable_jobs(
            reader.records(replace(wanted, tenants=None, keys=[f"{kind} {OF_STORE}" for kind in kinds]))
        )


def _ended(job: Job, state: JobState, now: datetime, **changes: Any) -> Job:  # any field of Job
    """The job in a state in which nobody holds it."""
    return replace(job, state=state, worker=None, lease_until=None, updated_at=now, **changes)
