"""Profiles, diversity, the text cache, and an index that is kept current: scores worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.builders import make_entry
from contract.few import FEWER
from search.embedders import Fixed
from wellworn import Memory, Profile, Scope
from wellworn.core.values import Entry
from wellworn.search.ram import EntryCache
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


@given(
    angles=st.lists(st.floats(0, math.pi), min_size=2, max_size=8, unique=True),
    profile=st.sampled_from(["default", "reasoningbank", "paper"]),
)
def test_the_score_rises_with_similarity(angles: list[float], profile: str) -> None:
    vectors = {f"t{n:02d}": [math.cos(a), math.sin(a), 0.0] for n, a in enumerate(angles)}
    with open_with({"q": [1, 0, 0], **vectors}, profile=profile, learning="off") as mem:
        mem.remember_many(list(vectors), scope=ADA)
        cosine = {text: vector[0] for text, vector in vectors.items()}
        scores = {h.entry.text: h.score - h.factors.get("diversity", 0.0) for h in mem.recall("q", scope=ADA, k=50)}
        ranked = sorted(cosine, key=cosine.__getitem__)
        for lower, higher in pairwise(ranked):
            assert scores[lower] <= scores[higher] + 1e-5


def test_recency_falls_to_1_over_e_in_a_half_life() -> None:
    mem = open_with(
        {"q": [1, 0, 0], "a": [1, 0, 0], "b": [1, 0, 0]},
        profile=Profile(name="r", weights={"recency": 2.0}, recency_days=10),
    )
    mem.remember("a", scope=ADA, at=NOON - timedelta(days=10))
    mem.remember("b", scope=ADA, at=NOON)
    assert [h.score for h in mem.recall("q", scope=ADA)] == pytest.approx([2.0, 2.0 / math.e])


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


@given(st.integers(0, 1000), st.integers(1, 12), st.integers(1, 15))
def test_picks_are_distinct_and_with_lambda_one_follow_the_score(seed: int, count: int, k: int) -> None:
    dice = np.random.default_rng(seed)
    scores = dice.random(count)
    vectors = dice.normal(size=(count, 4)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    picked, redundancy = diversify(scores, vectors, k, lambda_=1.0)
    assert picked == np.argsort(-scores, kind="stable")[:k].tolist()
    assert len(redundancy) == len(picked) == len(set(picked)) == min(k, count)
    assert all(-1e-6 <= value <= 1 + 1e-6 for value in redundancy)


def test_hits_of_a_diversifying_profile_are_in_the_order_of_their_scores() -> None:
    vectors = {"q": [1, 0, 0], "a": [1, 0.02, 0], "b": [0.62, 0, 0.78], "c": [0.70, 0.71, 0], "d": [0.99, 0.1, 0]}
    for seed in range(20):
        dice = np.random.default_rng(seed)
        many = {**vectors, **{f"t{n}": dice.normal(size=3).tolist() for n in range(12)}}
        with open_with(many, profile="reasoningbank") as mem:
            mem.remember_many([text for text in many if text != "q"], scope=ADA)
            scores = [hit.score for hit in mem.recall("q", scope=ADA, k=16)]
            assert scores == sorted(scores, reverse=True)


# -- the cache of texts ------------------------------------------------------------------------------------------


class Disk:
    """Just enough of a store to be read from."""

    def __init__(self) -> None:
        self.entries: dict[int, Entry] = {}
        self.reads: list[int] = []

    def read(self, nos: Sequence[int]) -> dict[int, Entry]:
        self.reads += nos
        return {no: self.entries[no] for no in nos if no in self.entries}


@pytest.fixture
def disk() -> Disk:
    disk = Disk()
    disk.entries = {no: make_entry(str(no), text=f"text {no}") for no in range(20)}
    return disk


def cache_of(disk: Disk, **bounds: int) -> EntryCache:
    return EntryCache(disk, **bounds)  # type: ignore[arg-type]


def test_an_entry_is_read_once_and_again_when_it_has_changed(disk: Disk) -> None:
    cache = cache_of(disk)
    assert cache.read([1, 2], [1, 1])[1].text == "text 1"
    assert cache.read([1, 2], [1, 1])[2].text == "text 2"
    assert disk.reads == [1, 2]
    disk.entries[1] = make_entry("1", text="changed")
    assert cache.read([1, 2], [2, 1])[1].text == "changed"
    assert disk.reads == [1, 2, 1]
    assert cache.read([1], [2])[1].text == "changed"
    assert disk.reads == [1, 2, 1]


def test_the_cache_keeps_to_its_size_in_bytes(disk: Disk) -> None:
    cache = cache_of(disk, max_bytes=10_000)
    disk.entries[0] = make_entry("0", text="x" * 100_000)
    assert cache.read([0], [1])[0].text == "x" * 100_000
    assert len(cache) == 0
    cache.read(list(range(1, 20)), [1] * 19)
    assert 0 < len(cache) < 10
    cache.clear()
    assert len(cache) == 0


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
