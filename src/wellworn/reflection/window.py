"""A long session in parts that fit before a model, each with a little of what went before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wellworn.core.tokens import count_tokens
from wellworn.core.values import Turn
from wellworn.reflection.settings import ReflectionSettings


@dataclass(frozen=True, kw_only=True)
class Window:
    """Turns to extract from, and the turns before them, which only help to understand."""

    context: tuple[Turn, ...]
    turns: tuple[Turn, ...]

    @property
    def numbers(self) -> frozenset[int]:
        return frozenset(turn.number for turn in self.turns)


def windows(turns: Sequence[Turn], start: int, settings: ReflectionSettings) -> list[Window]:
    """The turns from number `start` on, in order, each in one window; a turn too large for any has one of its own."""
    before = [turn for turn in turns if turn.number < start]
    parts: list[list[Turn]] = []
    tokens = 0
    for turn in turns:
        if turn.number < start:
            continue
        cost = count_tokens(turn.text)
        full = parts and (len(parts[-1]) >= settings.window_turns or tokens + cost > settings.window_tokens)
        if not parts or full:
            parts.append([])
            tokens = 0
        parts[-1].append(turn)
        tokens += cost
    found = []
    for part in parts:
        context = before[-settings.context_turns :] if settings.context_turns else []
        found.append(Window(context=tuple(context), turns=tuple(part)))
        before += part
    return found
