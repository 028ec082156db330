"""An export is one moment of the store, however busy its writers are."""

from __future__ import annotations

from pathlib import Path

import pytest

from wellworn import Memory, Scope

ADA = Scope(user="ada")


@pytest.mark.parametrize("name", ["out.jsonl", "folder"])
def test_an_export_ends_and_agrees_with_itself_although_a_writer_keeps_adding(tmp_path: Path, name: str) -> None:
    with Memory(tmp_path / "a.db", embedder="hash", background=False, durability="normal") as memory:
        session = memory.session("s", scope=ADA)
        for number in range(20):
            session.add("user", f"The harbour master wrote note {number}.")
        before = memory.admin.stats(scope=ADA)

        def busy(done: int, total: int) -> None:
            """Another turn and a link to it between any two steps of the export, and a removal, which waits for readers."""
            added = session.add("user", f"While {done} were written, the pilot said {total}.")
            memory.link(memory.entries(scope=ADA)[0].id, added, "supports", scope=ADA)
            if done < 2:
                memory.forget([memory.entries(scope=ADA)[1].id], turns=True, scope=ADA)

        written = memory.admin.export(tmp_path / name, progress=busy)
        assert written.entries == before.entries == 20
    with Memory(tmp_path / "b.db", embedder="hash", background=False) as other:
        loaded = other.admin.load(tmp_path / name)
        assert (loaded.entries, loaded.problems) == (20, ())
        assert loaded.turns == (20 if name.endswith("jsonl") else 0)
        assert other.verify().ok
