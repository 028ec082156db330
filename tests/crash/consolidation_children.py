"""A process that consolidates a bank until it is killed, and one that undoes."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from multiprocessing.connection import Connection
from pathlib import Path

from recollect import Memory, Scope
from recollect.reasoning.consolidation.settings import ConsolidationSettings
from recollect.reasoning.keeper import Keeper

EMBEDDER = "hash:8"
AGENT = Scope(tenant="acme", agent="solver")


def consolidate_slowly(path: Path, minutes_ahead: float, told: Connection) -> None:
    """Tell of each batch and wait a little, so that a kill finds the run in its middle."""

    def clock() -> datetime:
        return datetime.now(UTC) + timedelta(minutes=minutes_ahead)

    def tell(done: int, total: int) -> None:
        if done > total // 2:  # what is before is comparing, which writes nothing
            told.send(done)
            time.sleep(0.005)

    with Memory.open(path, embedder=EMBEDDER, background=False, clock=clock) as mem:
        keeper = Keeper(mem, settings=ConsolidationSettings(batch=2, decay_rate=1.0))
        keeper.consolidate(scope=AGENT, progress=tell)
        told.send("done")
        time.sleep(60)


def undo_slowly(path: Path, minutes_ahead: float, told: Connection) -> None:
    def clock() -> datetime:
        return datetime.now(UTC) + timedelta(minutes=minutes_ahead)

    def tell(done: int, total: int) -> None:
        told.send(done)
        time.sleep(0.005)

    with Memory.open(path, embedder=EMBEDDER, background=False, clock=clock) as mem:
        keeper = Keeper(mem)
        for run in keeper.runs(scope=AGENT):
            if run.state != "undone":
                keeper.undo(run.id, scope=AGENT, progress=tell)
        told.send("done")
        time.sleep(60)
