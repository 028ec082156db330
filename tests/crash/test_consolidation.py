"""Consolidation survives `kill -9` in its middle: no batch is half written, and the next run completes it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from crash.consolidation_children import AGENT, EMBEDDER, consolidate_slowly, remember_families
from crash.test_processes import child
from wellworn import Memory
from wellworn.store.port import Selection
from wellworn.tasks import ReasoningBank

pytestmark = [pytest.mark.crash, pytest.mark.slow]
FAMILIES = 20
Picture = list[tuple[str, str, int, float, str]]


def picture(mem: Memory) -> Picture:
    rows = mem.engine.store.select([AGENT.home()], Selection(), limit=10_000)
    return sorted((e.id, e.state, e.usage_count, e.confidence, e.evidence) for _, e in rows)


def test_killed_in_the_middle_it_is_completed_by_the_next_run(tmp_path: Path) -> None:
    dice, path, kills = random.Random(5), tmp_path / "memory.db", 0
    with Memory.open(path, embedder=EMBEDDER, background=False) as mem:
        remember_families(mem, FAMILIES)
        used = sum(row[2] for row in picture(mem))
    for attempt in range(1, 30):
        with child(consolidate_slowly, path, 5.0 * attempt) as (process, listening):
            done = any(not listening.poll(60) or listening.recv() == "done" for _ in range(dice.randint(3, 7)))
            process.kill()
            process.join()
        with Memory.open(path, embedder=EMBEDDER, background=False) as mem:
            assert mem.verify().ok
        if done:
            break
        kills += 1
    with Memory.open(path, embedder=EMBEDDER, background=False) as mem:
        active = [row for row in picture(mem) if row[1] == "active"]
        assert len(active) == FAMILIES
        assert all(len(row[4].split("\n")) == 3 for row in active)  # each with the evidence of its three, none twice
        assert sum(row[2] for row in active) == used
        runs = ReasoningBank(mem, scope=AGENT).consolidation.runs()
        assert len([run for run in runs if run.state == "running"]) == kills >= 2
