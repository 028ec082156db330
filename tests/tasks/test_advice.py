"""How two pieces of advice compare: the same, contradicting, or different in an argument."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
import yaml

from contract.builders import make_entry
from wellworn.core.values import Entry, Kind
from wellworn.tasks.consolidate import contradiction, duplicates


def entry(text: str, kind: Kind = "strategy") -> Entry:
    return replace(make_entry("one"), text=text, kind=kind)


def same(one: str, other: str) -> bool:
    a, b = entry(one), entry(other)
    assert duplicates(a, b) == duplicates(b, a)
    return duplicates(a, b)


FAMILIES: dict[str, list[str]] = {
    "Set the timeout of the export job to {} before it is started.": ["30", "90", "1.5", "30s"],
    "For tasks like “Post it”: This worked: login() → post(format={}).": ['"json"', '"xml"', "3"],
    "Run {} before every commit to the main branch.": ["`npm test`", "`yarn test`", "make", "tox", "./check.sh"],
    "Write the report to {} after the import has finished.": ["/var/a/daily.csv", "/var/a/weekly.csv", "out.csv"],
    "Send the invoice to {} when the order is shipped.": ["Ada", "Bob", "Grace Hopper", "ops@shop.org"],
    "Use the {} flag when the push is rejected.": ["--force", "--dry-run", "-u"],
    "Set {} before the worker is started again.": ["LOG_LEVEL=debug", "LOG_LEVEL=info", "maxRetries"],
    "Use {} instead of the old endpoint.": ["/v2/users", "/v3/users"],
}
SAME = [
    ("Retry the upload when the connection drops.", "Always retry the upload if the connection drops!"),
    ("Always validate the address before saving it.", "Validate addresses before they are saved."),
    ("Read the token and send it with the POST.", "Read the token and send it along with the POST request."),
    ("Extract CSRF token from form", "Parse CSRF token from HTML"),
]


@pytest.mark.parametrize("family", FAMILIES)
def test_advice_that_differs_in_an_argument_is_never_the_same_however_near(family: str) -> None:
    texts = [family.format(argument) for argument in FAMILIES[family]]
    assert not [pair for pair in combinations(texts, 2) if same(*pair)]
    assert all(same(text, text.replace("the", "a")) for text in texts)


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_advice_in_other_words(one: str, other: str) -> None:
    assert same(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Send the date as day, month, year.", "Send the date as year, month, day."),
        ("Use cursors instead of offsets.", "Use offsets instead of cursors."),
        ("Submit it when the click has no effect.", "Submit it when the click has an effect."),
        ("Always retry the upload.", "Never retry the upload."),
    ],
)
def test_order_conditions_and_polarity_keep_advice_apart(one: str, other: str) -> None:
    assert not same(one, other)


CONTRADICTING = [
    ("Always retry the request after a 429 response.", "Never retry the request after a 429 response.", "negation"),
    ("Submit the form with cookies enabled.", "Submitting the form with cookies enabled failed.", "negation"),
    ("Enable the cache before the import.", "Disable the cache before the import.", "exclusive"),
    ("Scale up the workers at night.", "Scale down the workers at night.", "exclusive"),
    ("Run the tests before the merge.", "Run the tests after the merge.", "exclusive"),
    ("Opt in to the beta channel.", "Opt out of the beta channel.", "exclusive"),
    ("Release the build on Monday.", "Release the build on Friday.", "exclusive"),
    ("Always cache API responses", "Never cache authentication responses", "negation"),  # the design's own example
    ("Always encrypt the nightly backups.", "Never encrypt local backups.", "negation"),
]
AGREEING = [
    ("Always confirm the order in the shop.", "Never confirm the newsletter in the shop."),
    ("Release the build on Monday.", "Send the report on Friday."),
    ("Ship the parcel on Monday morning.", "Ship the parcel on Friday evening after a call."),
    ("Use cursors instead of offsets for lists.", "Use offsets instead of cursors for lists."),  # it cannot tell
    ("Never disable the cache before the import.", "Always enable the cache before the import."),
    ("Wait 2 seconds when the service answers 429.", "Wait 2 seconds when the service answers 503."),
    ("Run the tests before the merge.", "Do not merge before the tests were run."),
]


@pytest.mark.parametrize(("one", "other", "why"), CONTRADICTING)
def test_advice_that_cannot_both_be_right(one: str, other: str, why: str) -> None:
    assert contradiction(entry(one), entry(other)) == contradiction(entry(other), entry(one)) == why
    assert not same(one, other)


@pytest.mark.parametrize(("one", "other"), AGREEING)
def test_advice_that_can(one: str, other: str) -> None:
    assert contradiction(entry(one), entry(other)) == contradiction(entry(other), entry(one)) == ""


def test_a_strategy_and_a_guardrail_about_the_same_contradict_by_their_outcomes() -> None:
    did = entry("Submit the order twice.")
    assert contradiction(did, entry("Submit the order twice.", "guardrail")) == "outcome"
    assert contradiction(did, entry("Always submit the order twice.", "guardrail")) == ""


@pytest.mark.parametrize(("half", "precision", "recall"), [("seen", 1.0, 0.6), ("held", 0.9, 0.4)])
def test_contradictions_among_labelled_pairs_are_found(half: str, precision: float, recall: float) -> None:
    """The rules were written on the first half. The bounds are what was measured, rounded down."""
    rows = yaml.safe_load((Path(__file__).parent / "advice_pairs" / f"{half}.yaml").read_text(encoding="utf-8"))
    there = [row["is"] in ("negation", "exclusive", "outcome") for row in rows]
    found = [
        bool(
            contradiction(entry(row["one"]), entry(row["other"], "guardrail" if row["is"] == "outcome" else "strategy"))
        )
        for row in rows
    ]
    right = sum(a and b for a, b in zip(there, found, strict=True))
    assert right / sum(found) >= precision
    assert right / sum(there) >= recall
