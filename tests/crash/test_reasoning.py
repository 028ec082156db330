"""The bank survives `kill -9` at any moment: no attempt is half stored, none stored twice, none left hanging."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from crash.children import ADA, EMBEDDER
from crash.reasoning_children import INSIDE, learn_for_ever
from crash.test_processes import child
from wellworn import Memory
from wellworn.tasks import ReasoningBank

pytestmark = [pytest.mark.crash, pytest.mark.slow]
LIVES = 16


def test_killed_while_learning_every_attempt_is_whole_or_abandoned(
    tmp_path: Path, tally: Callable[[str, int], None]
) -> None:
    dice = random.Random(7)
    path = tmp_path / "memory.db"
    left_behind: Counter[str] = Counter()
    for life in range(LIVES):
        with child(learn_for_ever, path, life) as (process, listening):
            for _ in range(99 if life % 4 == 3 else dice.randint(2, 6)):
                assert listening.poll(60)
                if listening.recv() == INSIDE:
                    break
            time.sleep(dice.uniform(0.0, 0.02))
            process.kill()
            process.join()
        with Memory.open(path, embedder=EMBEDDER, background=False) as mem:
            _check_whole(ReasoningBank(mem, scope=ADA), mem)
            tasks = ReasoningBank(mem, scope=ADA).tasks(limit=10_000)
            left_behind.update(task.state for task in tasks if not task.finished)
    with Memory.open(path, embedder=EMBEDDER, background=False) as mem:
        bank = ReasoningBank(mem, scope=ADA)
        bank.resume(idle_s=0.0)
        assert {task.state for task in bank.tasks(limit=10_000)} <= {"reinforced", "abandoned"}
        _check_whole(bank, mem)
        assert mem.verify().ok
    assert sum(left_behind.values()) >= LIVES // 4, f"it was not caught in the middle: {left_behind}"
    tally("`kill -9`", LIVES)


def _check_whole(bank: ReasoningBank, mem: Memory) -> None:
    """Items are there exactly when an attempt says so; every one was kept once, and counted once per use: with the attempt,
    or before, when the outcome log has it and the attempt is not over yet."""
    tasks = bank.tasks(limit=10_000)
    named = {id for task in tasks for id in task.entry_ids}
    kept = bank.items(limit=10_000)
    assert {entry.id for entry in kept} == named
    assert all(entry.repeats == 0 for entry in kept)
    assert all(bool(task.entry_ids) == (task.state == "reinforced") for task in tasks)
    over = Counter(id for task in tasks if task.state == "reinforced" for id in task.shown)
    most = over + Counter(id for task in tasks if task.state == "judging" for id in task.shown)
    assert [entry for entry in kept if not over[entry.id] <= entry.usage_count <= most[entry.id]] == []
