"""Many processes at once on one store, and processes, or the server, that die in the middle of a write."""

from __future__ import annotations

import multiprocessing
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from contract.postgres import Server
from crash.children import (
    ADA,
    EMBEDDER,
    PARTITION,
    PARTS,
    open_and_close_for_ever,
    open_queue,
    race,
    work_for_ever,
    write_batches,
    write_for_ever,
)
from wellworn import Memory, Scope
from wellworn.ingest.remember import BATCH_ENTRIES
from wellworn.jobs.queue import list_jobs
from wellworn.store.port import Selection
from wellworn.store.sqlite.connection import Connections

pytestmark = [pytest.mark.crash, pytest.mark.slow]
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["crash.children", "wellworn.memory"])
WAIT_S = 300
Tally = Callable[[str, int], None]


@contextmanager
def child(target: Callable[..., None], *args: Any) -> Iterator[tuple[Any, Connection]]:
    """A process and the end of the pipe on which it tells; it is gone when the block ends."""
    listening, telling = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=target, args=(*args, telling))
    process.start()
    telling.close()
    try:
        yield process, listening
    finally:
        if process.is_alive():
            process.kill()
        process.join(WAIT_S)
        listening.close()


def heard(listening: Connection, most: int = 10**9) -> list[Any]:
    """The next messages, as many as there are if the process ends."""
    told: list[Any] = []
    while len(told) < most:
        assert listening.poll(WAIT_S), "it hangs"
        try:
            told.append(listening.recv())
        except (EOFError, OSError):
            break
    return told


@pytest.fixture(params=["sqlite", "postgres"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "memory.db")
    server: Server = request.getfixturevalue("postgres_server")
    return server.url()


@pytest.mark.parametrize("durability", ["normal", "full"])
def test_nothing_acknowledged_is_lost_or_doubled(
    location: str, durability: str, request: pytest.FixtureRequest, tally: Tally
) -> None:
    """Three writers, of which one is killed at random and then the others; with `full`, the server dies as well."""
    dice, remote = random.Random(durability), "://" in location
    told: list[tuple[str, str, str]] = []
    rounds = 3 if remote else 6
    for life in range(rounds):
        with ExitStack() as stack:
            names = [f"life{life} {who}" for who in "abc"]
            writers = [stack.enter_context(child(write_for_ever, location, durability, name)) for name in names]
            if life % 4 == 3:  # they die while they open the file, or before, or soon after
                time.sleep(dice.uniform(0.0, 1.0))
            else:
                for _, listening in writers:
                    told += heard(listening, dice.randint(4, 12))
                if remote and durability == "full":
                    server: Server = request.getfixturevalue("postgres_server")
                    server.stop(signal.SIGQUIT)
                    server.start()
                    tally("Postgres killed", 1)
                dice.choice(writers)[0].kill()
                for _, listening in writers:
                    told += heard(listening, 4)  # whoever is alive goes on
            for process, listening in writers:
                process.kill()
                told += heard(listening)
    tally("process killed on Postgres" if remote else "`kill -9`", 3 * rounds)
    kept = {id: text for what, id, text in told if what == "kept"}
    changing = {id: text for what, id, text in told if what == "changing"}
    going = {id for what, id, _ in told if what == "going"}
    with Memory(location, embedder=EMBEDDER) as mem:
        there = {entry.id: entry.text for entry in mem.entries(scope=ADA, limit=100_000)}
        turns = {turn.entry_id for one in mem.sessions(scope=ADA) for turn in mem.session(one, scope=ADA).turns()}
        assert mem.verify().ok
        mem.remember("life goes on", scope=ADA)
    assert len(kept) > 25
    assert [id for id in kept if id not in there and id not in going] == []
    assert [id for id, text in kept.items() if id in there and there[id] not in (text, changing.get(id))] == []
    assert there.keys().isdisjoint(id for what, id, _ in told if what == "gone")
    assert len({*there.values()}) == len(there)
    assert turns >= {id for id, text in kept.items() if " turn " in text}


def test_jobs_are_done_once_although_workers_are_killed(location: str, tally: Tally) -> None:
    dice, queue, jobs, lease_s = random.Random(6), open_queue(location), 24, 2.0
    with queue.store.transact() as tx:
        assert all(queue.add(tx, PARTITION, "write", f"k{n}", {}) for n in range(jobs))
    with ExitStack() as stack:
        workers = [stack.enter_context(child(work_for_ever, location, lease_s)) for _ in range(2)]
        for _ in range(4):  # each is killed in the midst of a job, beside one that goes on
            heard(workers[-2][1], dice.randint(1, 12))
            workers[-2][0].kill()
            workers.append(stack.enter_context(child(work_for_ever, location, lease_s)))
        deadline = time.monotonic() + WAIT_S
        while len(list_jobs(queue.store, states=["done"], limit=1000)) < jobs:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    rows = queue.store.select([PARTITION], Selection())
    assert Counter(entry.title for _, entry in rows) == {f"k{n}": PARTS for n in range(jobs)}
    assert queue.store.check() == []
    queue.store.close()
    tally("process killed on Postgres" if "://" in location else "`kill -9`", 4)


@pytest.mark.parametrize("at_once", [1, 3])
def test_who_is_killed_while_it_opens_or_closes_leaves_a_whole_file(tmp_path: Path, at_once: int, tally: Tally) -> None:
    dice, path = random.Random(at_once), tmp_path / "memory.db"
    for _ in range(20):
        with ExitStack() as stack:
            children = [stack.enter_context(child(open_and_close_for_ever, path)) for _ in range(at_once)]
            assert children[0][1].poll(WAIT_S)
            time.sleep(dice.uniform(0.0, 0.05))
            for process, _ in children:
                process.kill()
            tally("`kill -9`", at_once)
        connections = Connections(path, durability="full")
        missing = connections.log_missing
        connections.close()
        assert not missing
        assert [one.name for one in tmp_path.iterdir()] == ["memory.db"]


def test_batches_of_a_killed_remember_many_are_whole(tmp_path: Path, tally: Tally) -> None:
    dice, path = random.Random(5), tmp_path / "memory.db"
    count = 3 * BATCH_ENTRIES + 100
    seen = set()
    with Memory.open(path, embedder=EMBEDDER) as mem:
        for life in range(8):
            name = f"life{life}"
            with child(write_batches, path, name, count) as (process, listening):
                told: list[int] = []
                while max(told, default=-1) < life % 4 * BATCH_ENTRIES:
                    told += heard(listening, 1)
                time.sleep(dice.uniform(0.0, 0.2))
                process.kill()
                told += heard(listening)
            there = mem.admin.stats(scope=Scope(tenant="acme", user=name)).entries
            assert there >= max(told, default=0)
            assert there == count or there % BATCH_ENTRIES == 0
            seen.add(there)
        assert len(seen) > 1  # not always before, not always after
        tally("`kill -9`", 8)
        assert mem.verify().ok


@pytest.mark.parametrize("count", [0, 12], ids=["only open", "write"])
def test_eight_processes_that_make_and_write_one_file_at_once_lose_nothing(tmp_path: Path, count: int) -> None:
    for attempt in range(1 if count else 3):
        path, start = tmp_path / f"{attempt}.db", PROCESSES.Barrier(8)
        with ExitStack() as stack:
            racers = [stack.enter_context(child(race, path, number, count, start)) for number in range(8)]
            answers = [heard(listening, 1)[0] for _, listening in racers]
        assert [answer for answer in answers if isinstance(answer, str)] == []
        given = [one for answer in answers for one in answer]
        assert len({id for id, _ in given}) == 8 * count * 3
        with Memory.open(path, embedder=EMBEDDER) as mem:
            for user in ("ada", *(f"u{n}" for n in range(8))):
                there = mem.entries(scope=Scope(tenant="acme", user=user), limit=10_000)
                assert {entry.id for entry in there} == {id for id, owner in given if owner == user}
            turns = mem.session(scope=ADA, session_id="shared").turns()
            assert [turn.number for turn in turns] == list(range(8 * count))
            assert mem.verify().ok
