"""A store whose log and states were made with other features: earlier ones go on, unknown ones stop nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from memory.world import OpenMemory
from wellworn import Memory, Scope
from wellworn.learning.policy import Prior, dumps_state
from wellworn.learning.ranker import Ranker
from wellworn.learning.records import add_recalls, put_policy
from wellworn.search.score import FEATURES

ADA = Scope(tenant="acme", user="ada")
OLD = [name for name in FEATURES if name != "rare"]
UNKNOWN = [*OLD, "moon"]
QUERY = "where do bees sleep?"


def filled(opened: OpenMemory, location: str | Path) -> Memory:
    mem = opened(location, embedder=None)
    mem.remember_many([f"bees sleep in place {n}" for n in range(8)], scope=ADA)
    return mem


def log_recall(mem: Memory, recall_id: str, names: Sequence[str]) -> None:
    """A recall as a release with those features would have logged it."""
    seen = mem.engine.searcher.examine(QUERY, scope=ADA)
    assert seen is not None
    columns = [FEATURES.index(name) if name in FEATURES else 0 for name in names]
    with mem.engine.store.transact() as tx:
        add_recalls(tx, [replace(seen, id=recall_id, names=[*names], features=seen.features[:, columns])])


@pytest.mark.parametrize("names", [OLD, [*OLD, "rare"][::-1]], ids=["without rare", "other order"])
def test_a_recall_logged_by_an_earlier_release_teaches(opened: OpenMemory, location: str, names: list[str]) -> None:
    mem = filled(opened, location)
    log_recall(mem, "old", names)
    assert mem.outcome("old", cited=[1], scope=ADA)
    status = mem.learning.status(scope=ADA)
    assert (status.outcomes, list(status.weights)) == (1, [*FEATURES])
    assert mem.learning.relearn(scope=ADA).weights == status.weights


def test_a_recall_logged_with_unknown_features_teaches_nothing(opened: OpenMemory, location: str) -> None:
    mem = filled(opened, location)
    log_recall(mem, "old", UNKNOWN)
    assert mem.outcome("old", cited=[1], scope=ADA)
    status = mem.learning.status(scope=ADA)
    assert (status.outcomes, status.prior_steps, status.weights) == (0, 0, {})

    new = mem.recall(QUERY, scope=ADA)
    assert mem.outcome(new.id, cited=[1], scope=ADA)
    learned = mem.learning.status(scope=ADA)
    assert learned.outcomes == 1
    assert list(learned.weights) == list(FEATURES)
    assert mem.learning.relearn(scope=ADA).weights == learned.weights


def test_a_recall_logged_with_todays_features_teaches(opened: OpenMemory, location: str) -> None:
    mem = filled(opened, location)
    log_recall(mem, "now", FEATURES)
    assert mem.outcome("now", cited=[1], scope=ADA)
    assert mem.learning.status(scope=ADA).outcomes == 1


def test_a_state_learned_on_unknown_features_does_not_serve(opened: OpenMemory, location: str) -> None:
    mem = filled(opened, location)
    before = [(hit.entry.id, hit.score) for hit in mem.recall(QUERY, scope=ADA)]
    ranker = replace(Ranker.fresh(len(UNKNOWN)), theta=np.full(len(UNKNOWN) + 1, 2.0), steps=500)
    with mem.engine.store.transact() as tx:
        put_policy(tx, "acme", None, dumps_state(Prior(ranker=ranker, users=3), UNKNOWN))
    status = mem.learning.status(scope=ADA)
    assert (status.serving, status.prior_steps) == ("base", 0)
    assert [(hit.entry.id, hit.score) for hit in mem.recall(QUERY, scope=ADA)] == before
    assert mem.outcome(mem.recall(QUERY, scope=ADA).id, cited=[0], scope=ADA)
