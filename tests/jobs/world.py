"""A clock that is moved by hand, and effects that can be counted: entries with the job's key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import count
from typing import Any

from contract.builders import NOON, make_new_entry, make_partition
from wellworn.core.values import Job, Partition
from wellworn.jobs import Queue
from wellworn.jobs.queue import list_jobs
from wellworn.store.port import Selection, Store, Tx

PARTITION = make_partition()
PARTITIONS = [PARTITION, make_partition("bob"), make_partition(tenant="rival")]
_ids = count()


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now

    def forward(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def make_queue(store: Store, clock: Clock) -> Queue:
    return Queue(store, clock=clock, new_id=lambda: f"job {next(_ids)}", max_attempts=3)


def add(queue: Queue, *keys: str, kind: str = "write", partition: Partition = PARTITION) -> list[bool]:
    """In a transaction of their own."""
    with queue.store.transact() as tx:
        return [queue.add(tx, partition, kind, key, {"n": n}) for n, key in enumerate(keys)]


def effect(tx: Tx, job: Job) -> None:
    """Leaves a trace of this attempt: an entry whose id is new every time, and whose title is the job's key."""
    name = f"{job.id} {next(_ids)}"
    tx.add(make_new_entry(name, partition=job.partition, title=job.key, text=name))


def writer(queue: Queue) -> Callable[[Job], None]:
    """A handler that leaves a trace and finishes, in one transaction."""

    def write(job: Job) -> None:
        with queue.store.transact() as tx:
            effect(tx, job)
            queue.finish(tx, job, {"entries": 1})

    return write


def effects(store: Store) -> Counter[str]:
    """How often each key left its trace."""
    return Counter(entry.title for _, entry in store.select(store.partitions(), Selection(), limit=100_000))


def state_of(queue: Queue, key: str) -> str:
    (job,) = [job for job in list_jobs(queue.store) if job.key == key]
    return job.state


def make_job(id: str, **given: Any) -> Job:  # any field of Job
    """A queued job of that id, due at `NOON`; its key is its id."""
    defaults: dict[str, Any] = {
        "partition": make_partition(),
        "kind": "reflect",
        "key": id,
        "due_at": NOON,
        "created_at": NOON,
        "updated_at": NOON,
    }
    return Job(id=id, **(defaults | given))
