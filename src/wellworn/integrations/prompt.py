"""Format recalled hits as a block of text for a system prompt: escaped, and within a number of characters.

Works on text only. Does not recall anything and knows no model or framework.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from html import escape as quoted
from typing import Literal, NamedTuple, get_args

from wellworn.core.clock import aware, system_clock
from wellworn.core.errors import InvalidInput
from wellworn.core.fence import ELLIPSIS, escape
from wellworn.core.lazy import regex
from wellworn.core.values import Hit, fence_item
from wellworn.ingest.validate import checked_count

Format = Literal["structured", "natural"]

TAG = "memory-context"
MAX_CHARS = 4_000
_MIN_TEXT_CHARS = 40
"""An entry that would be cut below this length is left out instead."""
_MAX_TOPIC_CHARS = 60
_TAG_NAME = regex(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_UNITS = (
    ("y", timedelta(days=365), 2),
    ("mo", timedelta(days=30), 2),
    ("w", timedelta(weeks=1), 2),
    ("d", timedelta(days=1), 1),
    ("h", timedelta(hours=1), 1),
    ("m", timedelta(minutes=1), 1),
)
"""Unit, its length, and from how many of it on it is used: 13d says more than 1w."""


class MemoryBlock(NamedTuple):
    """The text of a block, and how many of the hits it shows: always the first ones."""

    text: str
    shown: int


def format_memory_context(
    hits: Sequence[Hit],
    *,
    format: Format = "structured",
    tag: str = TAG,
    max_chars: int = MAX_CHARS,
    now: datetime | None = None,
    numbered: bool = False,
) -> str:
    """Format hits as a block for a prompt, best first. The result is empty if there is nothing to show.

    `numbered` gives each entry its place, counted from 0, for a model that cites. A long entry is cut at a word, so
    that others fit too. If little would be left of each, the last ones are left out.
    """
    return memory_block(hits, format=format, tag=tag, max_chars=max_chars, now=now, numbered=numbered).text


def memory_block(
    hits: Sequence[Hit], *, format: str, tag: str, max_chars: int, now: datetime | None, numbered: bool
) -> MemoryBlock:
    """Like `format_memory_context`, with the number of hits shown."""
    natural, tag = checked_format(format) == "natural", checked_tag(tag)
    moment = aware(lambda: now)() if now is not None else system_clock()
    room = checked_count("max_chars", max_chars) - len(f"<{tag}>\n</{tag}>")
    lines: list[str] = []
    for place, (hit, relevance) in enumerate(zip(hits, relevances(hits), strict=True)):
        before, text, after = _framed(hit, relevance, moment, place if numbered else None, natural=natural)
        frame = len(before) + len(after) + 1
        share = max(_MIN_TEXT_CHARS, room // (len(hits) - place) - frame)
        text = text if len(text) <= share else _cut(text, share)
        room -= frame + len(text)
        if room < 0:
            break
        lines.append(f"{before}{text}{after}")
    return MemoryBlock("\n".join([f"<{tag}>", *lines, f"</{tag}>"]) if lines else "", len(lines))


def checked_format(format: object) -> str:
    formats = get_args(Format)
    if format not in formats:
        raise InvalidInput("format", f"{format!r} is not a format", f"use one of {', '.join(formats)}")
    return str(format)


def checked_tag(tag: object) -> str:
    if not isinstance(tag, str) or not _TAG_NAME.fullmatch(tag):
        raise InvalidInput("tag", f"{tag!r} is not a tag name", "use letters, digits, - and _, as in memory-context")
    return tag


def relevances(hits: Sequence[Hit]) -> list[float]:
    """Scale the scores of one recall to 0…1.

    relevance = score / Σ |weight| · max(1, |value|), summed over the factors that count in favour of any hit. A hit
    for which all of them count fully gets 1.
    """
    ceilings: dict[str, float] = {}
    for hit in hits:
        for factor in hit.explanation:
            if factor.contribution > 0:
                most = abs(factor.weight) * max(1.0, abs(factor.value))
                ceilings[factor.name] = max(ceilings.get(factor.name, 0.0), most)
    ceiling = sum(ceilings.values())
    return [min(1.0, max(0.0, hit.score / ceiling)) if ceiling > 0 else 0.0 for hit in hits]


def age_of(at: datetime, now: datetime) -> str:
    """Return a short age: now, 5m, 2h, 3d, 6w, 4mo, 2y. A time in the future is `now`."""
    for unit, length, least in _UNITS:
        if now - at >= least * length:
            return f"{(now - at) // length}{unit}"
    return "now"


def _framed(hit: Hit, relevance: float, now: datetime, place: int | None, *, natural: bool) -> tuple[str, str, str]:
    """Return the text, with what stands before and after it."""
    item = fence_item(hit.entry, outdated=hit.outdated)
    topic = " ".join(hit.entry.tags[0].split()) if hit.entry.tags else hit.entry.kind
    topic = quoted(topic if len(topic) <= _MAX_TOPIC_CHARS else f"{topic[: _MAX_TOPIC_CHARS - 1]}…")
    age, said = age_of(hit.entry.at, now), escape(f"{item.speaker}: {item.text}" if item.speaker else item.text)
    if natural:
        about = [topic, "just now" if age == "now" else f"{age} ago", f"relevance {relevance:.2f}", *item.marks]
        return f"{'-' if place is None else f'[{place}]'} ({', '.join(about)}) ", said, ""
    number = "" if place is None else f'place="{place}" '
    marks = f' mark="{"; ".join(item.marks)}"' if item.marks else ""
    return f'<entry {number}topic="{topic}" relevance="{relevance:.2f}" age="{age}"{marks}>', said, "</entry>"


def _cut(text: str, room: int) -> str:
    """Return as much of the text as fits, up to a word end if that costs less than half."""
    kept = room - len(ELLIPSIS)
    word = text.rfind(" ", 0, kept + 1)
    return text[: word if word > kept // 2 else kept] + ELLIPSIS
