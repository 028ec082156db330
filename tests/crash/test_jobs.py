"""Jobs survive `kill -9` of their workers without loss or repetition, and go to one of many processes each."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from crash.job_children import PARTITION, PARTS, open_queue, race_for_jobs, work_for_ever
from crash.test_processes import PROCESSES, child, heard
from wellworn.jobs import Queue
from wellworn.jobs.queue import list_jobs
from wellworn.store.port import Selection

pytestmark = [pytest.mark.crash, pytest.mark.slow]
KILLS = 40
LEASE_S = 0.05


def traces(queue: Queue) -> Counter[str]:
    rows = queue.store.select([PARTITION], Selection(), limit=100_000)
    return Counter(entry.title for _, entry in rows)


def test_a_worker_killed_40_times_does_every_job_exactly_once(
    tmp_path: Path, tally: Callable[[str, int], None]
) -> None:
    dice = random.Random(7)
    path = tmp_path / "memory.db"
    queue = open_queue(path)
    added = 0
    died: Counter[str] = Counter()
    done: set[str] = set()
    for _ in range(KILLS):
        with queue.store.transact() as tx:
            for n in range(added, added + 5):
                assert queue.add(tx, PARTITION, "write", f"k{n}", {})
        added += 5
        with child(work_for_ever, path, LEASE_S) as (process, listening):
            said = [listening.recv() for _ in range(dice.randint(1, 30)) if listening.poll(60)]
            process.kill()
            said += heard(listening)
        done |= {key for what, key in said if what == "done"}
        died[said[-1][0]] += 1
    assert died["written"] + died["finishing"] + died["finished"], "some die in the middle of a write"
    assert all(traces(queue)[key] == PARTS for key in done), "what was done before a kill is there"
    deadline = time.monotonic() + 600
    with child(work_for_ever, path, LEASE_S):
        while len(list_jobs(queue.store, states=["done"], limit=1000)) < added:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert traces(queue) == {f"k{n}": PARTS for n in range(added)}
    assert not list(queue.store.check())
    queue.store.close()
    tally("`kill -9`", KILLS)


def test_eight_processes_share_the_jobs_of_one_file(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    start = PROCESSES.Barrier(8)
    jobs = 60
    racers = [child(race_for_jobs, path, number, jobs, start) for number in range(8)]
    told = []
    opened = [racer.__enter__() for racer in racers]
    try:
        for _, listening in opened:
            assert listening.poll(300)
            told.append(listening.recv())
    finally:
        for racer in racers:
            racer.__exit__(None, None, None)
    assert not [words for words in told if isinstance(words, str)], told
    queue = open_queue(path)
    assert sum(added for added, _ in told) == jobs
    ran = Counter(key for _, keys in told for key in keys)
    assert ran == traces(queue) == {f"k{n}": 1 for n in range(jobs)}
    assert {job.attempts for job in list_jobs(queue.store, limit=1000)} == {1}
    queue.store.close()
