"""The optional reranker with matrices through the facade: replayed bit for bit, explained, and off by default."""

from __future__ import annotations

import pytest

from memory.test_learning_world import ADA, User, planted
from memory.world import OpenMemory
from wellworn import Memory
from wellworn.learning.records import stored_policy

__all__ = ["planted"]


def kept(mem: Memory) -> str | None:
    return stored_policy(mem.engine.store, "acme", ADA.home(), profile="paper/matrices")


def test_replaying_the_log_rebuilds_the_same_matrices(planted: OpenMemory) -> None:
    mem = planted(embedder="hash", profile="paper")
    User(mem, ADA, 1).tell(10)
    before = kept(mem)
    assert before is not None
    mem.learning.relearn(scope=ADA)
    assert kept(mem) == before
    mem.learning.reset(scope=ADA)
    assert kept(mem) is None


def test_the_default_loads_no_matrices(planted: OpenMemory) -> None:
    mem = planted(embedder="hash")
    User(mem, ADA, 1).tell(5)
    assert kept(mem) is None


def test_the_papers_factors_add_up_and_repeat_with_the_recalls_id(opened: OpenMemory) -> None:
    runs = []
    for _ in range(2):
        mem = opened(profile="paper", new_id=iter(f"id-{n}" for n in range(100)).__next__)
        mem.remember_many([f"bee number {n} likes flower {n}" for n in range(8)], scope=ADA)
        for n in range(9):
            mem.outcome(mem.recall(f"bee {n}", scope=ADA).id, cited=[n % 5])
        hits = mem.recall("bee", scope=ADA).hits
        assert set(hits[0].factors) == {"similarity", "residual", "noise"}
        assert all(hit.score == pytest.approx(sum(hit.factors.values())) for hit in hits)
        runs.append([(hit.entry.text, hit.score) for hit in hits])
    assert runs[0] == runs[1]
