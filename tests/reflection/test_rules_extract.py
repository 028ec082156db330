"""Whole sessions: who is heard, what an answer takes up, what becomes one memory and what stays apart."""

from __future__ import annotations

from wellworn.reflection.rules.extract import extract
from wellworn.reflection.rules.memories import MOST_PER_TURN, MOST_STATEMENTS

from .dialogue import dialogue

HOTELS = "\n".join(["Here are the options:", *[f"{n}. **Hotel {n}**: {n}0 euros a night" for n in range(1, 5)]])


def test_both_people_of_a_dialogue_are_heard_under_their_names() -> None:
    turns = dialogue(
        ("Mel", "Hey Caro! I signed up for a pottery class yesterday."),
        ("Caro", "That's so cool! My sister teaches pottery in Leeds."),
        ("Mel", "Wow, great! What does she make?"),
        ("Caro", "Mostly bowls. She gave me one."),
    )
    found = extract(turns)
    assert [(one.summary, one.turns, one.speaker) for one in found] == [
        ("Mel signed up for a pottery class yesterday (2024-04-30).", (0,), "Mel"),
        ("Caro's sister teaches pottery in Leeds.", (1,), "Caro"),
    ]


def test_in_a_dialogue_you_is_the_other() -> None:
    (memory,) = extract(dialogue(("Mel", "I still have the book that you lent me."), ("Caro", "Keep it!")))
    assert memory.summary == "Mel still has the book that Caro lent them."


def test_what_a_turn_says_of_one_topic_is_one_memory() -> None:
    (memory,) = extract(
        dialogue(("user", "I'm moving to Lisbon in July. My budget is 900 euros. I want a flat near the river.")),
        user="Ada",
    )
    assert memory.summary == (
        "Ada is moving to Lisbon in July (2024-07). Ada's budget is 900 euros. Ada wants a flat near the river."
    )


def test_details_beside_a_statement_go_with_it() -> None:
    (memory,) = extract(dialogue(("user", "I'm looking for a flat in Lisbon. It has to allow dogs.")), user="Ada")
    assert memory.summary == "Ada is looking for a flat in Lisbon. It has to allow dogs."


def test_rules_names_and_what_ends_are_memories_of_their_own() -> None:
    found = extract(
        dialogue(
            (
                "user",
                "My name is Ada. I work at a bakery in Leeds. I'm on leave until August. "
                "From now on, answer me in German.",
            )
        ),
        user="Ada",
    )
    assert {one.summary: one.kind for one in found} == {
        "Ada works at a bakery in Leeds.": "fact",
        "Ada's name is Ada.": "fact",
        "Ada is on leave until August (2024-08).": "fact",
        "Ada asks: from now on, answer them in German.": "preference",
    }
    assert [one.summary for one in found if one.valid_to] == ["Ada is on leave until August (2024-08)."]


def test_an_answer_rests_on_the_question_too() -> None:
    found = extract(
        dialogue(
            ("user", "I'd like to plan my holiday in Portugal with you, it's my first one in years."),
            ("assistant", "Lovely! Which month suits you, and what is your budget?"),
            ("user", "I'm free in September. The budget is 1500 euros, I can't spend more."),
        ),
        user="Ada",
    )
    assert found[-1].turns == (1, 2)
    assert found[-1].summary == (
        'Answering "Which month suits you, and what is your budget?": Ada is free in September (2024-09). '
        "The budget is 1500 euros, Ada can't spend more."
    )


def test_what_the_person_accepts_is_remembered_with_the_offer() -> None:
    found = extract(
        dialogue(
            ("user", "I'm planning a quiet weekend in Kyoto and I need somewhere calm to sleep."),
            ("assistant", HOTELS + "\n\nWhich do you like?"),
            ("user", "Perfect, that's just what I hoped for. I'll book the second one tonight."),
        ),
        user="Ada",
    )
    assert found[-1].turns == (1, 2)
    assert found[-1].summary.startswith("Ada accepted: Hotel 1: 10 euros a night; Hotel 2: 20 euros a night;")
    assert found[-1].summary.endswith("Ada will book the second one tonight (2024-05-01).")


def test_what_the_person_turns_down_is_not() -> None:
    found = extract(
        dialogue(
            ("user", "I'm planning a quiet weekend in Kyoto and I need somewhere calm to sleep."),
            ("assistant", HOTELS + "\n\nWhich do you like?"),
            ("user", "No, I can't afford any of those hotels. My limit is 8 euros, I'm a student."),
        ),
        user="Ada",
    )
    assert all("Hotel" not in one.summary and 1 not in one.turns for one in found)
    assert found[-1].turns == (2,)


def test_a_long_result_handed_over_in_a_personal_talk_is_a_note() -> None:
    plan = "Here's your plan:\n" + "".join(f"- **Week {n}**: run {n} times\n" for n in range(1, 13))
    found = extract(
        dialogue(
            ("user", "I've decided to run the Bergen marathon in October. My knees hurt, so I can't run daily."),
            ("assistant", plan),
        ),
        user="Ada",
    )
    assert (found[-1].kind, found[-1].turns) == ("note", (1,))
    assert found[-1].summary.startswith("The assistant gave Ada: Week 1: run 1 times; Week 2: run 2 times;")


def test_among_tasks_only_what_stands_for_itself_is_kept() -> None:
    turns = dialogue(
        ("user", "Explain the French revolution in three sentences."),
        ("assistant", "It began in 1789. It ended the monarchy. It changed Europe."),
        ("user", "Translate it. I bought the big dictionary of my town's shop."),
        ("assistant", "Elle a commencé en 1789."),
        ("user", "List five sources. By the way, I'm allergic to peanuts."),
        ("assistant", "Here are five."),
    )
    assert [one.summary for one in extract(turns, user="Ada")] == ["Ada is allergic to peanuts."]


def test_the_same_statement_is_kept_once() -> None:
    found = extract(dialogue(("Mel", "I live in York."), ("Caro", "Nice!"), ("Mel", "I live in York.")))
    assert [one.turns for one in found] == [(0,)]


def test_a_correction_is_told_plainly() -> None:
    (memory,) = extract(dialogue(("user", "Actually, my sister lives in Porto, not in Lisbon.")), user="Ada")
    assert memory.summary == "Ada's sister lives in Porto, not in Lisbon."


def test_whoever_gives_their_name_is_not_called_by_it_twice() -> None:
    (memory,) = extract(dialogue(("user", "Hi, I'm Ada, a nurse from Leeds.")), user="ada")
    assert memory.summary == "Ada is a nurse from Leeds."
    assert extract(dialogue(("user", "Hi, I'm Ada.")), user="ada") == []


def test_a_rule_of_few_english_words_is_one() -> None:
    (memory,) = extract(dialogue(("user", "Please always use metric units.")), user="Ada")
    assert (memory.summary, memory.kind) == ("Ada asks: please always use metric units.", "preference")


def test_a_very_long_turn_gives_few_memories() -> None:
    said = " ".join(f"I visited town number {n} with my cousin." for n in range(30))
    found = extract(dialogue(("user", said)), user="Ada")
    assert 1 <= len(found) <= MOST_PER_TURN
    assert all(one.summary.count("Ada ") <= MOST_STATEMENTS for one in found)


def test_a_list_belongs_to_the_line_above_it() -> None:
    (memory,) = extract(dialogue(("user", "My goals for the year:\n- run 10 km\n- read 20 books\n")), user="Ada")
    assert memory.summary == "Ada's goals for the year: run 10 km; read 20 books."


def test_turn_numbers_are_those_of_the_session() -> None:
    turns = dialogue(("user", "Hi!"), ("system", "I live here."), ("user", "I live in Oslo."))[1:]
    assert [one.turns for one in extract(turns, user="Ada")] == [(2,)]
