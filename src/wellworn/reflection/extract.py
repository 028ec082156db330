"""From a window of a session to proposed memories: by a model, or by rules where there is none.

The dialogue goes to a model as data: each turn on one line, escaped, between marks, in a message of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import field
from functools import cache
from pathlib import Path
from typing import Protocol

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import BudgetExceeded, ReplyUnreadable
from wellworn.core.fence import escape
from wellworn.core.values import Turn
from wellworn.models.port import Message, Model, Request
from wellworn.reflection.compare import group_same
from wellworn.reflection.evidence import rejection
from wellworn.reflection.parse import read_memories
from wellworn.reflection.rules import extract as extract_by_rules
from wellworn.reflection.values import Candidate
from wellworn.reflection.window import Window

EXTRACT_TOKENS = 2_000
UNUSED = "the model kept nothing of it"
MAX_TURN_CHARS = 8_000
"""Of one turn that a model is shown; rules read all of it."""


@cache
def prompt(name: str) -> str:
    """The instructions in `prompts/NAME.md`: constant text, into which nothing is ever spliced."""
    return Path(__file__).with_name("prompts").joinpath(f"{name}.md").read_text(encoding="utf-8").strip()


@dataclass(frozen=True, kw_only=True)
class Extracted:
    """The memories of a window, who found them, and what was not kept and why."""

    candidates: list[Candidate]
    by: str
    dropped: Counter[str] = field(default_factory=Counter)
    skipped: dict[int, str] = field(default_factory=dict)
    """Why a turn gave no memory, by its number."""
    fallback: str = ""
    """Why rules answered although there is a model."""


class Extract(Protocol):
    """Proposes memories for a window; `user` is the name of the session's user, if it is known."""

    def __call__(self, window: Window, *, user: str | None) -> Extracted: ...


def by_rules(window: Window, *, user: str | None, fallback: str = "") -> Extracted:
    """Without a model."""
    found, skipped = extract_by_rules(window.turns, user=user, context=window.context)
    return Extracted(candidates=group_same(found), by="rules", skipped=skipped, fallback=fallback)


def by_model(model: Model) -> Extract:
    """With a model: one call a window.

    Over the budget, or when its answer cannot be read, rules answer instead.
    """

    def extract(window: Window, *, user: str | None) -> Extracted:
        request = Request(
            messages=(
                Message(role="system", text=prompt("extract")),
                Message(role="user", text=dialogue(window.turns, context=window.context)),
            ),
            purpose="extract",
            max_output_tokens=EXTRACT_TOKENS,
            json=True,
        )
        try:
            reply = model.complete(request)
            found, dropped = read_memories(reply.text, window.numbers)
        except BudgetExceeded:
            return by_rules(window, user=user, fallback="over the budget")
        except ReplyUnreadable:
            return by_rules(window, user=user, fallback="the model's answer could not be read")
        candidates = _believed(found, window, dropped)
        skipped = window.numbers - {number for one in candidates for number in one.turns}
        return Extracted(
            candidates=candidates, by=model.name, dropped=dropped, skipped=dict.fromkeys(sorted(skipped), UNUSED)
        )

    return extract


def _believed(found: Sequence[Candidate], window: Window, dropped: Counter[str]) -> list[Candidate]:
    """Those that the turns say, duplicates folded."""
    by_number = {turn.number: turn for turn in window.turns}
    kept = []
    for candidate in found:
        reason = rejection(candidate, [by_number[n] for n in candidate.turns], [*window.context, *window.turns])
        if reason is None:
            kept.append(candidate)
        else:
            dropped[reason] += 1
    folded = group_same(kept)
    dropped["said twice"] += len(kept) - len(folded)
    return folded


def dialogue(turns: Sequence[Turn], *, context: Sequence[Turn] = ()) -> str:
    """Turns as data for a prompt."""
    lines = [_line(turn, "earlier") for turn in context] + [_line(turn, f"Turn {turn.number}") for turn in turns]
    return "\n".join(["<dialogue>", *lines, "</dialogue>"])


def _line(turn: Turn, mark: str) -> str:
    text = turn.text if len(turn.text) <= MAX_TURN_CHARS else turn.text[:MAX_TURN_CHARS] + " […]"
    return f"{mark} | {turn.at.date().isoformat()} | {escape(turn.speaker or turn.role)} | {escape(text)}"
