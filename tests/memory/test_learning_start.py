"""What learning begins with: a log of recollect 0.1 or of unknown features, a given prior, the paper's reranker."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from memory.world import ADA, OpenMemory
from wellworn import InvalidInput, Memory
from wellworn.learning.guard import Evidence
from wellworn.learning.policy import Prior, dumps_state
from wellworn.learning.ranker import Ranker
from wellworn.learning.records import add_recalls, put_policy
from wellworn.search.score import FEATURES

OLD = [*(name for name in FEATURES if name not in ("repeated", "newer", "longer", "habit")), "echo"]
QUERY = "where do bees sleep?"


def log_recall(mem: Memory, recall_id: str, names: Sequence[str]) -> None:
    """A recall as a release with those features would have logged it."""
    seen = mem.engine.searcher.examine(QUERY, scope=ADA)
    assert seen is not None
    columns = [FEATURES.index(name) if name in FEATURES else 0 for name in names]
    with mem.engine.store.transact() as tx:
        add_recalls(tx, [replace(seen, id=recall_id, names=[*names], features=seen.features[:, columns])])


@pytest.mark.parametrize(("names", "outcomes"), [(FEATURES, 1), (OLD, 1), ([*OLD, "moon"], 0)])
def test_a_recall_logged_with_other_features_teaches_unless_one_is_unknown(
    mem: Memory, names: list[str], outcomes: int
) -> None:
    mem.remember_many([f"bees sleep in place {n}" for n in range(8)], scope=ADA)
    log_recall(mem, "old", names)
    assert mem.outcome("old", cited=[1], scope=ADA)
    status = mem.learning.status(scope=ADA)
    assert (status.outcomes, list(status.weights)) == (outcomes, [*FEATURES][: 99 * outcomes])
    assert mem.outcome(mem.recall(QUERY, scope=ADA).id, cited=[1], scope=ADA)
    learned = mem.learning.status(scope=ADA)
    assert learned.outcomes == outcomes + 1
    assert mem.learning.relearn(scope=ADA).weights == learned.weights


def test_a_state_learned_on_unknown_features_does_not_serve(mem: Memory) -> None:
    mem.remember_many([f"bees sleep in place {n}" for n in range(8)], scope=ADA)
    before = [(hit.entry.id, hit.score) for hit in mem.recall(QUERY, scope=ADA)]
    names = [*FEATURES[:-1], "moon"]
    ranker = replace(Ranker.fresh(len(names)), theta=np.full(len(names) + 1, 2.0), steps=500)
    with mem.engine.store.transact() as tx:
        put_policy(tx, "acme", None, dumps_state(Prior(ranker=ranker, users=3), names))
    status = mem.learning.status(scope=ADA)
    assert (status.serving, status.prior_steps) == ("base", 0)
    assert [(hit.entry.id, hit.score) for hit in mem.recall(QUERY, scope=ADA)] == before


# -- a given prior ---------------------------------------------------------------------------------------------------


def shipped(path: Path) -> Path:
    """A prior that is sure of the month feature, with evidence that it helps."""
    fresh = Ranker.fresh(len(FEATURES))
    fresh.theta[1 + FEATURES.index("month")] = 3.0
    prior = Prior(ranker=replace(fresh, steps=200), gain=Evidence(n=100.0, total=20.0, squares=5.0), users=3)
    path.write_text(json.dumps({"prior": json.loads(dumps_state(prior, FEATURES)), "person": None}), encoding="utf-8")
    return path


def test_a_given_prior_serves_at_once_but_not_who_opted_out(tmp_path: Path, opened: OpenMemory) -> None:
    mem, plain = opened(prior=shipped(tmp_path / "prior.json")), opened()
    for one in (mem, plain):
        for month in range(1, 13):
            one.remember(f"We met the builders, visit {month}.", scope=ADA, at=f"2023-{month:02d}-10")
    query = "What happened with the builders in March?"
    assert mem.learning.status(scope=ADA).level == "prior"
    assert mem.recall(query, scope=ADA, k=1)[0].entry.at.month == 3
    assert plain.learning.status(scope=ADA).level == "base"
    assert "learned" not in plain.recall(query, scope=ADA, k=1)[0].factors
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
    mem.remember_many(["Ada keeps bees.", "Ada sold her car in May.", "Ben likes bees."], scope=ADA)
    assert "learned" in mem.recall("When did Ada sell the car?", scope=ADA).hits[0].factors
    assert mem.learning.status(scope=ADA).level == "prior"


# -- the paper's reranker --------------------------------------------------------------------------------------------


def test_the_papers_reranker_learns_the_same_in_every_process_and_repeats_with_the_recalls_id(
    opened: OpenMemory, tmp_path: Path
) -> None:
    runs = []
    for run in ("a", "b"):
        mem = opened(tmp_path / run, profile="paper", new_id=iter(f"id-{n}" for n in range(100)).__next__)
        mem.remember_many([f"bee number {n} likes flower {n}" for n in range(8)], scope=ADA)
        for n in range(9):
            assert mem.outcome(mem.recall(f"bee {n}", scope=ADA).id, cited=[n % 5])
        status = mem.learning.status(scope=ADA)
        assert (status.steps, status.level) == (9, "person")
        lived_on = mem.engine.learner.serving(ADA.home()).matrices
        began_anew = opened(tmp_path / run, profile="paper").engine.learner.serving(ADA.home()).matrices
        assert lived_on is not None
        assert began_anew is not None
        assert lived_on.steps == 9
        assert lived_on.to_bytes() == began_anew.to_bytes()
        hits = mem.recall("bee", scope=ADA).hits
        assert set(hits[0].factors) == {"similarity", "residual", "noise"}
        assert all(hit.score == pytest.approx(sum(hit.factors.values())) for hit in hits)
        runs.append([(hit.entry.text, hit.score) for hit in hits])
        mem.learning.reset(scope=ADA)
        fresh = mem.engine.learner.serving(ADA.home()).matrices
        assert fresh is not None
        assert fresh.steps == 0
    assert runs[0] == runs[1]
    assert opened().engine.learner.serving(ADA.home()).matrices is None
