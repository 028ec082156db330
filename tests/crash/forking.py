"""A program that forks while it has a memory open. Exits with 0 when parent and child both worked."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from functools import partial

import pytest

from wellworn import Memory, Scope, StoreError
from wellworn.core.locks import patience
from wellworn.jobs import Queue, Worker
from wellworn.jobs.queue import list_jobs
from wellworn.store.sqlite import SqliteStore

ADA = Scope(tenant="acme", user="ada")


def in_child(work: Callable[[], None]) -> int:
    """Run in a forked child and give the pid."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException as error:
            print(f"child: {error!r}", file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    return pid


def wait_for(pid: int, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            assert status == 0, f"a child ended with status {status}"
            return
        time.sleep(0.005)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    raise AssertionError("a child hung")


def plain(location: str) -> None:
    mem = Memory.open(location)
    mem.remember_many([f"before the fork {n}" for n in range(600)], scope=ADA)
    mem.recall("fork", scope=ADA)

    def work() -> None:
        for n in range(5):
            (entry_id,) = mem.remember(f"child {os.getpid()} says {n}", scope=ADA)
            assert entry_id in [hit.entry.id for hit in mem.recall(f"child {os.getpid()} says {n}", scope=ADA, k=20)]
        mem.remember_many([f"child {os.getpid()} batch {n}" for n in range(50)], scope=ADA)
        mem.close()

    pids = [in_child(work) for _ in range(3)]
    for n in range(5):
        mem.remember(f"parent says {n}", scope=ADA)
        assert mem.recall(f"parent says {n}", scope=ADA).hits
    for pid in pids:
        wait_for(pid, 60)
    expected = 600 + 5 + 3 * 55
    assert mem.admin.stats(scope=ADA).entries == expected, mem.admin.stats(scope=ADA).entries
    assert mem.verify().ok, str(mem.verify())


def jobs(location: str) -> None:
    """A worker that was started before the fork begins a thread of its own in each child that wakes it."""
    store = SqliteStore(location, durability="normal")
    queue = Queue(store)
    ran_by: dict[str, None] = {}
    worker = Worker(queue, {"note": lambda job: ran_by.setdefault(job.worker or "")}, poll_s=600)
    worker.start()

    def add(key: str) -> None:
        with store.transact() as tx:
            assert queue.add(tx, ADA.home(), "note", key, {})
        worker.wake()
        deadline = time.monotonic() + 300
        while not any(job.key == key and job.state == "done" for job in list_jobs(store)):
            assert time.monotonic() < deadline, "nobody ran it"
            time.sleep(0.005)

    def work() -> None:
        time.sleep(0.1)  # the parent has its own to do
        add(f"child {os.getpid()}")
        assert list(ran_by) == [worker.name], (ran_by, worker.name)
        assert worker.stop()

    add("before")
    ran_by.clear()
    wait_for(in_child(work), 60)
    add("after")
    assert list(ran_by) == [worker.name], (ran_by, worker.name)
    assert worker.stop()


def busy(location: str) -> None:
    """Forks while threads recall, remember and write the log of recalls all the time."""
    mem = Memory.open(location, embedder="hash:8", background=False)
    mem.remember("before the fork", scope=ADA)
    mem.recall("fork", scope=ADA)
    mem.remember(
        "thread none says 0", scope=ADA
    )  # now all is loaded: no fork survives a thread that imports (decision 0023)
    stop = threading.Event()

    def say(n: int) -> None:
        with patience(20):  # far less than a child waits that inherited a lock
            mem.remember(f"child {n} says so", scope=ADA)

    def work(name: int) -> None:
        number = 0
        while not stop.is_set():
            number += 1
            mem.recall("fork", scope=ADA)
            mem.remember(f"thread {name} says {number}", scope=ADA)
            mem.engine.learner.log.flush()

    threads = [threading.Thread(target=work, args=(name,)) for name in range(2)]
    for thread in threads:
        thread.start()
    for n in range(40):
        wait_for(in_child(partial(say, n)), 60)
    stop.set()
    for thread in threads:
        thread.join()
    texts = {entry.text for entry in mem.entries(scope=ADA, limit=100_000)}
    assert texts >= {f"child {n} says so" for n in range(40)}
    assert mem.verify().ok, str(mem.verify())


def inside(location: str) -> None:
    """A child of a fork within a transaction cannot use the file, and says why; the parent goes on."""
    mem = Memory.open(location, embedder="hash:8", background=False)
    mem.remember("before the fork", scope=ADA)

    def work() -> None:
        with pytest.raises(StoreError, match="forked while"):
            mem.remember("in the child", scope=ADA)
        with pytest.raises(StoreError, match="forked while"):
            Memory.open(location, embedder="hash:8")

    with mem.engine.store.transact():
        pid = in_child(work)
    wait_for(pid, 60)
    mem.remember("after the fork", scope=ADA)
    assert len(mem.entries(scope=ADA)) == 2
    assert mem.verify().ok, str(mem.verify())


if __name__ == "__main__":
    {"plain": plain, "jobs": jobs, "busy": busy, "inside": inside}[sys.argv[2]](sys.argv[1])
