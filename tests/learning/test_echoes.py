"""Echoes: what became of like questions, on numbers alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellworn.learning.echoes import Echoes

TERMS = st.lists(st.integers(0, 8), min_size=1, max_size=6, unique=True)
NOS = st.lists(st.integers(0, 6), min_size=1, max_size=5, unique=True)
TOLD = st.lists(st.tuples(TERMS, NOS, NOS).map(lambda told: (told[0], told[1], [*dict.fromkeys(told[1] + told[2])])))

Told = list[tuple[list[int], list[int], list[int]]]


def echoes(*told: tuple[list[int], list[int], list[int]]) -> Echoes:
    found = Echoes()
    for terms, cited, shown in told:
        found.add(terms, cited, shown)
    return found


def test_the_same_question_echoes_in_full() -> None:
    assert echoes(([1, 2, 3], [7], [5, 7])).of([3, 1, 2]) == {7: 1.0, 5: -1.0}


def test_a_like_question_echoes_by_the_square_of_its_likeness() -> None:
    heard = echoes(([1, 2, 3, 4], [7], [7])).of([1, 2, 3, 9])
    assert heard == {7: pytest.approx((3 / 4) ** 2)}


def test_an_unlike_question_echoes_nothing() -> None:
    assert echoes(([1, 2, 3, 4, 5], [7], [7])).of([1, 8, 9]) == {}
    assert echoes().of([1, 2]) == {}


def test_what_helped_once_and_was_passed_over_once_is_even() -> None:
    assert echoes(([1, 2], [7], [7]), ([1, 2], [], [7])).of([1, 2]) == {7: 0.0}


def test_a_question_whose_words_were_forgotten_echoes_nothing() -> None:
    heard = echoes(([], [7], [7]))
    assert len(heard) == 0
    assert heard.of([]) == {}


@given(told=TOLD, asked=TERMS)
def test_echoes_follow_their_definition_in_any_order(told: Told, asked: list[int]) -> None:
    def alike(terms: list[int]) -> float:
        square = len({*terms} & {*asked}) ** 2 / (len(terms) * len(asked))
        return square if square >= 0.25 else 0.0

    expected: dict[int, float] = {}
    for no in range(7):
        helped = max((alike(terms) for terms, cited, _ in told if no in cited), default=0.0)
        passed = max((alike(terms) for terms, cited, shown in told if no in shown and no not in cited), default=0.0)
        expected[no] = helped - passed
    for order in (told, told[::-1]):
        heard = echoes(*order).of(asked)
        assert {no: heard.get(no, 0.0) for no in range(7)} == pytest.approx(expected)
        assert all(-1 <= value <= 1 for value in heard.values())
