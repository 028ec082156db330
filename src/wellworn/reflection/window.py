"""What is read of a session: the turns that people said, in parts that fit before a model.

System text, tool output and recalled memories are left out: they would come back as new facts, be recalled, and come
back again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from wellworn.core.dataclass import dataclass
from wellworn.core.lazy import regex
from wellworn.core.tokens import count_tokens
from wellworn.core.values import Entry, Turn

WINDOW_TURNS = 40
WINDOW_TOKENS = 6_000
CONTEXT_TURNS = 4
"""Turns before a window that are shown with it, for reference only."""
RECALLED_TAG = "recalled"
"""A turn with this tag holds recalled memories and is not reflected on."""
_SILENT_ROLES = frozenset({"system", "developer", "tool", "function", "tool_result"})
_FENCED = regex(r"<(memories|memory-context)\b[^>]*>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)


def readable(turns: Sequence[Turn], entries: Mapping[str, Entry]) -> list[Turn]:
    """The turns to read, with every block of recalled memories cut out; `entries` are their episodes by id."""
    kept = []
    for turn in turns:
        entry = entries.get(turn.entry_id or "")
        if turn.role.strip().lower() in _SILENT_ROLES or (entry is not None and RECALLED_TAG in entry.tags):
            continue
        said = _FENCED.sub(" ", turn.text).strip() if "<" in turn.text else turn.text.strip()
        if said:
            kept.append(replace(turn, text=said))
    return kept


@dataclass(frozen=True, kw_only=True)
class Window:
    """Turns to extract from, and the turns before them, which only help to understand."""

    context: tuple[Turn, ...]
    turns: tuple[Turn, ...]

    @property
    def numbers(self) -> frozenset[int]:
        return frozenset(turn.number for turn in self.turns)


def windows(turns: Sequence[Turn], start: int = 0) -> list[Window]:
    """The turns from number `start` on, in order, each in one window; a turn too large for any has one of its own."""
    before = [turn for turn in turns if turn.number < start]
    parts: list[list[Turn]] = []
    tokens = 0
    for turn in turns[len(before) :]:
        cost = count_tokens(turn.text)
        if not parts or len(parts[-1]) >= WINDOW_TURNS or tokens + cost > WINDOW_TOKENS:
            parts.append([])
            tokens = 0
        parts[-1].append(turn)
        tokens += cost
    found = []
    for part in parts:
        found.append(Window(context=tuple(before[-CONTEXT_TURNS:]), turns=tuple(part)))
        before += part
    return found
