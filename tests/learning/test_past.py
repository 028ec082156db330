"""Repeated questions and habits, on numbers alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellworn.learning.past import SHARED, Attributes, PersonPast, source_code, tag_bits

TERMS = st.lists(st.integers(0, 8), min_size=1, max_size=6, unique=True)
NOS = st.lists(st.integers(0, 6), min_size=1, max_size=5, unique=True)
PAST = st.lists(st.tuples(TERMS, NOS, NOS).map(lambda past: (past[0], past[1], [*dict.fromkeys(past[1] + past[2])])))

Past = tuple[list[int], list[int], list[int]]


def asked_before(*past: Past) -> PersonPast:
    found = PersonPast()
    for terms, cited, shown in past:
        found.add(terms, cited, shown)
    return found


@given(past=PAST, asked=TERMS)
def test_values_follow_their_definition_in_any_order(past: list[Past], asked: list[int]) -> None:
    def alike(terms: list[int]) -> float:
        square = len({*terms} & {*asked}) ** 2 / (len(terms) * len(asked))
        return square if square >= 0.25 else 0.0

    expected: dict[int, float] = {}
    for no in range(7):
        helped = max((alike(terms) for terms, cited, _ in past if no in cited), default=0.0)
        passed = max((alike(terms) for terms, cited, shown in past if no in shown and no not in cited), default=0.0)
        expected[no] = helped - passed
    for order in (past, past[::-1]):
        found = asked_before(*order).values(asked)[0]
        assert {no: found.get(no, 0.0) for no in range(7)} == pytest.approx(expected)


def test_where_nothing_helped_the_shown_make_room_unless_they_help_another_time() -> None:
    question = [1, 2, 3, 4]
    assert asked_before((question, [], [5, 6])).values(question)[1] == {5: 1.0, 6: 1.0}
    assert asked_before((question, [], [5, 6]), (question, [5], [5, 7])).values(question)[1] == {6: 1.0}
    assert asked_before(*[(question, [], [5])] * 9).values(question)[1] == {5: 2.0}
    assert asked_before((question, [], [5])).values([1, 2, 8, 9])[1] == {}
    assert asked_before(([], [7], [7])).values([])[0] == {}  # its words were forgotten


def like(no: int, **values: int) -> Attributes:
    return {"no": no, "kind": 0, "source": 0, "speaker": 0, "tags": 0} | values


def rows(*entries: Attributes) -> list[tuple[int, ...]]:
    return [tuple(entry[name] for name in ("tags", *SHARED)) for entry in entries]


@pytest.mark.parametrize("name", ["kind", "source", "speaker", "tags"])
def test_a_habit_is_what_cited_entries_have_in_common(name: str) -> None:
    past = PersonPast()
    for cited in ([1, 2], []):  # most of the shown, or none: that makes no habit
        past.add([1], cited, [1, 2, 3], [like(no, kind=no) for no in (1, 2, 3)])
    assert past.habits(rows(like(1))) is None
    for no in range(0, 90, 3):
        shown = [like(no, **{name: 4}), like(no + 1, **{name: 2}), like(no + 2, **{name: 1})]
        past.add([no], [no], [no, no + 1, no + 2], shown)
    habit = past.habits(rows(like(1000, **{name: 4}), like(1001, **{name: 2}), like(1002, **{name: 8})))
    assert habit is not None
    assert habit[0] - habit[1] > 0.7
    assert habit[0] > habit[2] > habit[1]


def test_tags_are_bits_and_sources_numbers() -> None:
    assert tag_bits("[]") == 0
    assert tag_bits('["boat", "house"]') == tag_bits('["house"]') | tag_bits('["boat"]')
    assert 0 < tag_bits('["boat"]') < 2**63
    assert source_code("mail") != source_code("wiki")
    assert -(2**63) <= source_code("mail") < 2**63
