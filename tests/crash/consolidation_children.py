"""Processes that consolidate a bank and work with it, until they are killed or told to stop."""

from __future__ import annotations

import time
from multiprocessing.connection import Connection
from pathlib import Path

from wellworn import Memory, Scope
from wellworn.tasks import ReasoningBank
from wellworn.tasks.items import domain_tags

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


def _wait_for(signal: Path, told: Connection) -> None:
    """Say that all is open, and begin when everyone may."""
    told.send("ready")
    while not signal.exists():
        time.sleep(0.001)


def consolidate_together(path: Path, go: Path, told: Connection) -> None:
    """Consolidate at the same time as others, until nothing is left to do; tell the number of merges."""
    with Memory.open(path, embedder=EMBEDDER, background=False) as mem:
        bank, merges = ReasoningBank(mem, scope=AGENT), 0
        _wait_for(go, told)
        while found := bank.consolidate(scope=AGENT).counts["merge"]:
            merges += found
        told.send(merges)


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
