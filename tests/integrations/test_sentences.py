"""Memories in plain sentences: who said it, when, why it was found, and what is said when nothing fits."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from wellworn.core.values import Cost, Entry, Factor, Hit, Partition, Recall
from wellworn.ingest.utterance import wants_answer
from wellworn.integrations.conversation import (
    CANNOT,
    HELLO,
    INTRODUCTION,
    NOTED,
    UNKNOWN,
    day,
    reply,
    sentence,
    told,
    why,
)

NOW = datetime(2026, 5, 20, 12, tzinfo=UTC)
OSLO = "You told me on 3 March: “I live in Oslo.”"
HOME = Partition(tenant="default", layer="user", layer_id="ada")


def hit(text: str, *, score: float = 10.0, days: int = 78, factors: dict[str, float] | None = None, **said: Any) -> Hit:
    at = NOW - timedelta(days=days)
    times: dict[str, Any] = dict.fromkeys(("at", "created_at", "updated_at", "valid_from"), at)
    given: dict[str, Any] = {"kind": "episode", "source": "user", "evidence": text, **said}
    parts = factors or {"terms": 0.6 * score, "meaning": 0.4 * score}
    made = tuple(Factor(name=name, value=value, weight=1.0) for name, value in parts.items())
    entry = Entry(id=text, partition=HOME, text=text, **times, **given)
    return Hit(entry=entry, score=score, explanation=made, outdated=entry.state == "superseded")


def recall(*hits: Hit, query: str = "Where do I live?") -> Recall:
    return Recall(id="r", query=query, hits=[*hits], route="plain", cost=Cost())


def answer(text: str, *hits: Hit) -> str:
    return reply(text, recall(*hits), now=NOW, newer={})


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (hit("I live in Oslo."), "You told me on 3 March: “I live in Oslo.”"),
        (hit("I live in Oslo.", days=400), "You told me on 15 April 2025: “I live in Oslo.”"),
        (
            hit("I live in Oslo.", state="superseded"),
            "You told me on 3 March: “I live in Oslo.” Since then it has changed.",
        ),
        (hit("You live in Oslo.", days=0, source="assistant"), "I said today: “You live in Oslo.”"),
        (hit("I moved.", source="Mia", speaker="Mia"), "Mia said on 3 March: “I moved.”"),
        (
            hit("Ada lives in Oslo.", kind="fact", source="reflection", evidence="ada: I live in Oslo."),
            "You told me on 3 March: “I live in Oslo.”",
        ),
        (
            hit(
                "Ada has two homes.", kind="fact", source="reflection", evidence="ada: I live in Oslo.\nada: And Bonn."
            ),
            "You told me on 3 March: “Ada has two homes.”",
        ),
        (
            hit("Oslo is wet.", kind="note", source="file", title="Weather"),
            "“Weather” noted on 3 March: “Oslo is wet.”",
        ),
    ],
)
def test_a_memory_is_told_with_its_source(found: Hit, expected: str) -> None:
    assert sentence(found, now=NOW) == expected


def test_days_are_said_as_people_say_them() -> None:
    days = [0, 1, 2, 100, 300]
    said = [day(NOW - timedelta(days=n), NOW) for n in days]
    assert said == ["today", "yesterday", "on 18 May", "on 9 February", "on 24 July 2025"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Where do I live?", OSLO),
        ("what's my dentist called", OSLO),
        ("Remind me what Mia is allergic to", OSLO),
        ("I moved. Where do I live now?", OSLO),
        ("Wie heißt meine Schwester?", OSLO),
        ("I live in Oslo.", NOTED),
        ("When I was young I lived in Rome.", NOTED),
        ("Nice to meet you, I am Ada.", NOTED),
        ("I write a diary.", NOTED),
        ("Give my regards to Mia.", NOTED),
        ("ok great", "Any time."),
        ("Good morning Ada", HELLO),
        ("Hey, what's up?", HELLO),
    ],
)
def test_questions_are_answered_and_statements_acknowledged(text: str, expected: str) -> None:
    assert wants_answer(text) == (expected == OSLO) or expected == HELLO
    assert answer(text, hit("I live in Oslo.")) == expected
    assert expected != OSLO or answer(text) == reply(text, None, now=NOW, newer={}) == UNKNOWN


def test_what_is_about_as_good_is_told_too_and_nothing_twice() -> None:
    hits = [
        hit("I live in Oslo."),
        hit("Ada lives in Oslo.", score=9.5, kind="fact", source="reflection", evidence="ada: I live in Oslo."),
        hit("My flat is in Oslo West.", score=9.0),
        hit("I like tea.", score=3.0),
    ]
    assert [one.text for one in told(hits, {})] == ["I live in Oslo.", "My flat is in Oslo West."]


def test_what_was_replaced_is_told_after_what_holds_now_and_nothing_else_that_is_outdated() -> None:
    moved = hit("I moved to Bergen.", score=5.0, session_id="s", turn_refs=(3,))
    fact = hit("Ada moved to Bergen.", score=5.0, session_id="s", turn_refs=(3,))  # of the same turn
    old, older = (hit(f"I live in {place}.", state="superseded", score=9.0) for place in ("Oslo", "Rome"))
    other = hit("My car is a Volvo.", state="superseded", score=9.5)
    newer = {old.entry.id: [fact.entry], older.entry.id: [old.entry], other.entry.id: [hit("I bought a Saab.").entry]}
    assert reply("Where do I live?", recall(moved, other, old, older), now=NOW, newer=newer).splitlines() == [
        "You told me on 3 March: “I moved to Bergen.”",
        "You told me on 3 March: “I live in Oslo.” Since then it has changed.",
        "You told me on 3 March: “I live in Rome.” Since then it has changed.",
    ]
    assert told([old, older, moved], newer) == [old, older], "asked about what was"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hi! How are you doing today?", INTRODUCTION),
        ("Can you help me?", INTRODUCTION),
        ("???", UNKNOWN),
        ("Who cuts the hedge?", UNKNOWN),
        ("Do you know my shoe size?", UNKNOWN),
        ("write me a haiku about espresso", CANNOT),
        ("Schreib mir ein Gedicht", CANNOT),
        ("Can you draw me a cat?", CANNOT),
    ],
)
def test_a_stranger_is_not_told_and_what_it_cannot_do_is_said(text: str, expected: str) -> None:
    assert answer(text, hit("I like tea.", score=2.0)) == expected


def test_a_memory_of_which_a_part_was_replaced_says_so() -> None:
    pets = hit("We have a cat called Poes and a dog called Rex.")
    newer = {pets.entry.id: [hit("Poes died.").entry]}
    assert reply("Do we have pets?", recall(pets), now=NOW, newer=newer).endswith("Rex.” Part of this no longer holds.")


def test_why_gives_reasons_in_words() -> None:
    found = hit("I live in Oslo.", factors={"terms": 6.0, "meaning": 3.0, "recency": 0.2, "length": -0.7})
    other = hit("I like tea.", score=2.0)
    assert why(recall(other, found), [found], now=NOW).splitlines() == [
        "For “Where do I live?” I found this:",
        "- You told me on 3 March: “I live in Oslo.”",
        "  Because it has your words and its meaning is close.",
    ]
    nearest = why(recall(other, found), [], now=NOW)
    assert nearest.startswith("Nothing that I remember seems to answer “Where do I live?”. Nearest is:")
    assert nearest.endswith("“I like tea.”\n  But the match is weak: it has your words and its meaning is close.")
    assert "the match is weak" in why(recall(found, other), [found, other], now=NOW)
    assert why(recall(), [], now=NOW) == "Nothing that I remember has to do with “Where do I live?”."
