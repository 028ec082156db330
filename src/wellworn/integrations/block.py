"""Recalled hits as a block of text for a system prompt: structured or natural, escaped, within a number of characters.

Pure text. Knows nothing about recall, models or any framework.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from html import escape
from typing import Literal, get_args

from wellworn.core.clock import aware, system_clock
from wellworn.core.errors import InvalidInput
from wellworn.core.values import Entry, Hit
from wellworn.ingest.validate import checked_count

Format = Literal["structured", "natural"]

FORMATS: tuple[str, ...] = get_args(Format)
TAG = "memory-context"
MAX_CHARS = 4_000
_ELLIPSIS = " […]"
_LEAST_TEXT = 40
"""Characters of an entry below which it is left out rather than cut."""
_MAX_TOPIC_CHARS = 60
_TAG_LIKE = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_MINUTE, _HOUR, _DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class Block:
    """The text, empty when nothing was shown, and how many of the hits are in it: always the first ones."""

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
    """The hits as a block for a prompt, best first; empty when there are none or not even one fits.

    `numbered` gives each its place from 0, for a model that is asked to cite. Long entries are cut at a word so that
    all fit; only when little would be left of each are the last ones left out.
    """
    return memory_block(hits, format=format, tag=tag, max_chars=max_chars, now=now, numbered=numbered).text


def memory_block(
    hits: Sequence[Hit], *, format: str, tag: str, max_chars: int, now: datetime | None, numbered: bool
) -> Block:
    """What `format_memory_context` gives, with the number of hits that are in it."""
    format, tag = checked_format(format), checked_tag(tag)
    moment = aware(lambda: now)() if now is not None else system_clock()
    write = _structured if format == "structured" else _natural
    frames = [
        write(hit.entry, relevance, age_of(hit.entry.at, moment), place if numbered else None)
        for place, (hit, relevance) in enumerate(zip(hits, relevances(hits), strict=True))
    ]
    opening, closing = f"<{tag}>\n", f"\n</{tag}>"
    room = checked_count("max_chars", max_chars) - len(opening) - len(closing)
    said = [_said(hit.entry) for hit in hits]
    for shown in range(len(hits), 0, -1):
        texts = _fitted(said[:shown], room - sum(len(a) + len(b) + 1 for a, b in frames[:shown]) + 1)
        if texts is not None:
            lines = [f"{a}{text}{b}" for (a, b), text in zip(frames[:shown], texts, strict=True)]
            return Block(text=opening + "\n".join(lines) + closing, shown=shown)
    return Block(text="", shown=0)


def checked_format(format: object) -> str:
    if format not in FORMATS:
        raise InvalidInput("format", f"{format!r} is not a format", f"use one of {', '.join(FORMATS)}")
    return str(format)


def checked_tag(tag: object) -> str:
    if not isinstance(tag, str) or not _TAG_LIKE.fullmatch(tag):
        raise InvalidInput("tag", f"{tag!r} is not a tag's name", "use letters, digits, - and _, as in memory-context")
    return tag


def relevances(hits: Sequence[Hit]) -> list[float]:
    """Each hit's score on a scale from 0 to 1, to be compared within one recall.

    relevance = score / Σ weight × max(1, value), over the factors that speak for any of the hits (weight × value > 0):
    1 is a hit for which all of them speak fully, 0 one that scores nothing or less.
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
    """How long ago, short: now, 5m, 2h, 3d, 6w, 4mo, 2y. What lies ahead is now."""
    age = now - at
    if age < _MINUTE:
        return "now"
    if age < _HOUR:
        return f"{age // _MINUTE}m"
    if age < _DAY:
        return f"{age // _HOUR}h"
    days = age // _DAY
    if days < 14:
        return f"{days}d"
    if days < 60:
        return f"{days // 7}w"
    return f"{days // 30}mo" if days < 730 else f"{days // 365}y"


def topic_of(entry: Entry) -> str:
    """The first tag, else the kind."""
    topic = " ".join(entry.tags[0].split()) if entry.tags else entry.kind
    return topic if len(topic) <= _MAX_TOPIC_CHARS else f"{topic[: _MAX_TOPIC_CHARS - 1]}…"


def _structured(entry: Entry, relevance: float, age: str, place: int | None) -> tuple[str, str]:
    """What stands before and after the text."""
    names = {} if place is None else {"place": str(place)}
    names |= {"topic": topic_of(entry), "relevance": f"{relevance:.2f}", "age": age}
    if entry.trust == "untrusted":
        names["source"] = "untrusted"
    if entry.state == "flagged":
        names["state"] = "under review"
    written = " ".join(f'{name}="{escape(value)}"' for name, value in names.items())
    return f"<entry {written}>", "</entry>"


def _natural(entry: Entry, relevance: float, age: str, place: int | None) -> tuple[str, str]:
    about = [escape(topic_of(entry)), "just now" if age == "now" else f"{age} ago", f"relevance {relevance:.2f}"]
    if entry.trust == "untrusted":
        about.append("untrusted source")
    if entry.state == "flagged":
        about.append("under review")
    return f"{'-' if place is None else f'[{place}]'} ({', '.join(about)}) ", ""


def _said(entry: Entry) -> str:
    """The text on one line, with who said it where that is known."""
    who = entry.speaker or (entry.source if entry.kind == "episode" else "")
    return " ".join(f"{who}: {entry.text}".split() if who else entry.text.split())


def _fitted(texts: Sequence[str], room: int) -> list[str] | None:
    """The texts escaped, the long ones cut to equal shares of the room; None when a share would be too little."""
    if room < 0:
        return None
    whole = [escape(text[: room + 1], quote=False) for text in texts]
    fitted = [""] * len(texts)
    for done, place in enumerate(sorted(range(len(texts)), key=lambda each: len(whole[each]))):
        share = room // (len(texts) - done)
        if len(whole[place]) > share and share < _LEAST_TEXT:
            return None
        fitted[place] = whole[place] if len(whole[place]) <= share else _cut(texts[place], share)
        room -= len(fitted[place])
    return fitted


def _cut(text: str, room: int) -> str:
    """As much of the text as fits when it is escaped, up to the end of a word where that costs less than half."""
    left = room - len(_ELLIPSIS)
    kept = 0
    for sign in text:
        left -= len(escape(sign, quote=False))
        if left < 0:
            break
        kept += 1
    word = text.rfind(" ", 0, kept + 1)
    return escape(text[: word if word > kept // 2 else kept], quote=False) + _ELLIPSIS
