"""Values in plain words, and the two small drawings of an entry. Pure: it knows no request."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from wellworn.core.dataclass import dataclass
from wellworn.core.values import Entry, Factor, Hit, Link
from wellworn.core.wellformed import HIDDEN

SAID = {
    "edited": "Changed. The former state is in its history.",
    "same": "Nothing was changed.",
    "outdated": "Marked as outdated.",
    "wrong": "Marked as never true.",
    "forgotten": "Forgotten, for good.",
    "nothing": "There was nothing to forget.",
    "decided": "Decided.",
    "reflected": "Read.",
    "revoked": "The key is revoked.",
}
"""What a page says after a change."""
MOST_REASONS = 3
"""In the line below a hit."""
_VERBS = ("is ", "has ", "holds ", "needs ", "must ", "cannot ")
"""How a problem begins that says something of its field."""
MOST_DRAWN = 12
WIDTH, ROW = 640, 38


def day(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment:%Y-%m-%d}"


def moment(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment:%Y-%m-%d %H:%M}"


def sentences(message: str, remedy: str = "") -> str:
    """An error as a visitor reads it: `text: is empty (write one)` is "The text is empty. Write one."."""
    if remedy and message.endswith(f" ({remedy})"):
        problem = message.removesuffix(f" ({remedy})")
    else:
        problem, _, remedy = message.removesuffix(")").partition(" (")
    field, colon, rest = problem.partition(": ")
    if colon and " " not in field:
        problem = f"the {field} {rest}" if rest.startswith(_VERBS) else rest
    return " ".join(f"{one[:1].upper()}{one[1:]}." for one in (problem, remedy) if one)


def percent(share: float | None) -> str:
    return "unknown" if share is None else f"{share:.0%}"


def plain(text: str) -> str:
    """The text as a field shows it: without characters that nobody sees."""
    return HIDDEN.sub("", text)


def times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def because(hit: Hit) -> str:
    """What speaks for a hit, in a line."""
    named = [one.words for one in reasons(hit) if one.contribution > 0]
    return " · ".join([*dict.fromkeys(named)][:MOST_REASONS]) or "little speaks for it"


def reasons(hit: Hit) -> list[Factor]:
    """The factors of a hit that count, the strongest first."""
    return sorted(
        (one for one in hit.explanation if abs(one.contribution) > 0.005), key=lambda one: -abs(one.contribution)
    )


def outdated(entry: Entry, now: datetime) -> bool:
    """Whether it holds no longer."""
    return entry.state in ("superseded", "pruned") or (entry.valid_to is not None and entry.valid_to <= now)


# -- drawings ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class LinkedEntry:
    """A link of an entry, with the entry at its other end and the place of that in the drawing."""

    link: Link
    entry: Entry
    outward: bool
    """Whether the link starts at the entry that is looked at."""
    x: int
    y: int

    @property
    def says(self) -> str:
        """The relation as a sentence about the entry that is looked at."""
        words = self.link.type.replace("_", " ")
        return words if self.outward else f"← {words}"

    @property
    def side(self) -> str:
        return "start" if self.x > WIDTH // 2 else "end"


def neighbours(entry: Entry, links: Sequence[Link], others: dict[str, Entry]) -> list[LinkedEntry]:
    """The links of an entry, those drawn by hand first, in rows to its right and left."""
    seen = [link for link in links if (link.target if link.source == entry.id else link.source) in others]
    seen.sort(key=lambda link: (link.automatic, link.type, -link.confidence))
    found = []
    for place, link in enumerate(seen):
        outward, right = link.source == entry.id, place % 2 == 0
        x, y = WIDTH // 2 + (110 if right else -110), ROW // 2 + ROW * (place // 2)
        other = others[link.target if outward else link.source]
        found.append(LinkedEntry(link=link, entry=other, outward=outward, x=x, y=y))
    return found


def height(count: int) -> int:
    """How high the drawing of so many links is."""
    return ROW * max(1, (min(count, MOST_DRAWN) + 1) // 2)


@dataclass(frozen=True, kw_only=True)
class Span:
    """From when to when an entry holds, as places on a line of `WIDTH`."""

    begin: float
    end: float
    marks: list[float]
    """When it was changed."""


def span(entry: Entry, changes: Sequence[datetime], now: datetime) -> Span:
    ends = entry.valid_to or now
    moments = [entry.valid_from, entry.at, ends, now, *changes]
    first, last = min(moments), max(moments)
    length = (last - first).total_seconds() or 1.0

    def place(moment: datetime) -> float:
        return round(8 + (WIDTH - 16) * (moment - first).total_seconds() / length, 1)

    begin, end = place(entry.valid_from), place(ends)
    return Span(begin=begin, end=max(end, begin + 4), marks=[place(one) for one in changes])
