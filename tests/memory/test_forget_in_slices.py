"""A large partition is out of sight at once, removed in slices, and its space is returned."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memory.world import ADA, BEN, Clock
from wellworn import Memory, Receipt
from wellworn.store.sql.tx import SqlTx
from wellworn.store.sqlite.connection import Connections


def filled(path: Path, clock: Clock) -> Memory:
    numbers = iter(range(10_000))
    memory = Memory(
        path,
        embedder="hash",
        background=False,
        clock=clock,
        new_id=lambda: f"00000000-0000-7000-8000-{next(numbers):012}",
    )
    memory.remember("Ben keeps the keys.", scope=BEN)
    session = memory.session("monday", scope=ADA)
    for number in range(30):
        session.add("user", f"Ship {number} carries {number} crates of coral tea.", tags=["ship", "tea"])
    session.end()
    memory.edit(memory.entries(scope=ADA)[0].id, text="Ship 0 carries nothing.", scope=ADA)
    recall = memory.recall("coral tea", scope=ADA)
    memory.outcome(recall.id, cited=[0], scope=ADA)
    return memory


def forgotten(path: Path, clock: Clock) -> Receipt:
    with filled(path, clock) as memory:
        receipt = memory.forget(everything=True, scope=ADA)
        assert memory.recall("coral tea", scope=ADA).hits == []
        assert not [*memory.entries(scope=ADA), *memory.sessions(scope=ADA), *memory.jobs.list(scope=ADA)]
        assert [entry.text for entry in memory.entries(scope=BEN)] == ["Ben keeps the keys."]
        assert memory.verify().ok
        return receipt


@pytest.fixture
def small_slices(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Slices of seven rows; what each one took of entries."""
    taken: list[int] = []
    clear = SqlTx.clear_slice

    def watched(tx: SqlTx, number: int) -> Any:
        part = clear(tx, number)
        taken.append(0 if part is None else part.entries)
        return part

    monkeypatch.setattr("wellworn.store.sql.tx.SLICE", 7)
    monkeypatch.setattr("wellworn.ingest.forget.MOST_AT_ONCE", 10)
    monkeypatch.setattr(SqlTx, "clear_slice", watched)
    return taken


def test_slices_take_what_one_transaction_takes(tmp_path: Path, clock: Clock, small_slices: list[int]) -> None:
    sliced = forgotten(tmp_path / "sliced.db", clock)
    assert small_slices[:5] == [7, 7, 7, 7, 2]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wellworn.ingest.forget.MOST_AT_ONCE", 1_000)
        whole = forgotten(tmp_path / "whole.db", clock)
    assert replace(sliced, cached=0) == replace(whole, cached=0)
    db = sqlite3.connect(tmp_path / "sliced.db")
    assert db.execute("PRAGMA freelist_count").fetchone() == (0,)  # the space is returned
    db.close()
    assert b"crates" not in (tmp_path / "sliced.db").read_bytes()


def test_a_crash_between_slices_shows_nothing_and_the_next_open_finishes(
    tmp_path: Path, clock: Clock, small_slices: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = filled(tmp_path / "a.db", clock)
    monkeypatch.setattr("wellworn.store.sqlite.SqliteStore.clear_hidden", lambda store, number: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        memory.forget(everything=True, scope=ADA)
    assert memory.recall("coral tea", scope=ADA).hits == []
    assert not [*memory.entries(scope=ADA), *memory.sessions(scope=ADA), *memory.jobs.list(scope=ADA)]
    memory.admin.export(tmp_path / "out.jsonl")
    assert b"coral" not in (tmp_path / "out.jsonl").read_bytes()
    memory.remember("Ada is back.", scope=ADA)
    memory.close()
    assert small_slices == []
    monkeypatch.undo()
    with Memory(tmp_path / "a.db", embedder="hash", background=False) as memory:
        assert [entry.text for entry in memory.entries(scope=ADA)] == ["Ada is back."]
        assert memory.verify().ok
    assert b"crates" not in (tmp_path / "a.db").read_bytes()


def test_a_receipt_counts_everything_although_others_open_the_file_meanwhile(
    tmp_path: Path, clock: Clock, small_slices: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = forgotten(tmp_path / "alone.db", clock)
    opened = False
    writing = Connections.writing

    def open_elsewhere_first(connections: Connections, tenant: str | None = None) -> Any:
        nonlocal opened
        if small_slices and not opened:  # between two slices
            opened = True
            code = f"from wellworn import Memory; Memory({str(path)!r}, embedder='hash', background=False).close()"
            subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
            Memory(path, embedder="hash", background=False).close()
        return writing(connections, tenant)

    path = tmp_path / "beside.db"
    small_slices.clear()
    monkeypatch.setattr(Connections, "writing", open_elsewhere_first)
    assert replace(forgotten(path, clock), cached=0) == replace(alone, cached=0)
    assert opened
