"""What the processes of the tests of jobs do; most of them are killed while they do it."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path

from contract.builders import make_new_entry, make_partition
from wellworn.core.values import Job
from wellworn.jobs import Backoff, Queue, Worker
from wellworn.store import choose_store

PARTITION = make_partition()
PARTS = 5
"""Entries that a job writes."""


def open_queue(location: str | Path) -> Queue:
    store = choose_store(location, durability="normal")
    return Queue(store, max_attempts=10_000, backoff=Backoff(first_s=0.01, most_s=0.01))


def leave_a_trace(queue: Queue, told: Connection) -> Callable[[Job], None]:
    """A handler that writes several entries and finishes in one transaction, and says where it is."""

    def say(what: str, job: Job) -> None:
        told.send((what, job.key))
        time.sleep(0.002)  # who hears it has time to kill us right here

    def write(job: Job) -> None:
        say("begun", job)
        with queue.store.transact() as tx:
            for part in range(PARTS):
                name = f"{job.id} {job.attempts} {part}"
                tx.add(make_new_entry(name, title=job.key, text=name))
                say("written", job)
            say("finishing", job)
            queue.finish(tx, job, {"entries": PARTS})
            say("finished", job)
        say("done", job)

    return write


def work_for_ever(path: str | Path, lease_s: float, told: Connection) -> None:
    """Run jobs as they come."""
    queue = open_queue(path)
    worker = Worker(queue, {"write": leave_a_trace(queue, told)}, lease_s=lease_s)
    told.send(("open", ""))
    while True:
        worker.run_until_empty()
        time.sleep(0.001)


def race_for_jobs(path: Path, number: int, each: int, start: Barrier, told: Connection) -> None:
    """Everyone adds all jobs and runs what it can get; say which it ran, or what went wrong."""
    try:
        queue = open_queue(path)
        ran: list[str] = []
        start.wait(300)
        added = 0
        for n in range(each):
            with queue.store.transact() as tx:
                added += queue.add(tx, PARTITION, "write", f"k{n}", {"n": n})

        def write(job: Job) -> None:
            with queue.store.transact() as tx:
                name = f"{number} {job.id} {job.attempts}"
                tx.add(make_new_entry(name, title=job.key, text=name))
                queue.finish(tx, job)
            ran.append(job.key)

        Worker(queue, {"write": write}, name=f"process {number}").run_until_empty()
        told.send((added, ran))
    except BaseException:
        told.send(traceback.format_exc())
