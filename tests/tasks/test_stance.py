"""What a piece of advice says for or against, and which pieces cannot both be right."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tasks.advice_pairs.load import Half, pairs, score
from wellworn.core.values import Entry, Kind
from wellworn.tasks.consolidation.stance import contradiction, read, reordered, stance_of
from wellworn.testing.builders import make_entry


def entry(text: str, kind: Kind = "strategy") -> Entry:
    return replace(make_entry("one"), text=text, kind=kind)


CONTRADICTING = [
    ("Always retry the request after a 429 response.", "Never retry the request after a 429 response.", "negation"),
    ("Always retry the request after a refusal.", "Never retry the request after a refusal.", "negation"),
    ("Retry on 429.", "Do not retry on 429.", "negation"),
    ("Retry on 429.", "Don't retry on 429.", "negation"),
    ("Submit the form with cookies enabled.", "Submitting the form with cookies enabled failed.", "negation"),
    ("Enable the cache before the import.", "Disable the cache before the import.", "exclusive"),
    ("Sort the orders in ascending order.", "Sort the orders in descending order.", "exclusive"),
    ("Wait 2 seconds before the next request.", "Wait 10 seconds before the next request.", "exclusive"),
    ("Retry the upload 3 times.", "Retry the upload 5 times.", "exclusive"),
    ("Use cursors instead of offsets for long lists.", "Use offsets instead of cursors for long lists.", "exclusive"),
]
AGREEING = [
    ("Never disable the cache before the import.", "Always enable the cache before the import."),
    ("Post the form with the token.", "Never post the form without the token."),
    ("Wait 2 seconds when the service answers 429.", "Wait 2 seconds when the service answers 503."),
    ("Wait 2 seconds on 429.", "Wait 2 s on 429."),
    ("Check the token before posting.", "Read the price from the second table."),
    ("Use cursors instead of offsets.", "Prefer cursors rather than offsets."),
]


@pytest.mark.parametrize(("one", "other", "why"), CONTRADICTING)
def test_advice_that_cannot_both_be_right(one: str, other: str, why: str) -> None:
    assert contradiction(entry(one), entry(other)) == why
    assert contradiction(entry(other), entry(one)) == why
    assert stance_of(entry(one)).key != stance_of(entry(other)).key  # so they are never taken for duplicates


@pytest.mark.parametrize(("one", "other"), AGREEING)
def test_advice_that_can(one: str, other: str) -> None:
    assert contradiction(entry(one), entry(other)) == ""
    assert contradiction(entry(other), entry(one)) == ""


def test_a_strategy_and_a_guardrail_about_the_same_contradict_by_their_outcomes() -> None:
    did, warned = entry("Submit the order twice."), entry("Submit the order twice.", "guardrail")
    assert contradiction(did, warned) == "outcome"
    says_what_to_do = entry("Always submit the order twice.", "guardrail")
    assert contradiction(did, says_what_to_do) == ""


def test_other_words_for_the_same_take_the_same_stance() -> None:
    assert (
        read("When the form has a token, read it first.").key == read("If there is a token, first read the form.").key
    )


def test_the_same_words_in_another_order_are_noticed() -> None:
    assert reordered("Send day, month, year", "Send year, month, day")
    assert not reordered("Send day, month, year", "Send day, month, year.")
    assert not reordered("Send day and month", "Send year and month")


@pytest.mark.parametrize(("half", "precision", "recall"), [("seen", 1.0, 0.95), ("held", 0.9, 0.6)])
def test_contradictions_among_labelled_pairs_are_found(half: Half, precision: float, recall: float) -> None:
    """The bounds are what was measured, rounded down; docs/consolidation.md has the table."""
    given = pairs(half)
    assert len(given) >= 40
    found = score(given)
    assert found.precision >= precision
    assert found.recall >= recall
    assert all(bool(pair.found) == bool(contradiction(pair.other, pair.one)) for pair in given), "either way round"


def test_a_denial_in_the_condition_is_none_of_the_advice() -> None:
    did = "Submit the form twice when the first click has no effect."
    assert not read(did).against
    assert contradiction(entry(did), entry(did, "guardrail")) == "outcome"
    assert read(did).key != read("Submit the form twice when the first click has an effect.").key  # never one
    assert contradiction(entry(did), entry("Submit the form twice when the first click has an effect.")) == ""


def test_what_comes_before_what_is_read_from_both_words() -> None:
    before = entry("Run the tests before the merge.")
    assert contradiction(before, entry("Run the tests after the merge.")) == "exclusive"
    assert contradiction(before, entry("Do not merge before the tests were run.")) == ""
    assert contradiction(before, entry("Merge only after the tests were run.")) == ""
