"""Format recalled hits as a block of text for a system prompt: escaped, and within a number of characters.

Works on text only. Does not recall anything and knows no model or framework.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from html import escape
from typing import Literal, NamedTuple, get_args

from wellworn.core.clock import aware, system_clock
from wellworn.core.errors import InvalidInput
from wellworn.core.values import Entry, Hit
from wellworn.ingest.validate import checked_count

Format = Literal["structured", "natural"]

TAG = "memory-context"
MAX_CHARS = 4_000
_ELLIPSIS = " […]"
_MIN_TEXT_CHARS = 40
"""An entry that would be cut below this length is left out instead."""
_MAX_TOPIC_CHARS = 60
_STATES = {"flagged": "under review", "superseded": "outdated"}
_TAG_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
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

    `numbered` gives each entry its place, counted from 0, for a model that cites. Long entries are cut at a word so
    that all fit. If little would be left of each, the last ones are left out.
    """
    return memory_block(hits, format=format, tag=tag, max_chars=max_chars, now=now, numbered=numbered).text


def memory_block(
    hits: Sequence[Hit], *, format: str, tag: str, max_chars: int, now: datetime | None, numbered: bool
) -> MemoryBlock:
    """Like `format_memory_context`, with the number of hits shown."""
    format, tag = checked_format(format), checked_tag(tag)
    moment = aware(lambda: now)() if now is not None else system_clock()
    frame = _structured if format == "structured" else _natural
    frames = [
        frame(hit.entry, relevance, age_of(hit.entry.at, moment), place if numbered else None)
        for place, (hit, relevance) in enumerate(zip(hits, relevances(hits), strict=True))
    ]
    opening, closing = f"<{tag}>\n", f"\n</{tag}>"
    room = checked_count("max_chars", max_chars) - len(opening) - len(closing)
    said = [_said(hit.entry) for hit in hits]
    for shown in range(len(hits), 0, -1):
        texts = _fitted(said[:shown], room - sum(len(a) + len(b) + 1 for a, b in frames[:shown]) + 1)
        if texts is not None:
            lines = [f"{a}{text}{b}" for (a, b), text in zip(frames[:shown], texts, strict=True)]
            return MemoryBlock(opening + "\n".join(lines) + closing, shown)
    return MemoryBlock("", 0)


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


def _structured(entry: Entry, relevance: float, age: str, place: int | None) -> tuple[str, str]:
    """Return what stands before and after the text."""
    names = {} if place is None else {"place": str(place)}
    names |= {"topic": _topic(entry), "relevance": f"{relevance:.2f}", "age": age}
    if entry.trust == "untrusted":
        names["source"] = "untrusted"
    if entry.state in _STATES:
        names["state"] = _STATES[entry.state]
    written = " ".join(f'{name}="{escape(value)}"' for name, value in names.items())
    return f"<entry {written}>", "</entry>"


def _natural(entry: Entry, relevance: float, age: str, place: int | None) -> tuple[str, str]:
    about = [escape(_topic(entry)), "just now" if age == "now" else f"{age} ago", f"relevance {relevance:.2f}"]
    if entry.trust == "untrusted":
        about.append("untrusted source")
    if entry.state in _STATES:
        about.append(_STATES[entry.state])
    return f"{'-' if place is None else f'[{place}]'} ({', '.join(about)}) ", ""


def _topic(entry: Entry) -> str:
    topic = " ".join(entry.tags[0].split()) if entry.tags else entry.kind
    return topic if len(topic) <= _MAX_TOPIC_CHARS else f"{topic[: _MAX_TOPIC_CHARS - 1]}…"


def _said(entry: Entry) -> str:
    """Return the text on one line, after the name of the speaker if it is known."""
    who = entry.speaker or (entry.source if entry.kind == "episode" else "")
    return " ".join(f"{who}: {entry.text}".split() if who else entry.text.split())


def _fitted(texts: Sequence[str], room: int) -> list[str] | None:
    """Escape the texts and cut the long ones to equal shares of the room; None if a share would be too small."""
    if room < 0:
        return None
    whole = [escape(text[: room + 1], quote=False) for text in texts]
    fitted = [""] * len(texts)
    for done, place in enumerate(sorted(range(len(texts)), key=lambda each: len(whole[each]))):
        share = room // (len(texts) - done)
        if len(whole[place]) > share and share < _MIN_TEXT_CHARS:
            return None
        fitted[place] = whole[place] if len(whole[place]) <= share else _cut(texts[place], share)
        room -= len(fitted[place])
    return fitted


def _cut(text: str, room: int) -> str:
    """Return as much of the text as fits after escaping, up to a word end if that costs less than half."""
    left = room - len(_ELLIPSIS)
    kept = 0
    for sign in text:
        left -= len(escape(sign, quote=False))
        if left < 0:
            break
        kept += 1
    word = text.rfind(" ", 0, kept + 1)
    return escape(text[: word if word > kept // 2 else kept], quote=False) + _ELLIPSIS
