"""From a window of a session to proposed memories: which turns are read, evidence or reject, and a model's answers."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.builders import make_entry
from wellworn.core.errors import InvalidInput, ReplyUnreadable
from wellworn.core.values import Turn
from wellworn.core.wellformed import one_line
from wellworn.reflection import Candidate, ReflectionSettings
from wellworn.reflection.extract import (
    CONTEXT_TURNS,
    MAX_SUMMARY_CHARS,
    MOST_MEMORIES,
    WINDOW_TURNS,
    Action,
    read_actions,
    read_memories,
    readable,
    rejection,
    windows,
)

AT = datetime(2026, 3, 2, tzinfo=UTC)


def _turn(number: int, text: str = "I said so.", role: str = "user") -> Turn:
    return Turn(session_id="s", number=number, role=role, text=text, at=AT, entry_id=f"e{number}")


def _read(*turns: Turn, **given: Any) -> list[Turn]:
    """What is read of turns whose episodes have these fields."""
    return readable(turns, {f"e{one.number}": make_entry(id=f"e{one.number}", text=one.text, **given) for one in turns})


@pytest.mark.parametrize(("count", "start"), [(0, 0), (1, 0), (1, 1), (3, 2), (40, 0), (41, 0), (130, 0), (130, 45)])
def test_every_turn_from_the_start_on_is_in_exactly_one_window(count: int, start: int) -> None:
    parts = windows([_turn(number) for number in range(count)], start)
    assert [turn.number for part in parts for turn in part.turns] == list(range(start, count))
    for part in parts:
        first = part.turns[0].number
        assert len(part.turns) <= WINDOW_TURNS
        assert [turn.number for turn in part.context] == list(range(max(0, first - CONTEXT_TURNS), first))


def test_a_window_holds_no_more_tokens_than_fit_but_one_turn_at_least() -> None:
    turns = [_turn(0, "word " * 3_000), _turn(1, "word " * 9_000), _turn(2, "word " * 3_000)]
    assert [[turn.number for turn in part.turns] for part in windows(turns)] == [[0], [1], [2]]


@pytest.mark.parametrize("role", ["system", "System", "tool", "function", "developer"])
def test_system_and_tool_text_is_not_read(role: str) -> None:
    assert _read(_turn(0, role=role)) == []


def test_recalled_memories_are_cut_out_also_when_the_block_never_closes() -> None:
    block = '<memories note="x">\n[0] (fact) Ada has a cat.\n</memories>'
    turns = [_turn(0, f"{block}\nWhat does she have?"), _turn(1, block), _turn(2, '<memories note="x">\n[0] cut off')]
    assert [(turn.number, turn.text) for turn in _read(*turns)] == [(0, "What does she have?")]


def test_a_turn_tagged_as_recalled_is_not_read() -> None:
    assert _read(_turn(0), tags=["recalled"]) == []
    assert [turn.number for turn in _read(_turn(0), tags=["other"])] == [0]


@pytest.mark.parametrize("wrong", [{"every_turns": 0}, {"idle_minutes": -1}, {"summarize_above": True}])
def test_settings_out_of_range_are_refused_by_name(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidInput, match=f"reflection.{next(iter(wrong))}"):
        ReflectionSettings(**wrong)


# -- evidence ---

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


# -- a model's answers ---

NUMBERS = frozenset(range(6))


def _answer(*items: object) -> str:
    return json.dumps({"extracted_memories": items})


@pytest.mark.parametrize("answer", ["NO_TRAIT", " no_trait. ", '"NO_TRAIT"', "`NO_TRAIT`", "I found NO_TRAIT here."])
def test_nothing_worth_keeping_is_no_error(answer: str) -> None:
    assert read_memories(answer, NUMBERS) == ([], {})


UNREADABLE = [
    "",
    "I could not find anything.",
    "42",
    '{"answer": 1}',
    "null",
    '{"memories": [{"text": "Ada has a cat."}]}',
]


@pytest.mark.parametrize("answer", [*UNREADABLE, _answer(5, None, {"summary": None})])
def test_an_answer_without_memories_is_unreadable(answer: str) -> None:
    with pytest.raises(ReplyUnreadable):
        read_memories(answer, NUMBERS)


@pytest.mark.parametrize(
    ("reference", "turns"),
    [(2, (2,)), ("2", (2,)), ("Turn 2", (2,)), ([0, [2]], (0, 2)), ("0, 2", (0, 2)), ([2, 2], (2,)), (2.0, (2,))],
)
def test_references_are_read_in_whatever_form(reference: object, turns: tuple[int, ...]) -> None:
    (found,), _ = read_memories(_answer({"summary": "x y", "reference": reference}), NUMBERS)
    assert found.turns == turns


@pytest.mark.parametrize("reference", [None, [], [99], -1, True, {"a": 1}, "none", [[[[[0]]]]]])
def test_a_memory_that_names_no_turn_of_the_window_is_dropped(reference: object) -> None:
    found, dropped = read_memories(_answer({"summary": "x y", "reference": reference}), NUMBERS)
    assert (found, dropped) == ([], {"no evidence": 1})


def test_what_is_too_long_too_many_or_no_memory_is_dropped_and_counted() -> None:
    items: list[object] = [{"summary": "x" * (MAX_SUMMARY_CHARS + 1), "reference": [0]}, "no object", {"summary": 3}]
    items += [{"summary": f"memory {n}", "reference": [0]} for n in range(200)]
    found, dropped = read_memories(_answer(*items), NUMBERS)
    assert len(found) == MOST_MEMORIES
    assert dropped == {"too long": 1, "no summary": 2, "too many": 200 - MOST_MEMORIES}


@given(st.text(max_size=300))
def test_any_text_gives_memories_or_one_error(answer: str) -> None:
    try:
        found, _ = read_memories(answer, NUMBERS)
    except ReplyUnreadable:
        return
    for candidate in found:
        assert set(candidate.turns) <= NUMBERS
        assert candidate.summary == one_line(candidate.summary)


@pytest.mark.parametrize(
    ("line", "action"),
    [
        ("Add()", Action(name="add")),
        ("`Merge(0, 'It is so.')`", Action(name="merge", indices=(0,), text="It is so.")),
        ("Merge(0, It is so (or not).)", Action(name="merge", indices=(0,), text="It is so (or not).")),
        ('Merge([0], "She said \\"no\\".")', Action(name="merge", indices=(0,), text='She said "no".')),
        ("[0]: Supersede(0).", Action(name="supersede", indices=(0,))),
        ('update(0, "It is so now.")', Action(name="update", indices=(0,), text="It is so now.")),
    ],
)
def test_actions_may_be_worded_freely(line: str, action: Action) -> None:
    assert read_actions(f"Here you are:\n{line}", [1]) == {0: action}


@pytest.mark.parametrize(
    "line",
    [
        "Merge(7, 'x')",
        "Merge(0)",
        'Merge(0, "")',
        "Merge(-1, 'x')",
        "Update(0)",
        "Delete(0)",
        "5: Add()",
        "Supersede()",
        "",
    ],
)
def test_what_cannot_be_done_is_left_out(line: str) -> None:
    assert read_actions(line, [1]) == {}


@given(
    st.text(alphabet="0123456789:.()[]\"', AddMergeUpdatSupersdCoct\n", max_size=200),
    st.lists(st.integers(0, 3), max_size=4),
)
def test_any_text_gives_only_actions_within_what_was_shown(answer: str, shown: list[int]) -> None:
    for number, action in read_actions(answer, shown).items():
        assert number < len(shown)
        assert action.name == "add" or 0 <= max(action.indices) < shown[number]
        assert action.name not in ("merge", "update") or action.text
