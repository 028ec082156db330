"""Several processes on one bank at once: nothing is lost, nothing merged twice, and all of it can be taken back."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from crash.consolidation_children import (
    AGENT,
    EMBEDDER,
    consolidate_together,
    remember_families,
    undo_meanwhile,
    work_meanwhile,
)
from crash.test_consolidation import Picture, picture
from crash.test_processes import child
from wellworn import Memory
from wellworn.tasks import ReasoningBank

pytestmark = pytest.mark.crash
FAMILIES = 24


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


def undo_all(mem: Memory) -> None:
    bank = ReasoningBank(mem, scope=AGENT)
    for run in bank.consolidation.runs(scope=AGENT, limit=1000):
        if run.state != "undone":
            bank.consolidation.undo(run.id, scope=AGENT)


def test_two_that_consolidate_at_once_merge_everything_once(tmp_path: Path) -> None:
    path, go = tmp_path / "memory.db", tmp_path / "go"
    before = fill(path)
    with ExitStack() as stack:
        ears = started(stack, [(consolidate_together, path, go)] * 3, go)
        runs = [told(ear) for ear in ears]
    assert sum(merges for _, merges in runs) == 2 * FAMILIES
    with Memory.open(path, embedder=EMBEDDER, background=False) as mem:
        active = [row for row in picture(mem) if row[1] == "active"]
        assert len(active) == FAMILIES
        assert all(len(row[4].split("\n")) == 3 for row in active)  # each with the evidence of its three, none twice
        assert {run.id for run in ReasoningBank(mem, scope=AGENT).consolidation.runs(scope=AGENT)} == {
            id for id, _ in runs
        }
        undo_all(mem)
        assert picture(mem) == before
        assert mem.verify().ok


def test_consolidating_beside_others_who_learn_use_and_undo_loses_nothing(tmp_path: Path) -> None:
    path, go, stop = tmp_path / "memory.db", tmp_path / "go", tmp_path / "stop"
    before = fill(path)
    with ExitStack() as stack:
        worker, undoer, *consolidators = started(
            stack,
            [
                (work_meanwhile, path, go, stop),
                (undo_meanwhile, path, go, stop),
                *[(consolidate_together, path, go)] * 2,
            ],
            go,
        )
        assert all(told(ear)[0] for ear in consolidators)
        stop.touch()
        learned, used = told(worker)
        assert told(undoer) >= 0
    with Memory.open(path, embedder=EMBEDDER, background=False, clock=_later) as mem:
        undo_all(mem)
        after = {row[0]: row for row in picture(mem)}
        assert {row[0] for row in before} | set(learned) == set(after)
        assert [(*after[row[0]][:2], *after[row[0]][3:]) for row in before] == [(*row[:2], *row[3:]) for row in before]
        assert sum(row[2] for row in after.values()) == sum(row[2] for row in before) + used
        assert used > 0
        assert mem.verify().ok


def _later() -> datetime:
    return datetime.now(UTC) + timedelta(minutes=5)
