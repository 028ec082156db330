"""Short everyday sessions: plain facts, wishes about answers and requests to remember are found; tasks stay silent."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from wellworn.reflection.candidate import Candidate
from wellworn.reflection.compare import compare
from wellworn.reflection.rules.extract import extract
from wellworn.testing.builders import make_entry

from .dialogue import dialogue
from .everyday import Everyday, sessions, tasks

DEVELOPED, HELD_OUT = sessions()
FOUND_OF_HELD_OUT = 0.75
"""The share found when the held-out sessions were first read."""


@pytest.mark.parametrize("session", DEVELOPED, ids=lambda one: str(one.said[0][1])[:40])
def test_an_everyday_session_gives_what_one_expects(session: Everyday) -> None:
    assert session.missed() == []


def test_most_of_the_sessions_held_out_are_found() -> None:
    wanted = sum(len(one.want) for one in HELD_OUT)
    missed = sum(len(one.missed()) for one in HELD_OUT)
    assert 1 - missed / wanted >= FOUND_OF_HELD_OUT


@pytest.mark.parametrize("session", tasks(), ids=lambda one: str(one.said[0][1])[:40])
def test_a_task_gives_nothing(session: Everyday) -> None:
    assert session.found() == []


def test_facts_that_change_apart_are_memories_of_their_own_with_the_same_evidence() -> None:
    found = extract(dialogue(("user", "I live in Berlin and work as a nurse at Charité.")), user="ada")
    assert [(one.summary, one.turns) for one in found] == [
        ("Ada lives in Berlin.", (0,)),
        ("Ada works as a nurse at Charité.", (0,)),
    ]


@pytest.mark.parametrize(
    "said",
    [
        "I live in a house with a garden and a pond.",
        "I want to move to Rome and live in a flat.",
        "I work as a nurse and love it.",
    ],
)
def test_what_is_one_fact_stays_one(said: str) -> None:
    assert len(extract(dialogue(("user", said)), user="Ada")) == 1


def test_a_home_that_changes_leaves_the_job_alone() -> None:
    before = extract(dialogue(("user", "I live in Berlin and work as a nurse at Charité.")), user="ada")
    said = "I moved to Hamburg last week."
    at = datetime(2026, 4, 1, tzinfo=UTC)
    (after,) = extract(dialogue(("user", said), at=at), user="ada")
    assert after.summary == "Ada moved to Hamburg last week (2026-03-23 to 2026-03-29)."
    kinds = [compare(after, make_entry("old", text=one.summary), said=said).kind for one in before]
    assert kinds == ["changed", "different"]


def test_a_note_says_what_it_points_to_by_name() -> None:
    found = extract(
        dialogue(
            ("user", "My build broke on the new laptop."),
            ("assistant", "I see."),
            ("user", "Clearing the cache fixed it, write that down."),
        ),
        user="ada",
    )
    assert (found[-1].summary, found[-1].turns) == (
        "Ada's build broke on the new laptop. Clearing the cache fixed it.",
        (0, 2),
    )


def test_somebody_introduced_earlier_is_told_by_relation() -> None:
    found = extract(
        dialogue(
            ("user", "My sister Mia is visiting."),
            ("assistant", "Nice."),
            ("user", "Actually, Mia is allergic to hazelnuts, not peanuts."),
            ("assistant", "Noted."),
            ("user", "Zoe is allergic to peanuts."),
        ),
        user="ada",
    )
    assert [one.summary for one in found] == [
        "Ada's sister Mia is visiting.",
        "Actually, Ada's sister Mia is allergic to hazelnuts, not peanuts.",
    ]


@pytest.mark.parametrize(
    ("user", "name"),
    [("ada", "Ada"), ("ada lovelace", "Ada Lovelace"), ("Ada", "Ada"), ("McKay", "McKay"), ("u-4711", "the user")],
)
def test_an_id_that_is_a_name_is_written_as_one_everywhere(user: str, name: str) -> None:
    (memory,) = extract(dialogue(("user", "Dr. Okafor told me to rest my knee and I bought a brace.")), user=user)
    assert memory.summary == f"Dr. Okafor told {name} to rest their knee and they bought a brace."


@pytest.mark.parametrize(
    ("new", "old", "said", "kind"),
    [
        ("Ada has a new job at Siemens.", "Ada works at Charité.", "", "changed"),
        ("Ada found a new job at Siemens.", "Ada works as a nurse at Charité.", "", "changed"),
        ("Ada has a job interview at Siemens.", "Ada works at Charité.", "", "different"),
        ("Ada has a second job at Siemens.", "Ada works at Charité.", "", "different"),
        ("Ada moved to Hamburg two weeks ago.", "Ada lives in Berlin.", "", "changed"),
        ("Ada reports to Mireille now, not to Tomas.", "Ada reports to Tomas.", "", "changed"),
        ("Ada reports to Mireille.", "Ada's manager is Tomas.", "", "changed"),
        ("Ada reports to work at nine.", "Ada reports to Tomas.", "", "different"),
        (
            "Ada's sister Mia is allergic to hazelnuts, not peanuts.",
            "Ada's sister Mia is allergic to peanuts.",
            "Actually, Mia is allergic to hazelnuts, not peanuts.",
            "corrected",
        ),
        ("Ada's sister Mia is allergic to hazelnuts.", "Ada's sister Mia is allergic to peanuts.", "", "different"),
        (
            "Ada's brother Leo is allergic to hazelnuts, not peanuts.",
            "Ada's sister Mia is allergic to peanuts.",
            "",
            "different",
        ),
    ],
)
def test_everyday_changes_are_seen(new: str, old: str, said: str, kind: str) -> None:
    candidate = Candidate(summary=new, turns=(0,), speaker="Ada")
    assert compare(candidate, make_entry("old", text=old), said=said or new).kind == kind
