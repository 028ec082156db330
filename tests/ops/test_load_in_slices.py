"""A large load is written in slices; one that was cut short is completed by another."""

from __future__ import annotations

from pathlib import Path

import pytest

from wellworn import Memory, Scope, TransferError
from wellworn.store.sql.tx import SqlTx

ADA = Scope(user="ada")


@pytest.fixture
def export(tmp_path: Path) -> Path:
    with Memory(tmp_path / "a.db", embedder="hash", background=False) as memory:
        session = memory.session("monday", scope=ADA)
        for number in range(30):
            session.add("user", f"Ship {number} carries {number} crates of tea.")
        memory.admin.export(tmp_path / "out.jsonl")
    return tmp_path / "out.jsonl"


def test_a_load_that_was_cut_short_is_completed_by_another(
    export: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wellworn.ops.bundle.SLICE", 7)
    with Memory(tmp_path / "b.db", embedder="hash", background=False) as memory:
        add = SqlTx.add
        with pytest.MonkeyPatch.context() as patch:
            left = iter(range(16))

            def until_it_breaks(tx: SqlTx, new: object) -> None:
                next(left)
                add(tx, new)  # type: ignore[arg-type]

            patch.setattr(SqlTx, "add", until_it_breaks)
            with pytest.raises((StopIteration, RuntimeError)):
                memory.admin.load(export)
        assert len(memory.entries(scope=ADA)) == 14  # two slices of seven
        loaded = memory.admin.load(export)
        assert (loaded.entries, loaded.skipped, loaded.turns) == (16, 14, 30)
        assert [turn.number for turn in memory.session("monday", scope=ADA).turns()] == [*range(30)]
        assert memory.verify().ok
        again = memory.admin.load(export)
        assert (again.entries, again.links, again.turns) == (0, 0, 0)


def test_what_does_not_fit_is_refused_before_the_first_slice(
    export: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wellworn.ops.bundle.SLICE", 7)
    with Memory(tmp_path / "b.db", embedder="hash", background=False) as memory:
        memory.session("monday", scope=ADA).add("user", "Something else was said.")
        with pytest.raises(TransferError, match="another turn 0; nothing was changed"):
            memory.admin.load(export)
        assert len(memory.entries(scope=ADA)) == 1
