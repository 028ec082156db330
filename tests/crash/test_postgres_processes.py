"""Three processes on one Postgres, of which one is killed at random, and the server too: nothing that was acknowledged is
lost or doubled."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from multiprocessing.connection import Connection
from typing import Any

import pytest

from contract.postgres import Server
from crash.children import ADA, EMBEDDER, write_for_ever
from crash.job_children import PARTITION, PARTS, open_queue, work_for_ever
from crash.test_jobs import traces
from crash.test_processes import child, heard
from wellworn import Memory
from wellworn.jobs.queue import list_jobs

pytestmark = [pytest.mark.crash, pytest.mark.slow]
WAIT_S = 300


def some(listening: Connection, number: int) -> Iterator[Any]:
    """The next messages, as many as there are if the process ends."""
    for _ in range(number):
        assert listening.poll(WAIT_S)
        try:
            yield listening.recv()
        except EOFError:
            return


@pytest.mark.parametrize("server_dies", [False, True])
def test_nothing_acknowledged_is_lost_or_doubled(
    server_dies: bool, postgres_server: Server, tally: Callable[[str, int], None]
) -> None:
    dice, url = random.Random(5), postgres_server.url()
    told: list[tuple[str, str, str]] = []
    rounds = 3
    for life in range(rounds):
        with ExitStack() as stack:
            names = [f"life{life} {who}" for who in "abc"]
            writers = [stack.enter_context(child(write_for_ever, url, "full", name)) for name in names]
            for _, listening in writers:
                told += some(listening, dice.randint(4, 12))
            if server_dies:
                postgres_server.stop(signal.SIGQUIT)
                postgres_server.start()
            dice.choice(writers)[0].kill()
            for _, listening in writers:
                told += some(listening, 4)  # whoever is alive goes on
            for process, listening in writers:
                process.kill()
                told += heard(listening)
    kept = {id: text for what, id, text in told if what == "kept"}
    changing = {id: text for what, id, text in told if what == "changing"}
    going = {id for what, id, _ in told if what == "going"}
    gone = {id for what, id, _ in told if what == "gone"}
    with Memory(url, embedder=EMBEDDER) as mem:
        there = {entry.id: entry.text for entry in mem.entries(scope=ADA, limit=100_000)}
        assert mem.verify().ok
    assert [id for id in kept if id not in there and id not in going] == []
    assert [id for id, text in kept.items() if id in there and there[id] not in (text, changing.get(id))] == []
    assert gone.isdisjoint(there)
    assert len({*there.values()}) == len(there)
    tally("process killed on Postgres", rounds * 3)
    if server_dies:
        tally("Postgres killed", rounds)


def test_jobs_are_done_once_although_workers_are_killed(
    postgres_server: Server, tally: Callable[[str, int], None]
) -> None:
    dice, url = random.Random(6), postgres_server.url()
    queue, jobs, lease_s = open_queue(url), 12, 2.0
    with queue.store.transact() as tx:
        assert all(queue.add(tx, PARTITION, "write", f"k{n}", {}) for n in range(jobs))
    with ExitStack() as stack:
        workers = [stack.enter_context(child(work_for_ever, url, lease_s))]
        assert [*some(workers[0][1], dice.randint(2, 12))]
        for _ in range(2):  # each is killed when the next one has begun
            workers.append(stack.enter_context(child(work_for_ever, url, lease_s)))
            assert [*some(workers[-1][1], 1)]
            workers[-2][0].kill()
        deadline = time.monotonic() + WAIT_S
        while len(list_jobs(queue.store, states=["done"], limit=1000)) < jobs:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    assert traces(queue) == {f"k{n}": PARTS for n in range(jobs)}
    assert queue.store.check() == []
    queue.store.close()
    tally("process killed on Postgres", 2)
