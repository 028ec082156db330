"""The learning log goes with an export, and teaches the same elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from contract.few import few
from wellworn.core.errors import TransferError
from wellworn.core.values import Scope
from wellworn.learning.records import outcomes
from wellworn.memory import Memory
from wellworn.models.hashing import HashEmbedder
from wellworn.ops.bundle import Loaded
from wellworn.ops.doctor import verify
from wellworn.store.port import Store

from .conftest import ADA, BOB, EVE, everything_in, open_memory, open_store
from .test_jsonl import lines_of, seal

ROUNDS = 12
WORDS = ("apples", "bridges", "candles", "drums", "engines", "feathers", "gardens", "harbours")


def use(memory: Memory, times: int = ROUNDS) -> None:
    """Two people of one tenant and one of another, who recall and tell in turns, in every way there is."""
    for scope in (ADA, BOB, EVE):
        memory.remember_many([f"{word} number {n} of {scope.user}" for n, word in enumerate(WORDS)], scope=scope)
    for n in range(times):
        for scope in (ADA, BOB, EVE):
            recall = memory.recall(f"{WORDS[n % 8]} and {WORDS[n % 3]}", scope=scope, k=4)
            memory.outcome(recall.id, cited=[n % 2, 3] if n % 5 else [], scope=scope)
    for told in ({"used": 0.8}, {"ignored": True}, {"refined": "which drums?"}, {"success": True}):
        memory.outcome(memory.recall("drums", scope=ADA).id, **told)


def states(memory: Memory) -> list[dict[str, Any]]:
    for scope in (ADA, EVE):
        memory.learning.relearn(scope=scope)
    return [memory.learning.export(scope=scope) for scope in (ADA, BOB, EVE)]


@pytest.fixture
def used(memory: Memory, tmp_path: Path) -> Path:
    use(memory)
    memory.admin.export(tmp_path / "used.jsonl")
    return tmp_path / "used.jsonl"


def log_of(path: Path) -> list[dict[str, Any]]:
    return [line for line in lines_of(path) if line.get("type") in ("recall", "outcome")]


def test_the_log_teaches_the_same_after_a_load(
    memory: Memory, used: Path, other: Memory, other_store: Store, tmp_path: Path
) -> None:
    other.remember("something else, so that row numbers differ", scope=BOB)
    loaded = other.admin.load(used)
    assert loaded.outcomes == 3 * ROUNDS + 4
    learned = [other.learning.export(scope=scope) for scope in (ADA, BOB, EVE)]
    assert learned == states(other) == states(memory)
    assert learned[0]["person"]["outcomes"] >= ROUNDS
    assert verify(other_store, HashEmbedder(16)).flaws == []
    other.admin.export(tmp_path / "again.jsonl")
    assert log_of(tmp_path / "again.jsonl") == log_of(used)
    before = everything_in(other_store)
    assert other.admin.load(used) == Loaded(skipped=loaded.entries)
    assert (states(other), everything_in(other_store)) == (learned, before)


def test_forgotten_entries_are_not_in_it(memory: Memory, other: Memory, tmp_path: Path) -> None:
    use(memory)
    memory.outcome(memory.recall("drums of ada", scope=ADA).id, refined="the zqxmarker drums")
    gone = memory.recall("drums of ada", scope=ADA).hits[0].entry.id
    memory.forget(ids=[gone], scope=ADA)
    memory.admin.export(tmp_path / "used.jsonl")
    text = (tmp_path / "used.jsonl").read_text()
    assert gone not in text
    assert "zqxmarker" not in text
    other.admin.load(tmp_path / "used.jsonl")
    assert states(other) == states(memory)


def test_what_was_told_before_a_reset_stays_behind(memory: Memory, other: Memory, tmp_path: Path) -> None:
    use(memory)
    memory.learning.reset(scope=ADA)
    memory.outcome(memory.recall("drums", scope=ADA).id, cited=[0])
    written = memory.admin.export(tmp_path / "used.jsonl")
    assert written.outcomes == ROUNDS + 1  # the other tenant's, and the new one
    other.admin.load(tmp_path / "used.jsonl")
    assert states(other) == states(memory)


def test_settings_of_tenants_come_along(memory: Memory, other: Memory, tmp_path: Path) -> None:
    use(memory)
    entry = memory.recall("drums", scope=ADA).hits[0].entry
    memory.learning.relearn(scope=ADA, pairs=[("drums", [entry.id])])
    memory.learning.share(False, scope=ADA)
    memory.admin.export(tmp_path / "used.jsonl")
    use(other, 3)
    assert other.learning.status(scope=ADA).outcomes
    other.admin.load(tmp_path / "used.jsonl")
    assert not other.learning.status(scope=ADA).shares
    assert other.learning.status(scope=EVE).shares
    assert other.learning.status(scope=ADA).prior_steps == 1  # what was learned while it shared is gone
    other.learning.share(False, scope=EVE)
    other.admin.load(tmp_path / "used.jsonl")
    assert not other.learning.status(scope=EVE).shares  # a file never opts anyone in


def test_of_a_scope_only_its_own_log_is_written_or_taken(
    memory: Memory, used: Path, other: Memory, other_store: Store
) -> None:
    assert other.admin.load(used, scope=ADA).outcomes == ROUNDS + 4
    assert {one.recall.partition for one in outcomes(other_store, "acme")} == {ADA.home()}
    assert memory.admin.export(used, scope=ADA).outcomes == ROUNDS + 4
    assert other.admin.load(used, scope=Scope(tenant="acme", user="new")).outcomes == 0


def test_a_recall_of_another_partition_is_not_told_of(used: Path, tmp_path: Path) -> None:
    target = open_memory(open_store(tmp_path, "target"))
    target.admin.load(used)
    header, *lines, _ = lines_of(used)
    eves = next(line for line in lines if line["type"] == "recall" and line["partition"]["tenant"] == "other")
    mine = {
        **eves,
        "partition": {"tenant": "acme", "layer": "user", "layer_id": "ada"},
        "entries": [],
        "shown": 0,
        "base": "",
        "features": "",
    }
    told = {"type": "outcome", "recall": eves["id"], "kind": "verdict", "value": {"success": False}, "at": eves["at"]}
    seal(tmp_path / "forged.jsonl", [header, mine, told])
    with pytest.raises(TransferError, match="on another partition"):
        target.admin.load(tmp_path / "forged.jsonl")


WRONG: list[tuple[str, dict[str, Any]]] = [
    ("recall", {"shown": 99}),
    ("recall", {"base": "AAAA"}),
    ("recall", {"features": "?"}),
    ("recall", {"entries": ["x"]}),
    ("recall", {"level": "top"}),
    ("recall", {"extra": 1}),
    ("recall", {"partition": {"tenant": "other", "layer": "user", "layer_id": "ada"}}),
    ("recall", {"query": 7}),
    ("outcome", {"recall": "nobody"}),
    ("outcome", {"kind": "praised"}),
    ("outcome", {"value": {"nos": [1]}}),
    ("outcome", {"value": {"entries": ["00000000-0000-4000-8000-000000000000"]}}),
    ("tenant", {"shares": 1}),
    ("tenant", {"starts": [1]}),
]


@pytest.mark.parametrize(("type_", "wrong"), few(WRONG, 5), ids=lambda value: json.dumps(value)[:40])
def test_a_damaged_log_is_refused_and_nothing_is_loaded(
    memory: Memory, type_: str, wrong: dict[str, Any], tmp_path: Path
) -> None:
    use(memory, 2)
    memory.learning.share(False, scope=ADA)
    memory.admin.export(tmp_path / "used.jsonl")
    *lines, _ = lines_of(tmp_path / "used.jsonl")
    place = next(n for n, line in enumerate(lines) if line.get("type") == type_)
    lines[place] = {**lines[place], **wrong}
    seal(tmp_path / "wrong.jsonl", lines)
    target = open_store(tmp_path, "target")
    with pytest.raises(TransferError):
        open_memory(target).admin.load(tmp_path / "wrong.jsonl")
    assert target.partitions() == []
