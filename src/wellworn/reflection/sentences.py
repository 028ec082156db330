"""Split a turn into the sentences that its speaker wrote, in linear time.

Code, quoted lines, tables, headings, letters, transcripts and recalled memories are left out: the speaker does not
assert them. Items of a list are joined to the line that introduces them. This module does not judge what a sentence
means.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LONGEST_CHARS = 600
"""A longer sentence is pasted text."""
MOST_SENTENCES = 400
"""The rest of the turn is not read."""
_MOST_LIST_ITEMS = 12
_LONGEST_QUOTE = 150

_TYPOGRAPHY = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "\u00a0": " ", "\u202e": " "})
_CODE = "```"
_RECALLED = re.compile(r"<(memories|memory-context)\b[^>]*>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_NOT_SAID = re.compile(r"[>#|<{}]|\d{1,2}:\d\d(?::\d\d)?\s+[A-Z]|[^|]*\|[^|]*\|")
"""Quoted lines, headings, tables, markup, and lines of a transcript."""
_LETTER = re.compile(r"Dear [A-Z]|Subject: ")
_LIST_MARKER = re.compile(r"(?:[-•–—+*]|\(?\d{1,3}[.)]|[a-zA-Z][.)])\s+")
_BRACKETS = re.compile(r"\[[^\[\]]{0,300}\]")
_END = re.compile(r"[.!?…]+[\"')\]]*(?=\s|$)|[。！？]+")
_LAST_WORD = re.compile(r"[\w.]{1,12}\Z")
_ABBREVIATIONS = frozenset("mr mrs ms dr prof st vs etc e.g i.e approx fig jr sr inc ltd co dept no a.m p.m".split())  # noqa: SIM905


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """One sentence without its closing sign, which is `end` ("" where there is none, ":" before a list)."""

    text: str
    end: str = ""

    @property
    def is_list_lead(self) -> bool:
        return self.end == ":"


def sentences(text: str) -> list[Sentence]:
    """The sentences of a turn, in order."""
    found: list[Sentence] = []
    for line in _joined(_lines(text)):
        found += _split(line)
        if len(found) >= MOST_SENTENCES:
            return found[:MOST_SENTENCES]
    return found


def _lines(text: str) -> list[tuple[str, bool]]:
    """The lines that were said, and whether each is an item of a list."""
    said = _RECALLED.sub(" ", text) if "<" in text else text
    said = "\n".join(said.split(_CODE)[::2]) if _CODE in said else said
    lines: list[tuple[str, bool]] = []
    for raw in _without_long_quotes(said.translate(_TYPOGRAPHY)).splitlines():
        line = raw.strip()
        if _LETTER.match(line):
            break
        if not line or _NOT_SAID.match(line):
            continue
        marker = _LIST_MARKER.match(line)
        line = line[marker.end() :] if marker else line
        line = " ".join(_BRACKETS.sub(" ", line.replace("**", "")).split())
        if line:
            lines.append((line, marker is not None))
    return lines


def _without_long_quotes(text: str) -> str:
    """The text without quotations of several lines or of more than a sentence: they are someone else's words."""
    parts = text.split('"')
    if len(parts) < 3 or len(parts) % 2 == 0:
        return text
    inside = [f'"{part}"' if len(part) <= _LONGEST_QUOTE and "\n" not in part else " " for part in parts[1::2]]
    return "".join(a + b for a, b in zip(parts[::2], [*inside, ""], strict=True))


def _joined(lines: list[tuple[str, bool]]) -> list[str]:
    """Lines, with the items of a list behind the line that introduces them."""
    joined: list[str] = []
    items = 0
    for line, listed in lines:
        if not (listed and joined and (items or joined[-1].endswith(":"))):
            joined.append(line)
            items = 0
            continue
        items += 1
        if items <= _MOST_LIST_ITEMS and len(joined[-1]) + len(line) < LONGEST_CHARS:
            joined[-1] += (" " if items == 1 else "; ") + line.rstrip(".;,")
    return joined


def _split(line: str) -> list[Sentence]:
    found: list[Sentence] = []
    start = 0
    for mark in _END.finditer(line):
        if _is_end(line, start, mark):
            found += _sentence(line[start : mark.start()], mark[0])
            start = mark.end()
    return found + _sentence(line[start:], "")


def _sentence(text: str, end: str) -> list[Sentence]:
    text = text.strip()
    if not text or len(text) > LONGEST_CHARS:
        return []
    closing = '"' if '"' in end and text.count('"') % 2 else ")" if ")" in end and "(" in text else ""
    sign = "?" if "?" in end or "？" in end else end[:1] or (":" if text.endswith(":") else "")
    return [Sentence(text=text + closing, end=sign)]


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
