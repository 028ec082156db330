"""Rankings scored by hand, and what must hold for every ranking."""

from __future__ import annotations

import math

import pytest
from evals.metrics import all_at_k, distinct, hit_at_k, ndcg_at_k, recall_at_k
from hypothesis import given
from hypothesis import strategies as st

names = st.integers(0, 12)
rankings = st.lists(names, max_size=20)
relevants = st.sets(names, min_size=1, max_size=6)
cutoffs = st.integers(1, 25)


def test_recall_is_the_share_of_relevant_names_found() -> None:
    assert recall_at_k(["a", "b", "c"], {"b", "z"}, 2) == 0.5
    assert recall_at_k(["a", "b", "c"], {"b", "z"}, 1) == 0.0
    assert recall_at_k(["a", "b", "c"], {"b", "c"}, 3) == 1.0


def test_hit_asks_for_one_and_all_for_every_name() -> None:
    assert hit_at_k(["a", "b"], {"b", "z"}, 2) == 1.0
    assert all_at_k(["a", "b"], {"b", "z"}, 2) == 0.0
    assert all_at_k(["a", "b"], {"b", "a"}, 2) == 1.0
    assert hit_at_k([], {"b"}, 2) == 0.0


def test_ndcg_discounts_by_rank() -> None:
    # relevant at ranks 1 and 3 of a possible 1 and 2
    expected = (1 + 1 / math.log2(4)) / (1 + 1 / math.log2(3))
    assert ndcg_at_k(["a", "x", "b"], {"a", "b"}, 3) == pytest.approx(expected)
    assert ndcg_at_k(["x", "a"], {"a"}, 2) == pytest.approx(1 / math.log2(3))


def test_ndcg_compares_with_the_best_that_fits_into_k() -> None:
    assert ndcg_at_k(["a"], {"a", "b", "c"}, 1) == 1.0


def test_a_repeat_takes_no_place() -> None:
    assert distinct(["a", "b", "a", "c"]) == ["a", "b", "c"]
    assert recall_at_k(["a", "a", "b"], {"b"}, 2) == 1.0


@pytest.mark.parametrize("metric", [recall_at_k, hit_at_k, all_at_k, ndcg_at_k])
def test_a_question_without_evidence_cannot_be_scored(metric: type) -> None:
    with pytest.raises(ValueError, match="relevant"):
        metric(["a"], set(), 5)
    with pytest.raises(ValueError, match="k is 0"):
        metric(["a"], {"a"}, 0)


@given(rankings, relevants, cutoffs)
def test_every_score_lies_between_none_and_all(ranked: list[int], relevant: set[int], k: int) -> None:
    recall = recall_at_k(ranked, relevant, k)
    assert 0 <= all_at_k(ranked, relevant, k) <= recall <= hit_at_k(ranked, relevant, k) <= 1
    assert 0 <= ndcg_at_k(ranked, relevant, k) <= 1 + 1e-12


@given(rankings, relevants, cutoffs)
def test_a_larger_k_never_finds_less(ranked: list[int], relevant: set[int], k: int) -> None:
    for metric in (recall_at_k, hit_at_k, all_at_k):
        assert metric(ranked, relevant, k) <= metric(ranked, relevant, k + 1)


@given(relevants, rankings, cutoffs)
def test_the_ideal_ranking_has_ndcg_one(relevant: set[int], rest: list[int], k: int) -> None:
    assert ndcg_at_k([*sorted(relevant), *rest], relevant, k) == pytest.approx(1)


@given(rankings, relevants, cutoffs)
def test_moving_a_relevant_name_up_never_lowers_ndcg(ranked: list[int], relevant: set[int], k: int) -> None:
    order = distinct(ranked)
    before = ndcg_at_k(order, relevant, k)
    for place in range(1, len(order)):
        if order[place] in relevant and order[place - 1] not in relevant:
            moved = [*order[: place - 1], order[place], order[place - 1], *order[place + 1 :]]
            assert ndcg_at_k(moved, relevant, k) >= before - 1e-12


@given(rankings, relevants, cutoffs)
def test_names_that_are_not_relevant_do_not_matter_by_themselves(ranked: list[int], relevant: set[int], k: int) -> None:
    disguised = [name if name in relevant else name + 100 for name in ranked]
    assert recall_at_k(ranked, relevant, k) == recall_at_k(disguised, relevant, k)
    assert ndcg_at_k(ranked, relevant, k) == ndcg_at_k(disguised, relevant, k)
