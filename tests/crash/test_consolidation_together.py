"""Several processes on one bank at once: nothing is lost and nothing is merged twice."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from crash.consolidation_children import AGENT, EMBEDDER, consolidate_together, remember_families, work_meanwhile
from crash.test_processes import child
from wellworn import Memory
from wellworn.store.port import Selection

pytestmark = [pytest.mark.crash, pytest.mark.slow]
FAMILIES = 24
Picture = list[tuple[str, str, int, float, str]]


def picture(mem: Memory) -> Picture:
    rows = mem.engine.store.select([AGENT.home()], Selection(), limit=10_000)
    return sorted((e.id, e.state, e.usage_count, e.confidence, e.evidence) for _, e in rows)


def fill(path: Path) -> Picture:
    """A bank, and what is in it."""
    with Memory.open(path, embedder=EMBEDDER, background=False, durability="normal") as mem:
        remember_families(mem, FAMILIES)
        return picture(mem)


def told(listening: Connection) -> Any:
    assert listening.poll(120), "it says nothing"
    return listening.recv()


def started(stack: ExitStack, calls: Sequence[tuple[Any, ...]], go: Path) -> list[Connection]:
    """Processes that begin together, and where to hear from each."""
    ears = [stack.enter_context(child(*call))[1] for call in calls]
    assert [told(ear) for ear in ears] == ["ready"] * len(ears)
    go.touch()
    return ears


def test_two_that_consolidate_at_once_merge_everything_once(tmp_path: Path) -> None:
    path, go = tmp_path / "memory.db", tmp_path / "go"
    fill(path)
    with ExitStack() as stack:
        ears = started(stack, [(consolidate_together, path, go)] * 3, go)
        assert sum(told(ear) for ear in ears) == 2 * FAMILIES
    with Memory.open(path, embedder=EMBEDDER, background=False) as mem:
        active = [row for row in picture(mem) if row[1] == "active"]
        assert len(active) == FAMILIES
        assert all(len(row[4].split("\n")) == 3 for row in active)  # each with the evidence of its three, none twice
        assert mem.verify().ok


def test_consolidating_beside_others_who_learn_and_use_loses_nothing(tmp_path: Path) -> None:
    path, go, stop = tmp_path / "memory.db", tmp_path / "go", tmp_path / "stop"
    before = fill(path)
    with ExitStack() as stack:
        calls = [(work_meanwhile, path, go, stop), *[(consolidate_together, path, go)] * 2]
        worker, *consolidators = started(stack, calls, go)
        assert sum(told(ear) for ear in consolidators) <= 2 * FAMILIES
        stop.touch()
        learned, used = told(worker)
    with Memory.open(path, embedder=EMBEDDER, background=False) as mem:
        after = {row[0]: row for row in picture(mem)}
        assert {row[0] for row in before} | set(learned) == set(after)
        active = [row for row in after.values() if row[1] == "active"]
        uses = sum(row[2] for row in before) + used
        assert sum(row[2] for row in active) <= uses, "counted twice"
        assert sum(row[2] for row in after.values()) >= uses, "a use of what was merged meanwhile stays with it"
        assert used > 0
        assert mem.verify().ok
