"""Repeated questions, on numbers alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellworn.learning.repeats import RepeatedQuestions

TERMS = st.lists(st.integers(0, 8), min_size=1, max_size=6, unique=True)
NOS = st.lists(st.integers(0, 6), min_size=1, max_size=5, unique=True)
PAST = st.lists(st.tuples(TERMS, NOS, NOS).map(lambda past: (past[0], past[1], [*dict.fromkeys(past[1] + past[2])])))

Past = list[tuple[list[int], list[int], list[int]]]


def asked_before(*past: tuple[list[int], list[int], list[int]]) -> RepeatedQuestions:
    found = RepeatedQuestions()
    for terms, cited, shown in past:
        found.add(terms, cited, shown)
    return found


def test_the_same_question_counts_in_full() -> None:
    assert asked_before(([1, 2, 3], [7], [5, 7])).values([3, 1, 2]) == {7: 1.0, 5: -1.0}


def test_a_similar_question_counts_by_the_square_of_its_similarity() -> None:
    found = asked_before(([1, 2, 3, 4], [7], [7])).values([1, 2, 3, 9])
    assert found == {7: pytest.approx((3 / 4) ** 2)}


def test_another_question_counts_nothing() -> None:
    assert asked_before(([1, 2, 3, 4, 5], [7], [7])).values([1, 8, 9]) == {}
    assert asked_before().values([1, 2]) == {}


def test_an_entry_that_helped_once_and_was_passed_over_once_counts_nothing() -> None:
    assert asked_before(([1, 2], [7], [7]), ([1, 2], [], [7])).values([1, 2]) == {7: 0.0}


def test_a_question_whose_words_were_forgotten_counts_nothing() -> None:
    found = asked_before(([], [7], [7]))
    assert len(found) == 0
    assert found.values([]) == {}


@given(past=PAST, asked=TERMS)
def test_values_follow_their_definition_in_any_order(past: Past, asked: list[int]) -> None:
    def alike(terms: list[int]) -> float:
        square = len({*terms} & {*asked}) ** 2 / (len(terms) * len(asked))
        return square if square >= 0.25 else 0.0

    expected: dict[int, float] = {}
    for no in range(7):
        helped = max((alike(terms) for terms, cited, _ in past if no in cited), default=0.0)
        passed = max((alike(terms) for terms, cited, shown in past if no in shown and no not in cited), default=0.0)
        expected[no] = helped - passed
    for order in (past, past[::-1]):
        found = asked_before(*order).values(asked)
        assert {no: found.get(no, 0.0) for no in range(7)} == pytest.approx(expected)
        assert all(-1 <= value <= 1 for value in found.values())
