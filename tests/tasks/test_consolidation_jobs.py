"""Consolidation by itself, every so many new entries, as a durable job; and several processes at once."""

from __future__ import annotations

import threading
from pathlib import Path

from tasks.consolidation_world import AGENT, PARTITION, Clock, ReasoningBank, learn, live, opened
from wellworn.tasks.settle import ConsolidationSettings

TOKEN = "When the login form has a CSRF token, read it first and send it with the POST"


def test_every_so_many_new_entries_a_job_consolidates(tmp_path: Path) -> None:
    with opened(tmp_path / "memory.db") as mem:
        bank = ReasoningBank(mem, scope=AGENT, consolidation=ConsolidationSettings(every=3))
        queued = []
        for number in range(7):
            learn(mem, TOKEN + "." * number)
            with mem.engine.store.transact() as tx:
                queued.append(bank.consolidation.added(tx, PARTITION))
        assert queued == [False, False, True, False, False, True, False]
        assert [job.kind for job in mem.jobs.list(scope=AGENT, state="queued")] == ["consolidate"] * 2
        assert mem.jobs.run() == 2
        done = mem.jobs.list(scope=AGENT, state="done")
        assert [job.result["merge"] for job in reversed(done)] == [6, 0]
        assert {job.result["run"] for job in done} == {run.id for run in bank.consolidation.runs(scope=AGENT)}
        assert len(live(mem)) == 1


def test_a_memory_without_a_bank_leaves_the_job_to_one_that_has_it(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with opened(path) as mem:
        bank = ReasoningBank(mem, scope=AGENT, consolidation=ConsolidationSettings(every=1))
        with mem.engine.store.transact() as tx:
            bank.consolidation.added(tx, PARTITION)
    with opened(path) as mem:
        assert mem.jobs.run() == 0
        ReasoningBank(mem, scope=AGENT)
        assert mem.jobs.run() == 1


def test_two_at_once_do_the_work_once(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with opened(path) as mem:
        for number in range(120):
            learn(mem, f"{TOKEN} in shop {chr(97 + number % 26)}{chr(97 + number // 26)}" + "." * (number % 3))
        expected = ReasoningBank(mem, scope=AGENT).consolidate(scope=AGENT, dry_run=True)
    started = threading.Barrier(2)
    reports = []

    def consolidate() -> None:
        with opened(path, clock=Clock()) as own:
            bank = ReasoningBank(own, scope=AGENT, consolidation=ConsolidationSettings(batch=4))
            started.wait()
            reports.append(bank.consolidate(scope=AGENT))

    threads = [threading.Thread(target=consolidate) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with opened(path) as mem:
        assert sum(report.counts["merge"] for report in reports) == expected.counts["merge"] > 0
        bank = ReasoningBank(mem, scope=AGENT)
        assert bank.consolidate(scope=AGENT).changed == 0
        assert mem.verify().ok
