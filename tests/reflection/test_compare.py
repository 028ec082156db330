"""How two memories relate, by rules. Whether one replaces another is tested with `ingest.replaces`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellworn.reflection import Candidate
from wellworn.reflection.compare import compare, group_same


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("Noor lives in Oslo.", "noor lives in oslo", "same"),
        ("Noor lives in Oslo.", "Noor: I live in Oslo.", "same"),
        ("Noor lives in Zürich.", "Noor lives in Zurich.", "same"),
        ("Noor lives in Oslo with Tim.", "Noor lives in Oslo.", "same"),
        ("我住在北京。", "我住在北京", "same"),
        ("Noor lives in Oslo.", "Noor lives in Oslo with Tim.", "adds"),
        ("Noor lives in Oslo.", "Noor lives in Bergen.", "supersedes"),
        ("Noor lives in Oslo.", "Noor moved to Bergen last week (2024-04-22 to 2024-04-28).", "supersedes"),
        ("Noor eats meat.", "Noor no longer eats meat.", "supersedes"),
        ("The retro is on Monday.", "They pushed the retro to Friday.", "supersedes"),
        ("Noor: Our project is called Falcon.", "The project was renamed to Kestrel.", "supersedes"),
        ("Noor has a dog.", "Noor has a dog allergy.", "unrelated"),
        ("Noor has a cat.", "Noor has a dog.", "unrelated"),
        ("Noor lives in Oslo.", "Noor might move to Bergen.", "unrelated"),
        ("Noor lives in Oslo.", "Noor's sister lives in Bergen.", "unrelated"),
        ("The api key is in Vault.", "The deploy key is in 1Password.", "unrelated"),
    ],
)
def test_two_memories_relate(old: str, new: str, expected: str) -> None:
    assert compare(old, new, speaker="Noor") == expected


@given(st.text(max_size=80), st.text(max_size=80), st.sampled_from([None, "Noor", "("]))
def test_any_two_texts_are_compared(old: str, new: str, speaker: str | None) -> None:
    assert compare(old, new, speaker=speaker) in ("same", "adds", "supersedes", "unrelated")
    assert compare(old, old, speaker=speaker) == "same"


def one(summary: str, *turns: int, speaker: str | None = "Noor", confidence: float = 0.6) -> Candidate:
    return Candidate(summary=summary, turns=turns, speaker=speaker, confidence=confidence)


def test_repeats_become_one_with_the_turns_of_all_and_the_fuller_text() -> None:
    found = [
        one("Noor lives in Oslo.", 0),
        one("Noor has a dog.", 2, confidence=0.5),
        one("Noor lives in Oslo with Tim.", 4),
        one("Noor has a dog!", 6, confidence=0.7),
    ]
    assert group_same(found) == [
        one("Noor lives in Oslo with Tim.", 0, 4),
        one("Noor has a dog.", 2, 6, confidence=0.7),
    ]


def test_changes_and_other_speakers_stay_apart() -> None:
    changed = [one("Noor lives in Oslo.", 0), one("Noor lives in Bergen.", 2)]
    speakers = [one("I like tea.", 0, speaker="Noor"), one("I like tea.", 1, speaker="Ali")]
    assert group_same(changed) == changed
    assert group_same(speakers) == speakers


@given(
    st.lists(st.sampled_from(["Noor lives in Oslo.", "Noor lives in Oslo with Tim.", "Noor naps.", "x"]), max_size=6)
)
def test_no_turn_is_lost_and_grouping_again_changes_nothing(texts: list[str]) -> None:
    found = [one(text, number) for number, text in enumerate(texts)]
    grouped = group_same(found)
    assert {number for each in grouped for number in each.turns} == set(range(len(texts)))
    assert group_same(grouped) == grouped
