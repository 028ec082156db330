"""Exports that release 0.1 wrote, under the name that the product had then, are read."""

from __future__ import annotations

import json
from pathlib import Path

from wellworn.core.values import Scope
from wellworn.memory import Memory
from wellworn.models.hashing import HashEmbedder
from wellworn.ops.bundle import Loaded
from wellworn.ops.doctor import verify
from wellworn.store.port import Store

from .conftest import entries_of

OLD = Path(__file__).parent / "old"
ADA = Scope(tenant="acme", user="ada")


def test_a_file_of_version_2_loads_with_everything_in_it(other: Memory, other_store: Store, tmp_path: Path) -> None:
    loaded = other.admin.load(OLD / "export_v2.jsonl")
    assert loaded == Loaded(entries=6, links=7, turns=2, versions=2, outcomes=3)
    entries = {entry.text: entry for entry in entries_of(other_store).values()}
    oslo = entries["Ada lives in Oslo."]
    assert (oslo.state, oslo.tags, oslo.metadata) == ("superseded", ["home"], {"n": [1, {"x": None}]})
    assert "Ada lives in Bergen, a city with “rain” and 雨." in entries
    assert [turn.text for turn in other_store.turns(ADA.home(), "monday")] == [
        "Which runtime do I like?",
        "You like tokio.",
    ]
    assert not other.learning.status(scope=ADA).shares
    assert verify(other_store, HashEmbedder(16)).flaws == []
    other.admin.export(tmp_path / "again.jsonl")
    counts = [types(path) for path in (OLD / "export_v2.jsonl", tmp_path / "again.jsonl")]
    assert counts[0] == counts[1]


def types(path: Path) -> list[str]:
    return sorted(json.loads(line).get("type", "header") for line in path.read_text("utf-8").splitlines())


def test_a_folder_of_version_1_loads_too(other: Memory, other_store: Store) -> None:
    assert other.admin.load(OLD / "folder_v1") == Loaded(entries=6, links=7)
    other.admin.load(OLD / "export_v2.jsonl")
    assert verify(other_store, HashEmbedder(16)).flaws == []
