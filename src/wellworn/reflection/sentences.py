"""Split a turn into the sentences that its speaker wrote, in linear time.

Code, quoted lines, tables, headings and transcripts are left out: the speaker does not assert them. This module does
not judge what a sentence means.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from wellworn.core.dataclass import dataclass
from wellworn.core.lazy import regex

LONGEST_CHARS = 600
"""A longer sentence is pasted text."""
MOST_SENTENCES = 400
"""The rest of the turn is not read."""

_TYPOGRAPHY = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "\u00a0": " ", "\u202e": " "})
_CODE = "```"
_NOT_SAID = regex(r"[>#|<{}]|\d{1,2}:\d\d(?::\d\d)?\s+[A-Z]|[^|]*\|[^|]*\|")
"""Quoted lines, headings, tables, markup, and lines of a transcript."""
_LIST_MARKER = regex(r"(?:[-•–—+*]|\(?\d{1,3}[.)]|[a-zA-Z][.)])\s+")
_END = regex(r"[.!?…]+[\"')\]]*(?=\s|$)|[。！？]+")
_LAST_WORD = regex(r"[\w.]{1,12}\Z")
_ABBREVIATIONS = frozenset("mr mrs ms dr prof st vs etc e.g i.e approx jr sr inc ltd dept no a.m p.m".split())  # noqa: SIM905


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """One sentence without its closing sign, which is `end` ("" where there is none, ":" before a list)."""

    text: str
    end: str = ""


def sentences(text: str) -> list[Sentence]:
    """The sentences of a turn, in order."""
    said = "\n".join(text.split(_CODE)[::2]) if _CODE in text else text
    found: list[Sentence] = []
    for raw in said.translate(_TYPOGRAPHY).splitlines():
        line = raw.strip()
        if line and not _NOT_SAID.match(line):
            line = _LIST_MARKER.sub("", line, count=1) if _LIST_MARKER.match(line) else line
            found += _split(" ".join(line.replace("**", "").split()))
        if len(found) >= MOST_SENTENCES:
            return found[:MOST_SENTENCES]
    return found


def _split(line: str) -> Iterator[Sentence]:
    start = 0
    for mark in _END.finditer(line):
        if _is_end(line, start, mark):
            yield from _sentence(line[start : mark.start()], mark[0])
            start = mark.end()
    yield from _sentence(line[start:], "")


def _sentence(text: str, end: str) -> Iterator[Sentence]:
    text = text.strip()
    if text and len(text) <= LONGEST_CHARS:
        closing = '"' if '"' in end and text.count('"') % 2 else ")" if ")" in end and "(" in text else ""
        sign = "?" if "?" in end or "？" in end else end[:1] or (":" if text.endswith(":") else "")
        yield Sentence(text=text + closing, end=sign)


def _is_end(line: str, start: int, mark: re.Match[str]) -> bool:
    """Whether a sentence ends here: not after an abbreviation or an initial, nor in a pause ("well... maybe")."""
    sign = mark[0]
    if sign[0] not in ".…" or "?" in sign or "!" in sign:
        return True
    if sign.startswith(("..", "…")) and line[mark.end() : mark.end() + 3].lstrip()[:1].islower():
        return False
    last = _LAST_WORD.search(line[max(start, mark.start() - 13) : mark.start()])
    word = last[0].lower() if last else ""
    return not (word in _ABBREVIATIONS or (len(word) == 1 and word.isalpha() and word != "i"))
