"""How a new memory relates to an old one."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wellworn.reflection.candidate import Candidate
from wellworn.reflection.compare import Relation, compare
from wellworn.testing.builders import make_entry

from .compared import Case, cases, scores

WRITTEN_FOR = [case for case in cases("compare_cases.yaml") if not case.held_out]
HELD_OUT = [case for case in cases("compare_cases.yaml") if case.held_out]
FRESH = cases("compare_fresh.yaml")
LAST = cases("compare_last.yaml")
PRECIOUS = ("same", "changed", "corrected")
"""Kinds whose mistakes lose a fact."""


def related(new: str, old: str, said: str | None = None, **given: str | float | None) -> Relation:
    similarity = given.pop("similarity", None)
    speaker, old_speaker = given.pop("speaker", None), given.pop("old_speaker", None)
    assert not given
    assert not isinstance(speaker, float)
    assert not isinstance(similarity, str)
    return compare(
        Candidate(summary=new, turns=(0,), speaker=speaker),
        make_entry("old", text=old, speaker=old_speaker),
        said=new if said is None else said,
        similarity=similarity,
    )


def test_there_are_enough_pairs_of_every_kind() -> None:
    assert len(WRITTEN_FOR) + len(HELD_OUT) >= 250
    assert {case.kind for case in HELD_OUT} == {"same", "refines", "changed", "corrected", "different"}


@pytest.mark.parametrize("case", WRITTEN_FOR, ids=lambda case: f"{case.kind}: {case.new} / {case.old}")
def test_pairs_that_the_rules_were_written_for(case: Case) -> None:
    assert case.relation().kind == case.kind


@pytest.mark.parametrize("tested", [HELD_OUT, FRESH, LAST], ids=["held out", "fresh", "last"])
def test_other_pairs_lose_no_fact(tested: list[Case]) -> None:
    found = scores(tested)
    for kind in PRECIOUS:
        assert found[kind].precision >= 0.95, kind
        assert found[kind].recall >= 0.9, kind
    assert found["all"].precision >= 0.95


@pytest.mark.parametrize(
    "tested", [WRITTEN_FOR, HELD_OUT, FRESH, LAST], ids=["written for", "held out", "fresh", "last"]
)
def test_a_refined_text_holds_every_name_and_number_of_both(tested: list[Case]) -> None:
    for case in tested:
        relation = case.relation()
        assert (relation.merged is not None) == (relation.kind == "refines")
        if relation.merged is None:
            continue
        merged = relation.merged.casefold()
        told = [word.strip(".,") for text in (case.new, case.old) for word in text.split()]
        assert all(w.casefold() in merged for w in told if w[1:2].isdigit()), case
        assert all(w.casefold() in merged for w in told if w[:1].isupper() and w not in ("The", "User")), case


def test_details_of_both_are_put_into_one_sentence() -> None:
    relation = related("Ada lives in Lisbon near the river.", "Ada lives in Lisbon with Tom.")
    assert relation.merged == "Ada lives in Lisbon with Tom near the river."


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("Ada meets Ann at 3 pm.", "Ada meets Ann at 4 pm."),
        ("Ada likes tea.", "Ada does not like tea."),
        ("Anna called.", "Ann called."),
        ("Ada's flight is on 3 May.", "Ada's flight is on 4 May."),
        ("Ada visited her brother.", "Ada visited her sister."),
        ("Ada paid 20 euros.", "Ada paid 20 dollars."),
        ("Ada knows C.", "Ada knows C++."),
        ("Ada mag Kaffee.", "Ada mag keinen Kaffee."),
    ],
)
def test_a_high_cosine_does_not_make_two_facts_one(new: str, old: str) -> None:
    assert related(new, old, similarity=0.99).kind != "same"


def test_a_low_cosine_speaks_against_other_words_but_not_against_the_same_ones() -> None:
    assert related("Ada loves hiking.", "Ada enjoys hiking.").kind == "same"
    assert related("Ada loves hiking.", "Ada enjoys hiking.", similarity=0.05).kind == "different"
    assert related("Ada loves hiking!", "Ada loves hiking.", similarity=0.05).kind == "same"


def test_reasons_name_the_rule() -> None:
    assert related("Ada lives in Rome.", "Ada lives in Rome.").why == "exact"
    assert related("ada lives in rome", "Ada lives in Rome.").why == "near"
    assert related("Ada resides in Rome.", "Ada lives in Rome.").why == "reworded"
    assert related("Ada works for the WWF.", "Ada works for the World Wildlife Fund.").why == "acronym"
    assert related("Ada lives in Oslo.", "Ada lives in Rome.").why == "value changed: home"


def test_wrong_and_no_longer_true_are_told_apart_by_what_was_said() -> None:
    new, old = "Ada lives in Bern.", "Ada lives in Berlin."
    assert related(new, old, "I moved to Bern in May.").kind == "changed"
    assert related(new, old, "I said Bern, not Berlin!").kind == "corrected"


def test_what_is_said_about_something_else_does_not_count() -> None:
    said = "I was wrong about the train times. They leave at nine. It rained all day. Lunch was fine. I play the cello."
    assert related("Ben plays the cello.", "Ben plays the viola.", said).kind == "different"


def test_speakers_are_kept_apart() -> None:
    assert related("I like tea.", "I like tea.", speaker="Ben", old_speaker="Ada").kind == "different"
    assert related("I like tea.", "Ada likes tea.", speaker="Ada", old_speaker="Ada").kind == "same"
    assert related("I like tea.", "I like tea.", speaker="Ada Lovelace", old_speaker="Ada").kind == "same"


def test_an_old_memory_with_more_to_it_is_not_given_up_for_one_slot() -> None:
    old = "Ada lives in Berlin, works at Acme and has two dogs."
    assert related("Ada lives in Rome.", old, "I live in Rome now.").kind == "different"


def test_one_in_a_country_and_one_in_a_town_are_no_change() -> None:
    assert related("Ada lives in Portugal.", "Ada lives in Lisbon.").kind == "different"
    assert related("Ada lives in Portugal.", "Ada lives in Berlin.", "I moved to Portugal!").kind == "changed"


ODD_TURNS = [
    ("The cat is in the box.", "The cat is under the box."),
    ("Ada likes him.", "Ada likes her."),
    ("Ada's preferred pronouns are they/them.", "Ada's preferred pronouns are she/her."),
    ("Ada bought 2 apples and 3 pears.", "Ada bought 3 apples and 2 pears."),
    ("Tom plays chess and Max plays go.", "Tom plays go and Max plays chess."),
    ("Tom, 5, and Max, 7, are Ada's sons.", "Tom, 7, and Max, 5, are Ada's sons."),
    ("Ada's boss is on holiday.", "Ada's boss is Olga."),
    ("Ada's car is in the garage.", "Ada's car is a Honda Civic."),
    ("Ada works at night.", "Ada works at Acme."),
    ("Ada is a good teacher.", "Ada is a nurse."),
    ("Ada is engaged with the project.", "Ada is single."),
    ("Ada is 170 cm tall.", "Ada is 31 years old."),
    ("Ada sold a painting.", "Ada has a painting by Klee."),
    ("Ada ate an apple.", "Ada eats apples."),
    ("Ada is Tom's boss.", "Tom is Ada's boss."),
    ("She lives in Rome.", "She lives in Oslo."),
    ("Ada has a dog allergy.", "Ada has a dog."),
]


@pytest.mark.parametrize(("new", "old"), ODD_TURNS)
def test_look_alikes_are_different_either_way(new: str, old: str) -> None:
    assert related(new, old).kind == "different"
    assert related(old, new).kind == "different"


TEXTS = st.text(max_size=200)
SOME = """Ada Ben the a lives works in at Rome Acme not no longer moved to likes tea coffee 3 4 May pm is was married
and but never anymore , . ? 's has two dogs instead of Dr. Smith NYC prefers over from it if 1,000 $ 🍎 أنا 東京"""
WORDS = st.lists(st.sampled_from(SOME.split()), max_size=14).map(" ".join)


@settings(deadline=None)
@given(text=TEXTS | WORDS)
def test_a_text_is_the_same_as_itself(text: str) -> None:
    assert related(text, text).kind == "same"


@settings(deadline=None)
@given(text=WORDS)
def test_case_and_final_marks_do_not_matter(text: str) -> None:
    if any(c.isalnum() for c in text) and "?" not in text:
        assert related(f"{text}.", text.rstrip(" .!")).kind == "same"


@settings(max_examples=300, deadline=None)
@given(new=TEXTS | WORDS, old=TEXTS | WORDS, said=TEXTS | WORDS)
def test_any_text_can_be_compared(new: str, old: str, said: str) -> None:
    relation = related(new, old, said)
    assert (relation.merged is not None) == (relation.kind == "refines")
    assert relation == related(new, old, said)


@settings(max_examples=300, deadline=None)
@given(one=WORDS, other=WORDS)
def test_saying_the_same_works_both_ways(one: str, other: str) -> None:
    there, back = related(one, other), related(other, one)
    if there.kind == "same" and there.why != "covered":
        assert back.kind == "same"
    if there.why == "covered":
        assert back.kind in ("same", "refines")


@pytest.mark.parametrize("case", WRITTEN_FOR + HELD_OUT + FRESH + LAST, ids=lambda case: f"{case.new} / {case.old}")
def test_one_fact_in_two_wordings_is_one_whichever_came_first(case: Case) -> None:
    if case.kind == "same" and case.relation().why not in ("covered", "other"):
        turned = Case(
            kind="same", new=case.old, old=case.new, said=case.old, speaker=case.old_speaker, old_speaker=case.speaker
        )
        assert turned.relation().kind == "same"


@pytest.mark.parametrize(
    "piece",
    ["a", "1", "1 ", "a.", "a.a@", "(", "Ada ", "and ", "not ", "Ada likes tea. ", "東京", "🍎", "'s ", "1,", "A "],
)
def test_a_hundred_thousand_characters_take_no_longer_than_reading_them(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    began = time.process_time()
    related(text, text + "b", said=text)
    assert time.process_time() - began < 5
    short = piece * (3_900 // len(piece))
    began = time.process_time()
    related(short, short + " b", said=short)
    assert time.process_time() - began < 5
