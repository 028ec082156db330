"""`recall(deadline_s=…)` answers in time with what was found by then, whatever hangs.

What hangs here waits to be woken, which happens after the recall. The share of the time that each thing may
take is almost nothing, so that much is left for the rest: nothing depends on speed.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from wellworn import InvalidInput, Memory, Recursion, Scope
from wellworn.aio import AsyncMemory
from wellworn.core import locks
from wellworn.models.scripted import ScriptedModel
from wellworn.search.steps.actions import Aggregate, Plan
from wellworn.store.sqlite import SqliteStore

ADA = Scope(tenant="acme", user="ada", team="core")
LONG_S = 600.0


class Hang:
    """Waits, once it is armed, until it is woken."""

    def __init__(self) -> None:
        self.armed, self.woken = False, threading.Event()

    def __call__(self) -> None:
        if self.armed:
            self.woken.wait(LONG_S)


@pytest.fixture
def hang() -> Iterator[Hang]:
    one = Hang()
    yield one
    one.woken.set()


@pytest.fixture
def _little_time_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "SHARE", 0.0005)


def embedder(hang: Hang) -> Any:
    def embed(texts: Sequence[str]) -> npt.NDArray[np.float32]:
        hang()
        return np.ones((len(texts), 4), dtype=np.float32)

    return embed


class HangingStore(SqliteStore):
    """Hangs while the index of one partition, or anything, is read."""

    hang: Hang
    only: int | None = None

    def delta(self, partition_no: int, since: int, **how: Any) -> Any:
        if partition_no == self.only:
            self.hang()
        return super().delta(partition_no, since, **how)

    def heads(self, partitions: Any) -> Any:
        if self.only is None:
            self.hang()
        return super().heads(partitions)


class HangingPlanner:
    def __init__(self, hang: Hang) -> None:
        self.hang = hang

    def plan(self, query: str, shape: str, *, layers: Sequence[str], depth: int) -> Plan:
        self.hang()
        return (Aggregate(),)


def test_with_time_enough_it_is_the_same_recall() -> None:
    with Memory.open(":memory:", embedder="hash:8") as mem:
        mem.remember_many(["Ada keeps bees.", "Ada sails on Fridays."], scope=ADA)
        plain = mem.recall("Does Ada sail?", scope=ADA)
        found = mem.recall("Does Ada sail?", scope=ADA, deadline_s=LONG_S)
        assert [(hit.entry.id, hit.score) for hit in found] == [(hit.entry.id, hit.score) for hit in plain]
        assert (found.cut, plain.cut) == (False, False)
        assert mem.outcome(found.id, cited=[0], scope=ADA)


@pytest.mark.usefixtures("_little_time_for_each")
def test_an_embedder_that_hangs_leaves_the_words(hang: Hang) -> None:
    with Memory.open(":memory:", embedder=embedder(hang)) as mem:
        ada = mem.for_user("ada")
        ada.remember_many(["Ada keeps bees.", "Ada sails on Fridays."])
        ada.recall("warm")
        hang.armed = True
        found = ada.recall("Who sails?", deadline_s=LONG_S)
        assert (found[0].text, found.cut, found.route) == ("Ada sails on Fridays.", True, "words")
        assert ada.outcome(found.id, cited=[0])
        hang.woken.set()


@pytest.mark.usefixtures("_little_time_for_each")
def test_a_partition_that_is_still_being_read_is_left_out_once(tmp_path: Path, hang: Hang) -> None:
    path = tmp_path / "memory.db"
    with Memory.open(path, embedder="hash:8") as mem:
        mem.remember("Ada sails on Fridays.", scope=Scope(tenant="acme", user="ada"))
        mem.remember("The team sails on Mondays.", scope=Scope(tenant="acme", team="core"))
    store = HangingStore(path)
    store.hang, store.only = hang, 2
    with Memory.open(store, embedder="hash:8") as mem:
        mem.recall("warm", scope=Scope(tenant="acme", user="ada"))
        hang.armed = True
        found = mem.recall("Who sails?", scope=ADA, deadline_s=LONG_S)
        assert ([hit.text for hit in found], found.cut) == (["Ada sails on Fridays."], True)
        hang.woken.set()
        assert len(mem.recall("Who sails?", scope=ADA)) == 2


@pytest.mark.usefixtures("_little_time_for_each")
@pytest.mark.parametrize("who", ["planner", "model"])
def test_plans_that_hang_leave_the_plain_answer(who: str, hang: Hang) -> None:
    def reply(request: Any) -> str:
        hang()
        return "{}"

    recursion = Recursion(mode="always", planner=HangingPlanner(hang))
    if who == "model":
        from wellworn.search.steps.limits import Models

        recursion = Recursion(mode="always", models=Models(root=ScriptedModel(reply)))
    with Memory.open(":memory:", embedder="hash:8", recursion=recursion) as mem:
        mem.remember_many(["Ada keeps bees.", "Ada sails on Fridays."], scope=ADA)
        plain = mem.recall("Who sails?", scope=ADA, recursion="off")
        hang.armed = True
        found = mem.recall("Who sails?", scope=ADA, deadline_s=LONG_S)
        assert (sorted(hit.entry.id for hit in found), found.cut) == (sorted(hit.entry.id for hit in plain), True)
        hang.woken.set()


def test_a_store_that_hangs_gives_nothing_and_says_so(tmp_path: Path, hang: Hang) -> None:
    store = HangingStore(tmp_path / "memory.db")
    store.hang = hang
    with Memory.open(store, embedder="hash:8") as mem:
        ada = mem.for_user("ada")
        ada.remember("Ada sails on Fridays.")
        hang.armed = True
        found = ada.recall("Who sails?", deadline_s=0.05)
        assert (found.hits, found.cut) == ([], True)
        assert str(found) == "nothing found for 'Who sails?' before the deadline"
        hang.armed = False
        assert ada.outcome(found.id, ignored=True)
        again = asyncio.run(AsyncMemory(ada).recall("Who sails?", deadline_s=LONG_S))
        assert (again[0].text, again.cut) == ("Ada sails on Fridays.", False)
        hang.woken.set()


@pytest.mark.parametrize("value", [-1, float("nan"), "soon", True, [1]])
def test_a_deadline_is_a_number_of_seconds(value: Any) -> None:
    with Memory.open(":memory:", embedder="hash:8") as mem, pytest.raises(InvalidInput, match="deadline_s"):
        mem.recall("Who sails?", scope=ADA, deadline_s=value)
