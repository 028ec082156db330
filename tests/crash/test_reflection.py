"""Reflection survives `kill -9` in its middle: every session becomes its memory once."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from crash.children import ADA
from crash.reflection_children import EMBEDDER, reflect_for_ever
from crash.test_processes import child
from wellworn import Memory

pytestmark = [pytest.mark.crash, pytest.mark.slow]
SESSIONS = 60


def test_a_reflecting_process_killed_in_the_middle_loses_and_repeats_nothing(
    tmp_path: Path, tally: Callable[[str, int], None]
) -> None:
    dice = random.Random(11)
    path = tmp_path / "memory.db"
    with Memory.open(path, embedder=EMBEDDER, background=False) as mem:
        for number in range(SESSIONS):
            session = mem.session(scope=ADA, session_id=f"s{number}")
            session.add("user", f"I live in town{number} this year.")
            session.end()
    kills = 0
    for attempt in range(1, 200):
        with child(reflect_for_ever, path, 5.0 * attempt) as (process, listening):
            for _ in range(dice.randint(1, 6)):  # so many jobs are done, and then it dies somewhere in the next
                if not listening.poll(60) or listening.recv() == "empty":
                    break
            time.sleep(dice.uniform(0.0, 0.03))
            process.kill()
            process.join()
            kills += 1
        with Memory.open(path, embedder=EMBEDDER, background=False) as mem:
            mem.jobs.retry(scope=ADA)  # one that was hit five times in a row was given up
            if not mem.jobs.list(scope=ADA, state="queued") and not mem.jobs.list(scope=ADA, state="running"):
                break
    with Memory.open(path, embedder=EMBEDDER, background=False) as mem:
        assert {job.state for job in mem.jobs.list(scope=ADA, limit=1000)} == {"done"}
        written = Counter(entry.text for entry in mem.entries(scope=ADA, kind="fact", limit=1000))
        assert written == {f"Ada lives in town{number}.": 1 for number in range(SESSIONS)}
        assert mem.verify().ok
    assert kills >= 2
    tally("`kill -9`", kills)
