"""A model's answers, read with suspicion."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellworn.core.errors import ReplyUnreadable
from wellworn.core.wellformed import one_line
from wellworn.reflection.extract import MAX_SUMMARY_CHARS, MOST_MEMORIES, Action, read_actions, read_memories

NUMBERS = frozenset(range(6))


def _answer(*items: object) -> str:
    return json.dumps({"extracted_memories": items})


def test_memories_come_with_their_turns_speaker_and_kind() -> None:
    answer = _answer({"summary": "Ada has a cat.", "reference": [0, 2], "speaker": "Ada", "kind": "preference"})
    (found,), dropped = read_memories(answer, NUMBERS)
    assert (found.summary, found.turns, found.speaker, found.kind) == ("Ada has a cat.", (0, 2), "Ada", "preference")
    assert not dropped


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


def test_actions_are_read_one_a_line() -> None:
    answer = '0: Add()\n1: Merge(1, "Ada has two cats.")\n2: Supersede(0)\n3: Correct(0)'
    assert read_actions(answer, [2, 2, 1, 1]) == {
        0: Action(name="add"),
        1: Action(name="merge", indices=(1,), text="Ada has two cats."),
        2: Action(name="supersede", indices=(0,)),
        3: Action(name="correct", indices=(0,)),
    }


@pytest.mark.parametrize(
    ("line", "action"),
    [
        ("Add()", Action(name="add")),
        ("- add( )", Action(name="add")),
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
