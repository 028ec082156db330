"""The model that knows when a text tells that something is over, and when that ends an older statement."""

from __future__ import annotations

import pytest

from wellworn.ingest.over import over
from wellworn.ingest.replaces import SURE, probability


@pytest.mark.parametrize(
    ("old", "ends", "stays"),
    [
        ("I sing in a choir.", "I've packed in the choir.", "I've packed sandwiches for the choir."),
        ("We have a treadmill.", "We gave the treadmill away.", "We cleaned the treadmill."),
    ],
)
def test_what_ends_a_statement_is_told_from_what_sounds_alike(old: str, ends: str, stays: str) -> None:
    assert probability(old, ends, spoken=True) >= SURE > probability(old, stays, spoken=True)


@pytest.mark.parametrize("again", ["I've packed in the choir.", "I've given up the choir."])
def test_what_is_over_is_not_ended_when_it_is_said_again(again: str) -> None:
    assert probability("I've packed in the choir.", again, spoken=True) < SURE


def test_a_rare_word_in_common_says_more_than_a_frequent_one() -> None:
    rare, frequent = (over().looks_at(1.0, {word, "house"}, {word, "window"}, 0.5) for word in ("treadmil", "time"))
    assert rare[3] > frequent[3]


def test_what_shares_no_word_ends_nothing() -> None:
    assert probability("I keep six hens.", "I've given up smoking.", spoken=True) < SURE
