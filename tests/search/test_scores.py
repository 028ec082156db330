"""Profiles, diversity, the text cache, and an index that is kept current: scores worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.few import FEWER
from search.embedders import Fixed
from wellworn import Memory, Profile, Scope
from wellworn.search.score import diversify

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
ADA = Scope(tenant="acme", user="ada")


def open_with(vectors: dict[str, Sequence[float]], **options: Any) -> Memory:
    return Memory.open(":memory:", embedder=Fixed(vectors), clock=lambda: NOON, **options)


def set_usage(mem: Memory, entry_id: str, usage: int) -> None:
    """What learning will count one day."""
    from dataclasses import replace

    entry = mem.get(entry_id, scope=ADA)
    with mem.engine.store.transact() as tx:
        tx.update(replace(entry, usage_count=usage), change=None)


def test_the_reasoningbank_score_is_0_65_similarity_0_15_recency_0_20_reliability() -> None:
    mem = open_with({"q": [1, 0, 0], "a": [0.6, 0.8, 0], "b": [0, 0, 1]}, profile="reasoningbank")
    (a,) = mem.remember("a", scope=ADA, at=NOON - timedelta(days=30), confidence=0.9)
    (b,) = mem.remember("b", scope=ADA, at=NOON, confidence=0.5)
    set_usage(mem, a, 5)
    set_usage(mem, b, 1000)
    first, second = mem.recall("q", scope=ADA).hits
    assert (first.entry.text, second.entry.text) == ("a", "b")
    assert {f.name: f.weight for f in first.explanation} == {
        "similarity": 0.65,
        "recency": 0.15,
        "reliability": 0.20,
        "diversity": 0.10,
    }
    assert first.factors["similarity"] == pytest.approx(0.65 * 0.6)
    assert first.factors["recency"] == pytest.approx(0.15 * math.exp(-1))
    assert first.factors["reliability"] == pytest.approx(0.20 * 0.9 * math.sqrt(0.5))
    assert first.score == pytest.approx(0.65 * 0.6 + 0.15 * math.exp(-1) + 0.20 * 0.9 * math.sqrt(0.5))
    assert second.score == pytest.approx(0.65 * 0.0 + 0.15 * 1.0 + 0.20 * 1.0)  # reliability is at most one


def test_the_paper_profile_is_the_plain_dot_product() -> None:
    mem = open_with(
        {"q": [1, 0, 0], "a": [0.6, 0.8, 0], "b": [0.8, 0, 0.6], "c": [-1, 0, 0]}, profile="paper", learning="off"
    )
    mem.remember_many(["a", "b", "c"], scope=ADA)
    hits = mem.recall("q", scope=ADA).hits
    assert [hit.entry.text for hit in hits] == ["b", "a", "c"]
    assert [hit.score for hit in hits] == pytest.approx([0.8, 0.6, -1.0], abs=1e-6)


def test_recency_as_of_a_moment_counts_from_that_moment() -> None:
    mem = open_with(
        {"q": [1, 0, 0], "a": [1, 0, 0], "b": [1, 0, 0]},
        profile=Profile(name="r", weights={"recency": 1.0}, recency_days=10),
    )
    mem.remember("a", scope=ADA, at=NOON - timedelta(days=20))
    mem.remember("b", scope=ADA, at=NOON)
    (hit,) = mem.recall("q", scope=ADA, as_of=NOON - timedelta(days=10)).hits
    assert hit.score == pytest.approx(1 / math.e)


# -- diversity ---------------------------------------------------------------------------------------------------


def test_the_picks_of_maximal_marginal_relevance_by_hand() -> None:
    scores = np.array([1.0, 0.95, 0.5, 0.1])
    vectors = np.array([[1, 0], [1, 0], [0, 1], [0.6, 0.8]], dtype=np.float32)
    # λ = 0.5: first 0; then ½·0.95 - ½·1 = -0.025, ½·0.5 - 0 = 0.25, ½·0.1 - ½·0.6 = -0.25 → 2;
    # then -0.025 against ½·0.1 - ½·0.8 = -0.35 → 1; then 3, whose largest cosine is 0.8.
    picked, redundancy = diversify(scores, vectors, 4, lambda_=0.5)
    assert picked == [0, 2, 1, 3]
    assert redundancy == pytest.approx([0.0, 0.0, 1.0, 0.8], abs=1e-6)


# -- the cache of texts ------------------------------------------------------------------------------------------


# -- an index that is kept current -------------------------------------------------------------------------------

words = st.sampled_from(["bees", "tea", "owls", "rain", "bees tea", "owls rain tea", "is it tea?"])
ACTIONS = ["remember", "turn", "edit", "number", "forget", "end", "many"]
steps = st.lists(st.tuples(st.sampled_from(ACTIONS), words, st.integers(0, 99)), min_size=3, max_size=14)


def act(mem: Memory, action: str, chosen: str, text: str, pick: int) -> None:
    if action == "remember":
        mem.remember(text, scope=ADA)
    elif action == "turn":
        mem.session(scope=ADA, session_id=str(pick % 2)).add("user", text)
    elif action == "many":
        mem.remember_many([f"{text} {n}" for n in range(300)], scope=ADA)
    elif action == "edit":
        mem.edit(chosen, scope=ADA, text=f"{text} anew")
    elif action == "number":
        mem.edit(chosen, scope=ADA, confidence=pick / 100)
    elif action == "forget":
        mem.forget(ids=[chosen], scope=ADA)
    else:
        mem.edit(chosen, scope=ADA, state="pruned")


@FEWER
@given(steps=steps)
def test_a_memory_that_kept_up_scores_as_one_that_begins_anew(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str, int]]
) -> None:
    path = tmp_path_factory.mktemp("current") / "memory.db"
    options: dict[str, Any] = {"embedder": "hash:32", "durability": "normal", "clock": lambda: NOON}
    with Memory.open(path, **options) as writer, Memory.open(path, **options) as reader:
        for number, (action, text, pick) in enumerate(steps):
            ids = [entry.id for entry in writer.entries(scope=ADA, limit=10_000)]
            chosen = ids[pick % len(ids)] if ids else None
            if chosen or action in ("remember", "turn", "many"):
                act(writer, action, chosen or "", f"{text} {number}", pick)
            reader.recall("bees", scope=ADA)
        with Memory.open(path, **options) as fresh:
            for query in ("bees and tea", "owls in the rain", "zebra"):
                kept, new = (m.recall(query, scope=ADA, k=10_000) for m in (reader, fresh))
                assert {h.entry.id: h.score for h in kept} == pytest.approx(
                    {h.entry.id: h.score for h in new}, abs=1e-5
                )
                assert {h.entry.id: h.entry for h in kept} == {h.entry.id: h.entry for h in new}
                assert kept.searched == new.searched
            assert fresh.verify().ok


def test_an_index_dropped_for_want_of_room_is_read_again(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m.db", embedder="hash:32") as mem:
        mem.engine.searcher.ram.max_bytes = 1000
        for number in range(6):
            mem.remember_many([f"bee {number} {n}" for n in range(20)], scope=Scope(tenant="acme", user=str(number)))
        for _ in range(2):
            for number in range(6):
                found = mem.recall("bee", scope=Scope(tenant="acme", user=str(number)), k=30)
                assert len(found) == 20
                assert all(hit.entry.partition.layer_id == str(number) for hit in found)
        assert len(mem.engine.searcher.ram) <= 2


# -- the date that a query names ---------------------------------------------------------------------------------


def test_the_date_factor_is_1_for_the_month_and_2_for_the_day() -> None:
    mem = Memory.open(":memory:", embedder=None, clock=lambda: NOON)
    for day in ("2024-03-07", "2025-03-07", "2025-03-08", "2025-05-07"):
        mem.remember(f"a walk on {day}", scope=ADA, at=day)

    def dates(query: str) -> dict[str, float]:
        hits = mem.recall(query, scope=ADA).hits
        assert all({f.name: f.weight for f in hit.explanation}["date"] == 1.0 for hit in hits)
        return {hit.entry.text[-10:]: hit.factors["date"] for hit in hits}

    none = {"2024-03-07": 0.0, "2025-03-07": 0.0, "2025-03-08": 0.0, "2025-05-07": 0.0}
    assert dates("the walk") == none
    assert dates("the walk in 2025") == none
    assert dates("the walk in March") == {**none, "2024-03-07": 1.0, "2025-03-07": 1.0, "2025-03-08": 1.0}
    assert dates("the walk on March 7, 2025") == {**none, "2025-03-07": 2.0, "2025-03-08": 1.0}
    assert mem.recall("the walk in May", scope=ADA).hits[0].entry.text == "a walk on 2025-05-07"


def test_what_is_of_the_named_month_is_a_candidate_however_many_others_match_better() -> None:
    mem = Memory.open(":memory:", embedder=None, clock=lambda: NOON)
    texts = [{"text": f"a long walk by the river number {n}", "at": "2025-05-07"} for n in range(150)]
    mem.remember_many([*texts, {"text": "a walk and other things", "at": "2025-03-07"}], scope=ADA)
    assert mem.recall("the long walk in March", scope=ADA, k=1).hits[0].entry.at.month == 3
