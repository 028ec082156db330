"""Processes that consolidate a bank and work with it, until they are killed or told to stop."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from multiprocessing.connection import Connection
from pathlib import Path

from wellworn import Memory, Scope
from wellworn.tasks import ReasoningBank
from wellworn.tasks.items import domain_tags
from wellworn.tasks.settle import ConsolidationSettings

EMBEDDER = "hash:8"
AGENT = Scope(tenant="acme", agent="solver")


def remember_families(mem: Memory, count: int) -> None:
    """Families of three that say the same."""
    for family in range(count):
        for copy in range(3):
            mem.remember(
                f"Read the {chr(97 + family)} row first" + "." * copy,
                scope=AGENT,
                kind="strategy",
                evidence=f"{family} {copy}",
                tags=domain_tags(f"shop.{chr(97 + family)}"),
            )


def consolidate_slowly(path: Path, minutes_ahead: float, told: Connection) -> None:
    """Tell of each batch and wait a little, so that a kill finds the run in its middle."""

    def clock() -> datetime:
        return datetime.now(UTC) + timedelta(minutes=minutes_ahead)

    def tell(done: int, total: int) -> None:
        if done > total // 2:  # what is before is comparing, which writes nothing
            told.send(done)
            time.sleep(0.005)

    with Memory.open(path, embedder=EMBEDDER, background=False, clock=clock) as mem:
        bank = ReasoningBank(mem, scope=AGENT, consolidation=ConsolidationSettings(batch=2, decay_rate=1.0))
        bank.consolidate(scope=AGENT, progress=tell)
        told.send("done")
        time.sleep(60)


def _wait_for(signal: Path, told: Connection) -> None:
    """Say that all is open, and begin when everyone may."""
    told.send("ready")
    while not signal.exists():
        time.sleep(0.001)


def consolidate_together(path: Path, go: Path, told: Connection) -> None:
    """Consolidate in small batches, at the same time as others; tell the run and its merges."""
    with Memory.open(path, embedder=EMBEDDER, background=False) as mem:
        bank = ReasoningBank(mem, scope=AGENT, consolidation=ConsolidationSettings(batch=2, decay_rate=1.0))
        _wait_for(go, told)
        run = bank.consolidate(scope=AGENT, progress=lambda *_: time.sleep(0.002))
        told.send((run.id, run.counts["merge"]))


def work_meanwhile(path: Path, go: Path, stop: Path, told: Connection) -> None:
    """Learn, retrieve and use until told to stop; tell what was learned and how often something was used."""
    with Memory.open(path, embedder=EMBEDDER, background=False) as mem:
        bank = ReasoningBank(mem, scope=AGENT)
        learned: list[str] = []
        used = 0
        _wait_for(go, told)
        while not stop.exists():
            learned += mem.remember(f"Sort what is new {len(learned)}", scope=AGENT, kind="strategy")
            found = bank.retrieve("read the row", k=3)
            used += bank.feedback(found.id, cited=[0])
        told.send((learned, used))
