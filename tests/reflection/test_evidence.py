"""Evidence or reject."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from wellworn.core.values import Turn
from wellworn.reflection import Candidate
from wellworn.reflection.extract import evidence_of, rejection

SAID = [
    Turn(
        session_id="s",
        number=0,
        role="user",
        speaker="Ada",
        at=datetime(2026, 3, 2, tzinfo=UTC),
        text="My sister Mia moved to Lisbon last week, and I paid 1,200 euros for three tickets.",
    ),
    Turn(
        session_id="s",
        number=1,
        role="assistant",
        at=datetime(2026, 3, 2, tzinfo=UTC),
        text="How lovely! Is Porto on your list too?",
    ),
]


def _rejection(summary: str, turns: tuple[int, ...] = (0,), speaker: str | None = "Ada") -> str | None:
    candidate = Candidate(summary=summary, turns=turns, speaker=speaker)
    return rejection(candidate, [SAID[n] for n in turns], SAID)


@pytest.mark.parametrize(
    "summary",
    [
        "Ada's sister Mia moved to Lisbon in late February 2026.",
        "Ada paid 1200 euros for 3 tickets.",
        "The user's sister moved to Lisbon.",
        "Ada has a sister called Mia who lives in Lisbon.",
    ],
)
def test_what_the_turns_say_is_believed(summary: str) -> None:
    assert _rejection(summary) is None


@pytest.mark.parametrize(
    ("summary", "reason"),
    [
        ("Ada works as a nurse in a hospital.", "not in the evidence"),
        ("Ada paid 900 euros for tickets to Lisbon.", "invented number"),
        ("Ada's sister Mia moved to Lisbon with Bruno.", "invented name"),
        ("Ada.", "says nothing"),
        ("The user said.", "not in the evidence"),
        ("Ada moved to Lisbon with Mo.", "invented name"),
        ("Ada paid for tickets in 2003.", "invented number"),
        ("Ada's sister Mia adores every museum, church, castle, garden and beach of Porto.", "not in the evidence"),
    ],
)
def test_what_they_do_not_say_is_rejected(summary: str, reason: str) -> None:
    assert _rejection(summary) == reason


@pytest.mark.parametrize(
    ("said", "summary"),
    [
        ("It has been like that since christmas.", "Ada's wrist has hurt since Christmas 2025, like that."),
        ("I lost the tip of my finger in an auger in '93.", "Ada lost the tip of a finger in an auger in 1993."),
        ("next: a jenkinsfile stage that caches node_modules", "Ada uses a stage of Jenkins that caches node modules."),
        ("Later, after Grenoble.", "Ada will make a plan for three tickets to Lisbon after Grenoble."),
    ],
)
def test_what_can_be_worked_out_is_believed(said: str, summary: str) -> None:
    turn = Turn(session_id="s", number=2, role="user", speaker="Ada", at=datetime(2026, 3, 2, tzinfo=UTC), text=said)
    assert rejection(Candidate(summary=summary, turns=(2,), speaker="Ada"), [turn], [*SAID, turn]) is None


def test_a_turn_named_must_say_some_of_it() -> None:
    assert _rejection("Ada's sister Mia moved to Lisbon.", turns=(1,)) == "not in the evidence"


def test_evidence_is_verbatim_with_who_said_it() -> None:
    assert evidence_of(SAID[1:]) == "assistant: How lovely! Is Porto on your list too?"
