"""Consolidation and undo survive `kill -9` in their middle: no batch is half written, and all can be taken back."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from crash.consolidation_children import AGENT, EMBEDDER, consolidate_slowly, remember_families, undo_slowly
from crash.test_processes import child
from memory.world import NOON
from wellworn import Memory
from wellworn.store.port import Selection
from wellworn.tasks import ReasoningBank

pytestmark = pytest.mark.crash
FAMILIES = 20
Picture = list[tuple[str, str, int, float, str]]


def picture(mem: Memory) -> Picture:
    rows = mem.engine.store.select([AGENT.home()], Selection(), limit=10_000)
    return sorted((e.id, e.state, e.usage_count, e.confidence, e.evidence) for _, e in rows)


def killed_until_done(
    act: Callable[[Path, float, Connection], None], path: Path, dice: random.Random, first: int
) -> int:
    """Start it again and again, killing each after a few batches; how many were killed before one came to its end."""
    for attempt in range(first, first + 30):
        with child(act, path, 5.0 * attempt) as (process, listening):
            done = False
            for _ in range(dice.randint(3, 7)):
                if not listening.poll(60) or listening.recv() == "done":
                    done = True
                    break
            if not done:
                time.sleep(dice.uniform(0.0, 0.01))
            process.kill()
            process.join()
            if done:
                return attempt - first
        with Memory.open(path, embedder=EMBEDDER, background=False) as mem:
            assert mem.verify().ok
    raise AssertionError("it never came to its end")


def test_killed_in_the_middle_it_is_gone_on_with_and_all_of_it_can_be_undone(tmp_path: Path) -> None:
    dice = random.Random(5)
    path = tmp_path / "memory.db"
    with Memory.open(path, embedder=EMBEDDER, background=False) as mem:
        remember_families(mem, FAMILIES)
        before = picture(mem)
        used = sum(row[2] for row in before)
    kills = killed_until_done(consolidate_slowly, path, dice, 1)
    with Memory.open(path, embedder=EMBEDDER, background=False) as mem:
        after = picture(mem)
        active = [row for row in after if row[1] == "active"]
        assert len(active) == FAMILIES
        assert all(len(row[4].split("\n")) == 3 for row in active)  # each with the evidence of its three, none twice
        assert sum(row[2] for row in active) == used
        runs = ReasoningBank(mem, scope=AGENT).consolidation.runs(scope=AGENT)
        assert len([run for run in runs if run.state == "running"]) >= 1
    kills += killed_until_done(undo_slowly, path, dice, 100)
    with Memory.open(path, embedder=EMBEDDER, background=False, clock=_later) as mem:
        assert picture(mem) == before
        assert mem.verify().ok
    assert kills >= 2


def _later() -> datetime:
    return max(datetime.now(UTC), NOON) + timedelta(days=2)
