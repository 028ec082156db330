"""A prior that is given to a memory serves tenants who have learned nothing of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memory.world import OpenMemory
from wellworn import InvalidInput, Memory, Scope
from wellworn.learning.guard import Evidence
from wellworn.learning.policy import Prior, dumps_state
from wellworn.learning.ranker import Ranker
from wellworn.search.score import FEATURES

ADA = Scope(tenant="acme", user="ada")


def shipped(path: Path) -> Path:
    """A prior that is sure of the month feature, with evidence that it helps."""
    theta = Ranker.fresh(len(FEATURES)).theta.copy()
    theta[1 + FEATURES.index("month")] = 3.0
    ranker = Ranker(theta=theta, precision=Ranker.fresh(len(FEATURES)).precision, steps=200)
    prior = Prior(ranker=ranker, gain=Evidence(n=100.0, total=20.0, squares=5.0), users=3)
    path.write_text(json.dumps({"prior": json.loads(dumps_state(prior, FEATURES)), "person": None}), encoding="utf-8")
    return path


def fill(mem: Memory) -> None:
    for month in range(1, 13):
        mem.remember(f"We met the builders, visit {month}.", scope=ADA, at=f"2023-{month:02d}-10")


def test_a_given_prior_serves_at_once_and_changes_the_ranking(tmp_path: Path) -> None:
    prior = shipped(tmp_path / "prior.json")
    with Memory.open(":memory:", prior=prior) as mem, Memory.open(":memory:") as plain:
        fill(mem)
        fill(plain)
        query = "What happened with the builders in March?"
        assert mem.learning.status(scope=ADA).level == "prior"
        assert mem.recall(query, scope=ADA, k=1)[0].entry.at.month == 3
        assert plain.learning.status(scope=ADA).level == "base"
        assert "learned" not in plain.recall(query, scope=ADA, k=1)[0].factors


def test_a_tenant_that_opted_out_is_not_served_by_it(tmp_path: Path) -> None:
    with Memory.open(":memory:", prior=shipped(tmp_path / "prior.json")) as mem:
        mem.learning.share(False, scope=ADA)
        assert mem.learning.status(scope=ADA).level == "base"


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"prior": null}', '{"prior": {"format": 1}}'])
def test_a_file_without_a_prior_is_refused_before_a_store_is_made(tmp_path: Path, content: str) -> None:
    (tmp_path / "prior.json").write_text(content, encoding="utf-8")
    with pytest.raises(InvalidInput, match="prior"):
        Memory.open(tmp_path / "memory.db", prior=tmp_path / "prior.json")
    assert not (tmp_path / "memory.db").exists()


def test_the_bundled_prior_serves_from_the_first_recall(opened: OpenMemory) -> None:
    mem = opened(prior="dialogue")
    scope = Scope(tenant="acme", user="ada")
    mem.remember_many(["Ada keeps bees.", "Ada sold her car in May.", "Ben likes bees."], scope=scope)
    assert "learned" in mem.recall("When did Ada sell the car?", scope=scope).hits[0].factors
    assert mem.learning.status(scope=scope).level == "prior"
