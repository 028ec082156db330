"""What a tenant keeps, and a person who is erased with a receipt."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from wellworn.core.errors import InvalidInput, NotFound
from wellworn.memory import Memory
from wellworn.ops.backup import list_backups
from wellworn.ops.retention import RetentionPolicy, receipt_holds

from .conftest import ADA, BOB, EVE, fill


def opened(path: Path) -> Memory:
    return Memory(path, embedder="hash", background=False, durability="normal")


def test_entries_expire_by_kind_and_age_in_their_tenant_only(tmp_path: Path) -> None:
    with opened(tmp_path / "memory.db") as memory:
        for scope in (ADA, EVE):
            memory.remember("Long ago.", kind="episode", at="2020-01-01", scope=scope)
            memory.remember("A fact from then.", kind="fact", at="2020-01-01", scope=scope)
            memory.remember("Just now.", kind="episode", scope=scope)
        told, _ = memory.recall("fact", scope=ADA), memory.recall("now", scope=ADA)
        memory.outcome(told.id, cited=[0], scope=ADA)
        assert memory.admin.expire(scope=ADA).entries == 0
        memory.admin.retention(RetentionPolicy(kinds={"episode": 30.0}, recalls=1e-9), scope=ADA)
        assert memory.admin.retention(scope=ADA).kinds == {"episode": 30.0}
        done = memory.admin.expire(scope=ADA)
        assert (done.entries, done.recalls) == (1, 1)
        assert {entry.text for entry in memory.entries(scope=ADA)} == {"A fact from then.", "Just now."}
        assert len(memory.entries(scope=EVE)) == 3
        memory.learning.relearn(scope=ADA)
        assert memory.learning.status(scope=ADA).outcomes == 1
        for wrong in ({"kinds": {"rumour": 1.0}}, {"recalls": -1}, {"kinds": {"note": True}}):
            with pytest.raises(InvalidInput):
                memory.admin.retention(RetentionPolicy(**wrong), scope=ADA)


def test_what_was_replaced_stays_ended_when_its_replacement_expires(tmp_path: Path) -> None:
    with opened(tmp_path / "memory.db") as memory:
        (old,) = memory.remember("Kim lives in Oslo.", at="2020-01-01", scope=ADA)
        memory.remember("Kim lives in Bergen now.", kind="episode", at="2021-01-01", scope=ADA)
        assert memory.admin.expire(policy=RetentionPolicy(kinds={"episode": 30.0}), scope=ADA).entries == 1
        assert memory.get(old, scope=ADA).state == "superseded"


def test_an_erased_person_is_gone_with_a_receipt_that_holds(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with opened(path) as memory:
        fill(memory)
        memory.outcome(memory.recall("Which runtime?", scope=ADA).id, cited=[0], scope=ADA)
        memory.admin.backup()
        signed = memory.admin.erase(scope=ADA)
        store = memory.engine.store
        assert receipt_holds(signed, store=store)
        assert not receipt_holds(replace(signed, receipt={**signed.receipt, "entries": 0}), store=store)
        assert not receipt_holds(signed, key=b"another")
        assert signed.receipt["person"] == {"tenant": "acme", "layer": "user", "id": "ada"}
        assert memory.entries(scope=BOB)
        before = list_backups(Path(f"{path}.backups"))
        done = memory.admin.backup()
        assert done.removed == tuple(one.path for one in before)
        given = memory.admin.erase(scope=BOB, key=b"0123456789abcdef")
        assert receipt_holds(given, key=b"0123456789abcdef")
        assert memory.verify()
    assert b"tokio" not in b"".join(one.read_bytes() for one in tmp_path.glob("memory.db*") if one.is_file())


def test_an_erasure_that_was_cut_short_is_done_again_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path / "memory.db") as memory:
        fill(memory)
        memory.admin.backup()
        with monkeypatch.context() as cut:
            cut.setattr(memory.engine.learner, "relearn", lambda tenant: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                memory.admin.erase(scope=ADA)
        assert receipt_holds(memory.admin.erase(scope=ADA), store=memory.engine.store)
        assert memory.admin.backup().removed, "it held the person"
        with pytest.raises(NotFound):
            memory.admin.erase(scope=ADA)


def test_what_was_said_again_is_kept_from_then_on() -> None:
    now = datetime(2026, 6, 1, tzinfo=UTC)
    with Memory(":memory:", background=False, clock=lambda: now) as memory:
        ada = memory.for_user("ada")
        for year in (2021, 2026):
            ada.session(f"y{year}").add("user", "I am allergic to peanuts.", at=f"{year}-05-01")
        ada.session("y2021").add("user", "I live in Oslo.", at="2021-05-01")
        ada.reflect()
        policy = RetentionPolicy(kinds={"fact": 365})
        counted = ada.admin.expire(policy=policy, dry_run=True).entries
        assert (counted, ada.admin.expire(policy=policy).entries) == (1, 1)
        assert [one.text for one in ada.entries(kind="fact")] == ["Ada is allergic to peanuts."]
