"""The low-rank residual and swapped neighbours through the facade."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from memory.test_learning_world import ADA, ENOUGH, Places, User, honest, planted
from memory.world import OpenMemory
from wellworn import Memory
from wellworn.core.errors import EmbeddingFailed
from wellworn.core.values import Partition
from wellworn.learning.lowrank import CHUNK, LowRank

HOME = Partition(tenant="acme", layer="user", layer_id="ada")
TUNED = "blind/residual"

__all__ = ["planted"]


def kept(mem: Memory) -> str | None:
    return mem.engine.store.policy("acme", HOME, profile=TUNED)


def first(dice: random.Random, right: Places) -> Places:
    return [0]


def served(mem: Memory) -> None:
    """Let the matrices serve, whatever the evidence."""
    learner: Any = mem.engine.learner
    with mem.engine.store.transact() as tx:
        state = replace(LowRank.loads(kept(mem), 256), beats=True)
        learner._put_residual(tx, HOME, learner._person(HOME), state)


def factors(mem: Memory) -> set[str]:
    return {factor.name for hit in mem.recall("What of drums in May?", scope=ADA).hits for factor in hit.explanation}


def test_replaying_the_log_rebuilds_the_same_matrices(planted: OpenMemory, location: str) -> None:
    mem = planted(location, embedder="hash")
    User(mem, ADA, 1).tell(ENOUGH + CHUNK)
    before = kept(mem)
    state = LowRank.loads(before, 256)
    assert state.chunks == (ENOUGH + CHUNK) // CHUNK
    assert len(state.query.left) > 0
    weights = mem.learning.export(scope=ADA)
    mem.learning.relearn(scope=ADA)
    assert kept(mem) == before
    assert mem.learning.export(scope=ADA) == weights


def test_a_chunk_that_is_missing_is_made_up_for(planted: OpenMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    mem, whole = planted(embedder="hash"), planted(embedder="hash")
    ada, twin = User(mem, ADA, 1), User(whole, ADA, 1)
    twin.tell(4 * CHUNK)
    ada.tell(3 * CHUNK - 1)
    learner: Any = mem.engine.learner

    def fails(query: str) -> Any:  # a vector
        raise EmbeddingFailed("down")

    with monkeypatch.context() as patch:
        patch.setattr(learner._tuner, "_embed_query", fails)
        ada.tell(1)  # counts, though its chunk cannot be learned
    assert LowRank.loads(kept(mem), 256).chunks == 2
    ada.tell(CHUNK)
    assert kept(mem) == kept(whole)


def test_it_costs_nothing_while_it_does_not_serve(planted: OpenMemory) -> None:
    mem = planted(embedder="hash")
    User(mem, ADA, 1).tell(ENOUGH + CHUNK)
    assert mem.learning.status(scope=ADA).level == "person"
    assert not LowRank.loads(kept(mem), 256).beats
    assert "residual" not in factors(mem)
    served(mem)
    assert {"learned", "residual"} <= factors(mem)
    event = mem.admin.events(scope=ADA, limit=1)[0]
    assert (event.action, event.detail["to"]) == ("learn", "residual")
    mem.learning.reset(scope=ADA)
    assert kept(mem) is None
    assert "residual" not in factors(mem)


def test_without_an_embedder_there_is_none(planted: OpenMemory) -> None:
    mem = planted()
    User(mem, ADA, 1).tell(CHUNK)
    assert kept(mem) is None


def test_who_begins_to_cite_by_place_is_noticed(planted: OpenMemory) -> None:
    mem, still = planted(explore=1.0), planted(explore=0.0)
    for one in (mem, still):
        ada = User(one, ADA, 1)
        ada.tell(ENOUGH)
        assert one.learning.status(scope=ADA).trusted
        ada.tell(ENOUGH, first)
    assert "place" in mem.learning.status(scope=ADA).distrust
    assert still.learning.status(scope=ADA).trusted  # nothing tells it without swapped neighbours
    before = mem.learning.export(scope=ADA)
    mem.learning.relearn(scope=ADA)
    assert mem.learning.export(scope=ADA) == before
    User(mem, ADA, 1).tell(2 * ENOUGH, honest)
    assert mem.learning.status(scope=ADA).trusted


def test_swapping_shows_the_same(planted: OpenMemory) -> None:
    mem = planted(explore=1.0)
    User(mem, ADA, 1).tell(ENOUGH)
    learner: Any = mem.engine.learner
    for query in ("What of drums in May?", "What of bridges in June?"):
        recall = mem.recall(query, scope=ADA)
        assert learner._log.find(recall.id).level in ("person+even", "person+odd")
        assert len({hit.entry.id for hit in recall.hits}) == 5
        cut = mem.recall(query, scope=ADA, min_score=recall.hits[0].score - 100)
        assert learner._log.find(cut.id).level == "person"
