"""Duplicates within one extraction."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from wellworn.reflection.candidate import Candidate
from wellworn.reflection.group import group_same


def candidate(summary: str, *turns: int, **given: Any) -> Candidate:  # any field of Candidate
    return Candidate(summary=summary, turns=turns, **given)


def test_repeats_become_one_with_the_turns_of_all() -> None:
    grouped = group_same(
        [
            candidate("Ada lives in Rome.", 1, confidence=0.5),
            candidate("Ben has a dog.", 2),
            candidate("Ada resides in Rome.", 7, 3, confidence=0.9),
            candidate("ada lives in rome", 1),
        ]
    )
    assert [one.summary for one in grouped] == ["Ada lives in Rome.", "Ben has a dog."]
    assert grouped[0].turns == (1, 3, 7)
    assert grouped[0].confidence == 0.9


def test_the_fullest_text_stays_with_its_times() -> None:
    since = datetime(2020, 1, 1, tzinfo=UTC)
    full = candidate("Ada has a black dog named Rex.", 4, valid_from=since, title="pets")
    for order in ([candidate("Ada has a dog.", 2), full], [full, candidate("Ada has a dog.", 2)]):
        [one] = group_same(order)
        assert (one.summary, one.turns, one.valid_from, one.title) == (full.summary, (2, 4), since, "pets")


def test_what_contradicts_or_differs_stays_apart() -> None:
    texts = ["Ada lives in Rome.", "Ada lives in Oslo.", "Ada likes tea.", "Ada does not like tea.", "Ada has a cat."]
    assert [one.summary for one in group_same([candidate(text, 0) for text in texts])] == texts


def test_two_speakers_stay_apart() -> None:
    assert (
        len(group_same([candidate("I like tea.", 0, speaker="Ada"), candidate("I like tea.", 1, speaker="Ben")])) == 2
    )


def test_a_fuller_text_takes_in_what_came_between() -> None:
    texts = ["Ada has a dog.", "Ada has a dog named Rex.", "Ada has a black dog.", "Ada has a black dog named Rex."]
    grouped = group_same([candidate(text, turn) for turn, text in enumerate(texts)])
    assert [one.summary for one in grouped] == ["Ada has a black dog named Rex."]
    assert grouped[0].turns == (0, 1, 2, 3)


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "Ada lives in Rome.",
                "Ada resides in Rome.",
                "Ada lives in Rome with Tom.",
                "Ada lives in Rome near the river.",
                "Ben likes tea.",
                "Ben likes green tea.",
                "Ben enjoys tea.",
                "",
                "🍎",
                "Ada moved to Oslo.",
            ]
        ),
        max_size=8,
    )
)
def test_grouping_again_changes_nothing_and_no_turn_is_lost(texts: list[str]) -> None:
    candidates = [candidate(text, turn) for turn, text in enumerate(texts)]
    grouped = group_same(candidates)
    assert group_same(grouped) == grouped
    assert sorted(turn for one in grouped for turn in one.turns) == list(range(len(texts)))


def test_nothing_gives_nothing() -> None:
    assert group_same([]) == []
