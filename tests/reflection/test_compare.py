"""How two memories relate, by rules: families of other people, verbs, values and negations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellworn.reflection.candidate import Candidate
from wellworn.reflection.compare import compare, group_same


def kind(old: str, new: str, speaker: str | None = "Noor") -> str:
    return compare(old, new, speaker=speaker).kind


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Noor lives in Oslo.", "Noor lives in Bergen."),
        ("Noor lives in Oslo.", "Noor moved to Bergen last week (2024-04-22 to 2024-04-28)."),
        ("Noor lives in Oslo.", "Noor: Moved to Bergen!"),
        ("Noor works at Siemens.", "Noor works at Bosch."),
        ("Noor's sister lives in Rome.", "Noor's sister lives in Turin."),
        ("Noor eats meat.", "Noor no longer eats meat."),
        ("Noor eats meat on Sundays.", "Noor doesn't eat meat."),
        ("Noor doesn't eat fish.", "Noor eats fish."),
        ("Noor is allergic to nuts.", "Noor is not allergic to nuts."),
        ("Noor's manager is Tom.", "Noor's manager is Grace."),
        ("Noor's favourite colour is green.", "Noor's favourite colour is blue."),
        ("Noor's budget is 800 euros.", "Noor's budget is 950 euros."),
        ("Noor is 34 years old.", "Noor is 35 years old."),
        ("Noor has two cats.", "Noor has three cats."),
        ("The launch is on Monday.", "The launch is on Tuesday."),
        ("The deploy key is in 1Password.", "The deploy key is in Vault."),
        ("Noor: Use pip.", "Noor: Use uv instead of pip please."),
        ("Noor: We deploy on Wednesdays.", "Noor: We deploy on Thursdays now, no longer on Wednesdays."),
        ("Noor reports to Tomas.", "Noor reports to Mireille now, not to Tomas."),
        ("Noor uses Spotify.", "Noor switched from Spotify to Tidal."),
        ("Noor drives a Fiat 500.", "Noor sold the Fiat and bought a bike."),
        ("Noor works at Siemens.", "Noor left Siemens for Bosch."),
        ("Noor is vegan.", "Noor: I eat cheese again, I'm no longer vegan."),
        ("The retro is on Monday.", "They pushed the retro to Friday."),
        ("The launch is on 3 May.", "The launch moved from 3 May to 10 May."),
        ("Noor: Our project is called Falcon.", "The project was renamed to Kestrel."),
        ("Jonas leads the backend team.", "Mira took over the backend team from Jonas."),
        ("Noor's manager is Tom.", "Grace replaced Tom as Noor's manager."),
        ("Noor works as a nurse.", "Noor works as a teacher now."),
        ("Noor: Reply in English.", "Noor: Reply in German from now on."),
        ("noor lives in oslo.", "noor moved to bergen."),
        ("Noor lives in Oslo.", "Noor: We moved to Bergen."),
    ],
)
def test_a_change_supersedes(old: str, new: str) -> None:
    assert kind(old, new) == "supersedes"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # Both can hold.
        ("Noor likes tea.", "Noor likes coffee."),
        ("Noor has a cat.", "Noor has a dog."),
        ("Noor has two cats.", "Noor has two dogs."),
        ("Noor's sister is Mia.", "Noor's sister is Lea."),
        ("Noor is vegetarian.", "Noor is 34 years old."),
        ("Noor drinks coffee.", "Noor never drinks coffee after noon."),
        ("Noor is allergic to nuts.", "Noor is allergic to milk."),
        ("Noor visited Rome.", "Noor visited Paris."),
        ("The launch is on Monday.", "The launch is on Zoom."),
        ("Noor lives in a flat.", "Noor lives in Oslo."),
        ("Noor has a dog.", "Noor has a cat now."),
        ("Noor likes jazz.", "Noor likes folk now."),
        ("Noor works at Siemens.", "Noor left Siemens early today."),
        ("Noor's manager is Tom.", "Noor's manager Tom moved to Berlin."),
        ("The retro is on Monday.", "The standup moved from Monday to Friday."),
        ("Jonas leads the backend team.", "Mira took over the design team from Jonas."),
        # Not now, or not certain.
        ("Noor lives in Oslo.", "Noor moved to Porto in 2019."),
        ("Noor lives in Oslo.", "Noor might move to Bergen."),
        ("Noor lives in Oslo.", "Noor used to live in Bergen."),
        ("Noor lived in Oslo.", "Noor lives in Bergen."),
        ("Noor lives in NYC.", "Noor lives in New York City."),
        # Somebody or something else.
        ("Noor lives in Oslo.", "Noor's sister lives in Bergen."),
        ("Ali lives in Oslo.", "Noor lives in Bergen."),
        ("The api key is in Vault.", "The deploy key is in 1Password."),
        # Too much would be lost.
        ("Noor lives in Oslo, works at Equinor and has two dogs.", "Noor lives in Bergen."),
        ("Noor lives in Oslo. She shares a flat with Tim.", "Noor lives in Bergen."),
        ("Ich wohne in Graz.", "Ich wohne in Wien."),
    ],
)
def test_in_doubt_nothing_is_superseded(old: str, new: str) -> None:
    assert kind(old, new) == "unrelated"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("Noor lives in Oslo.", "noor lives in oslo", "same"),
        ("Noor lives in Oslo.", "Noor: I live in Oslo.", "same"),
        ("Noor can't drive.", "Noor cannot drive!", "same"),
        ("Zoë lives in Zürich.", "Zoe lives in Zurich.", "same"),
        ("Noor lives in Oslo with Tim.", "Noor lives in Oslo.", "same"),
        ("Noor lives in Oslo.", "Noor lives in Oslo with Tim.", "adds"),
        ("Noor plays the oboe.", "Noor plays the oboe in a trio.", "adds"),
        ("Noor has a dog.", "Noor has a dog allergy.", "unrelated"),
        ("Noor eats eggs.", "Noor eats eggs only on Sundays.", "unrelated"),
        ("Noor writes C.", "Noor writes C++.", "unrelated"),
        ("Noor flew from Rome to Oslo.", "Noor flew from Oslo to Rome.", "unrelated"),
        ("我住在北京。", "我住在北京", "same"),
    ],
)
def test_the_same_and_more_of_it(old: str, new: str, expected: str) -> None:
    assert kind(old, new, "Zoë" if old.startswith("Zoë") else "Noor") == expected


def test_a_relation_has_a_reason() -> None:
    assert compare("Noor eats meat.", "Noor no longer eats meat.", speaker="Noor").why == "says the opposite"


@given(st.text(max_size=80), st.text(max_size=80), st.sampled_from([None, "Noor", "("]))
def test_any_two_texts_are_compared(old: str, new: str, speaker: str | None) -> None:
    assert compare(old, new, speaker=speaker).kind in ("same", "adds", "supersedes", "unrelated")
    assert compare(old, old, speaker=speaker).kind == "same"


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
