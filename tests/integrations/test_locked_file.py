"""A file that somebody else keeps locked costs a turn at most two seconds of waiting, and nothing that was said."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from conftest import SHIPPED_WAIT_S
from integrations.world import agent_of, ask, scripted
from wellworn import Memory
from wellworn.core.locks import patience, patience_left
from wellworn.integrations import WAIT_S
from wellworn.integrations.langchain import RMMMiddleware
from wellworn.integrations.loop import MemoryMiddleware, MiddlewareContext


@pytest.fixture(autouse=True)
def shipped_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    for step, wait_s in SHIPPED_WAIT_S.items():
        monkeypatch.setitem(WAIT_S, step, wait_s)


def test_patience_is_shared_by_all_that_a_block_waits_for() -> None:
    with patience(5):
        assert patience_left(60) <= 5
        with patience(100):
            assert patience_left(60) <= 5
    assert patience_left(60) == 60
    assert sum(WAIT_S.values()) < 2  # a turn passes each step at most once


def locked(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    return db


def test_a_loop_goes_on_and_stores_what_was_said_later(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", embedder="hash", background=False) as memory:
        ada = memory.for_user("ada")
        ada.remember("The harbour opens at six.")
        middleware = MemoryMiddleware(ada)
        other = locked(tmp_path / "memory.db")
        middleware.enrich_system_prompt(MiddlewareContext(user_input="When does it open?"))
        middleware.after_response("When does it open?", "At six.")
        assert middleware.faults["store"] == 1
        other.close()
        middleware.after_response("And when does it close?", "At nine.")
        texts = {entry.text for entry in ada.entries()}
        assert {"When does it open?", "At six.", "And when does it close?", "At nine."} <= texts


def test_langchain_goes_on(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", embedder="hash", background=False) as memory:
        memory.for_user("ada").remember("The harbour opens at six.")
        middleware, model = RMMMiddleware(memory), scripted("At six.")
        other = locked(tmp_path / "memory.db")
        assert ask(agent_of(model, middleware), "When does it open?") == "At six."
        assert middleware.faults["store"] == 1
        other.close()
