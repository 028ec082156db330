"""Which turns are read, and in which parts."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from contract.builders import make_entry
from wellworn.core.errors import InvalidInput
from wellworn.core.values import Turn
from wellworn.reflection import ReflectionSettings
from wellworn.reflection.extract import CONTEXT_TURNS, WINDOW_TURNS, readable, windows

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
