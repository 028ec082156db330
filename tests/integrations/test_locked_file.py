"""A file that somebody else keeps locked costs a turn at most two seconds of waiting, and nothing that was said."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from conftest import SHIPPED_WAIT_S
from integrations.world import agent_of, ask, scripted
from wellworn import Memory, StoreBusy
from wellworn.core.locks import patience, patience_left
from wellworn.integrations import WAIT_S
from wellworn.integrations.langchain import RMMMiddleware
from wellworn.integrations.langgraph_store import WellwornStore
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
    steps = {**WAIT_S, "call": 0.0}
    assert sum(steps.values()) - steps["store"] - steps["reflect"] + steps["start"] < 2  # a turn of LangChain
    assert sum(steps.values()) - steps["start"] < 2  # a turn of any loop
    assert WAIT_S["call"] < 2


def locked(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    return db


def test_agents_go_on_and_what_was_said_is_stored_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory(tmp_path / "memory.db", embedder="hash", background=False) as memory:
        ada = memory.for_user("ada")
        ada.remember("The harbour opens at six.")
        middleware, langchain = MemoryMiddleware(ada), RMMMiddleware(memory)
        other = locked(tmp_path / "memory.db")
        middleware.enrich_system_prompt(MiddlewareContext(user_input="When does it open?"))
        middleware.after_response("When does it open?", "At six.")
        assert ask(agent_of(scripted("At six."), langchain), "When does it open?") == "At six."
        assert middleware.faults["store"] == langchain.faults["store"] == 1
        other.close()
        middleware.after_response("And when does it close?", "At nine.")
        texts = {entry.text for entry in ada.entries()}
        assert {"When does it open?", "At six.", "And when does it close?", "At nine."} <= texts
        other = locked(tmp_path / "memory.db")
        for step in ("call", "reflect"):
            monkeypatch.setitem(WAIT_S, step, 0.0)
        with pytest.raises(StoreBusy):
            WellwornStore(memory, tenant="default").put(("notes",), "tea", {"text": "green"})
        middleware.end_session()
        assert middleware.faults["reflect"] == 1
        other.close()
