"""Placeholders in the place of what was found: `[EMAIL_1]`. Also the public `scrub_text`.

Knows nothing about stores: who numbers the placeholders is passed in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from wellworn.core.errors import InvalidInput, PersonalData
from wellworn.ingest.pii.find import find
from wellworn.ingest.pii.finding import Finder, Finding

MODES = ("off", "mask", "reject")
Numbering = Callable[[Sequence[Finding]], Sequence[int | None]]
"""A number for each finding, the same for the same type and value; None for a placeholder without one."""


@dataclass(frozen=True, kw_only=True)
class Scrubbed:
    """A text without what was taken out of it, and how often something of each type was."""

    text: str
    counts: dict[str, int] = field(default_factory=dict)


class CountedUp:
    """Numbers from 1 for each type, in the order of appearance, as long as this object lives; keeps the values."""

    def __init__(self) -> None:
        self._numbers: dict[str, dict[str, int]] = {}

    def __call__(self, found: Sequence[Finding]) -> list[int]:
        given = []
        for _, _, type_, value in found:
            known = self._numbers.setdefault(type_, {})
            given.append(known.setdefault(value, len(known) + 1))
        return given


def scrub_text(
    text: str, *, mode: str = "mask", numbering: Numbering | None = None, finders: Sequence[Finder] = ()
) -> Scrubbed:
    """The text without personal data and secrets.

    `mode` is `mask`, `reject` (raises `PersonalData` where there is any) or `off`. Placeholders are numbered within
    the text; pass one `CountedUp()` to several calls to number them through. `finders` are asked besides the rules.
    """
    checked_mode(mode)
    if not isinstance(text, str):
        raise InvalidInput("text", f"must be text, not {type(text).__name__}")
    if mode == "off":
        return Scrubbed(text=text)
    if mode == "reject":
        refuse(text, finders)
        return Scrubbed(text=text)
    return masked(text, numbering or CountedUp(), finders)


def checked_mode(mode: object) -> str:
    if mode not in MODES:
        raise InvalidInput("scrubber", f"{mode!r} is not a mode", f"use one of {', '.join(MODES)}, or a function")
    return str(mode)


def masked(text: str, numbering: Numbering, finders: Sequence[Finder] = ()) -> Scrubbed:
    """Masks until nothing is found: what lay beside a finding may be one when that is gone. Each time there is less
    outside of placeholders, in which nothing is looked for, so it ends."""
    counts: Counter[str] = Counter()
    while found := find(text, others=finders):
        parts, place = [], 0
        for (start, end, type_, _), number in zip(found, numbering(found), strict=True):
            parts.append(text[place:start])
            parts.append(placeholder(type_, number))
            place = end
        parts.append(text[place:])
        text = "".join(parts)
        counts.update([one[2] for one in found])
    return Scrubbed(text=text, counts=dict(counts))


def placeholder(type_: str, number: int | None) -> str:
    return f"[{type_}]" if number is None else f"[{type_}_{number}]"


def refuse(text: str, finders: Sequence[Finder] = ()) -> None:
    """`PersonalData` when there is any; the message has types and numbers, never what was found."""
    counts = Counter(one.type for one in find(text, others=finders))
    if counts:
        told = ", ".join(f"{number} {type_}" for type_, number in sorted(counts.items()))
        raise PersonalData("text", f"holds {told}", "take it out, or open the memory with scrubber='mask'")
