"""What the processes of these tests do; each is started, watched and sometimes killed from outside."""

from __future__ import annotations

import time
import traceback
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path

from contract.builders import make_new_entry, make_partition
from wellworn import Memory, Scope
from wellworn.core.values import Job
from wellworn.jobs import Queue, Worker
from wellworn.store import choose_store
from wellworn.store.sqlite.connection import Connections

ADA = Scope(tenant="acme", user="ada")
EMBEDDER = "hash:8"
PARTITION = make_partition()
PARTS = 5
"""Entries that a job writes."""


def write_for_ever(path: str | Path, durability: str, name: str, told: Connection) -> None:
    """Remember, add turns, edit and forget without end; say each id once the call has returned."""
    with Memory.open(path, embedder=EMBEDDER, durability=durability) as mem:  # type: ignore[arg-type]
        session = mem.session(scope=ADA, session_id=name)
        number = 0
        while True:
            number += 1
            (entry_id,) = mem.remember(f"{name} fact {number}", scope=ADA, tags=[name, "fact"])
            told.send(("kept", entry_id, f"{name} fact {number}"))
            told.send(("kept", session.add("user", f"{name} turn {number}"), f"{name} turn {number}"))
            if number % 3 == 0:
                told.send(("changing", entry_id, f"{name} edited {number}"))
                mem.edit(entry_id, scope=ADA, text=f"{name} edited {number}")
                told.send(("kept", entry_id, f"{name} edited {number}"))
            if number % 5 == 0:
                told.send(("going", entry_id, ""))
                mem.forget(ids=[entry_id], scope=ADA)
                told.send(("gone", entry_id, ""))


def write_batches(path: Path, name: str, count: int, told: Connection) -> None:
    """One remember_many of several batches; say how far it is."""
    with Memory.open(path, embedder=EMBEDDER, durability="normal") as mem:
        told.send(0)
        mem.remember_many(
            [f"{name} item {n}" for n in range(count)],
            scope=Scope(tenant="acme", user=name),
            progress=lambda done, _: told.send(done),
        )


def race(path: Path, number: int, count: int, start: Barrier, told: Connection) -> None:
    """Open the file together with everyone else and write to it; say every id, or what went wrong."""
    try:
        start.wait(300)
        ids: list[tuple[str, str | None]] = []
        with Memory.open(path, embedder=EMBEDDER) as mem:
            mine = Scope(tenant="acme", user=f"u{number}")
            session = mem.session(scope=ADA, session_id="shared")
            for n in range(count):
                ids += [(entry_id, "ada") for entry_id in mem.remember(f"process {number} says {n}", scope=ADA)]
                ids.append((session.add("user", f"turn {n} of {number}"), "ada"))
                ids += [(entry_id, mine.user) for entry_id in mem.remember(f"private {n}", scope=mine, tags=["a", "b"])]
                mem.edit(ids[-1][0], scope=mine, text=f"private {n} edited")
                (short_lived,) = mem.remember(f"short-lived {n}", scope=mine)
                mem.forget(ids=[short_lived], scope=mine)
                assert len(mem.recall("private", scope=mine, k=100)) == n + 1
        told.send(ids)
    except BaseException:
        told.send(traceback.format_exc())


def open_and_close_for_ever(path: Path, told: Connection) -> None:
    """Open a file, write and close it, again and again."""
    while True:
        connections = Connections(path, durability="full")
        with connections.writing() as db:
            db.execute("CREATE TABLE IF NOT EXISTS visits (at)")
            db.execute("INSERT INTO visits VALUES (1)")
        connections.close()
        told.send("closed")


def open_queue(location: str | Path) -> Queue:
    return Queue(choose_store(location, durability="normal"), max_attempts=10_000)


def work_for_ever(location: str | Path, lease_s: float, told: Connection) -> None:
    """Run jobs as they come. Each writes several entries and finishes in one transaction, and says where it is."""
    queue = open_queue(location)

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
            queue.finish(tx, job, {"entries": PARTS})
            say("finished", job)
        say("done", job)

    worker = Worker(queue, {"write": write}, lease_s=lease_s)
    while True:
        worker.run_until_empty()
        time.sleep(0.001)
