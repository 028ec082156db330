"""Consolidation by itself, every so many new entries, as a durable job; and several processes at once."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tasks.consolidation_world import AGENT, PARTITION, Clock, ReasoningBank, learn, live, opened
from wellworn import Memory
from wellworn.tasks import consolidate
from wellworn.tasks.consolidate import Consolidator
from wellworn.tasks.engine import parts_of

TOKEN = "When the login form has a CSRF token, read it first and send it with the POST"


def added(mem: Memory) -> bool:
    with mem.engine.store.transact() as tx:
        return Consolidator(parts_of(mem, AGENT, "mask")).added(tx, PARTITION, 1)


def test_every_so_many_new_entries_a_job_consolidates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consolidate, "EVERY", 3)
    with opened(tmp_path / "memory.db") as mem:
        ReasoningBank(mem, scope=AGENT)
        queued = []
        for number in range(7):
            learn(mem, TOKEN + "." * number)
            queued.append(added(mem))
        assert queued == [False, False, True, False, False, True, False]
        assert [job.kind for job in mem.jobs.list(scope=AGENT, state="queued")] == ["consolidate"] * 2
        assert mem.jobs.run() == 2
        assert [job.result for job in reversed(mem.jobs.list(scope=AGENT, state="done"))] == [{"merge": 6}, {}]
        assert len(live(mem)) == 1


def test_a_memory_without_a_bank_leaves_the_job_to_one_that_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consolidate, "EVERY", 1)
    with opened(tmp_path / "memory.db") as mem:
        assert added(mem)
        assert mem.jobs.run() == 0
        bank = ReasoningBank(mem, scope=AGENT)
        assert bank.run_due() == 1
        assert bank.run_due() == 0


def test_two_at_once_do_the_work_once(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with opened(path) as mem:
        for number in range(60):
            learn(mem, f"{TOKEN} in shop {chr(97 + number // 3) * 2}" + "." * (number % 3))
    started = threading.Barrier(2)
    merges = []

    def run() -> None:
        with opened(path, clock=Clock()) as own:
            bank = ReasoningBank(own, scope=AGENT)
            started.wait(300)
            merges.append(bank.consolidate(scope=AGENT).counts["merge"])

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(600)
    with opened(path) as mem:
        assert sorted(merges) == [0, 40]
        assert ReasoningBank(mem, scope=AGENT).consolidate(scope=AGENT).steps == []
        assert mem.verify().ok
