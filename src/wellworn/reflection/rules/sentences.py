"""From a turn's text to the sentences a person said in it, in linear time.

Code, quotations, letters, transcripts, tables, headings, stage directions and recalled memories are left out: nobody
asserts them here. A list under a line that ends in a colon belongs to that line. Knows nothing about meaning.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from wellworn.core.fence import CLOSING
from wellworn.reflection.rules.lists import words

LONGEST_CHARS = 600
"""A longer sentence is pasted text or noise, not something said."""
MOST_SENTENCES = 400
"""Of one turn; what follows is left unread."""
_MOST_ITEMS = 12
_LONGEST_QUOTE = 150
_LETTER = re.compile(r"Dear [A-Z]|Subject: ")
_TIMED = re.compile(r"\d{1,2}:\d\d(?::\d\d)?\s+[A-Z]")

_TYPOGRAPHY = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "\u00a0": " ", "*": None, "`": None})
_OPENING = "<memories"
_FENCE = "```"
_MARKER = re.compile(r"(?:[-•–—+○▪]|\(?\d{1,3}[.)]|[a-zA-Z][.)])\s+")
_BRACKETED = re.compile(r"\[[^\[\]]{0,300}\]")
_ASIDE = re.compile(r"\([^()]{0,300}\)[.!]?\s*")
_BREAK = re.compile(r"[.!?…]+[\"')\]]*(?=\s|$)")
_LAST_WORD = re.compile(r"[\w.]{1,12}\Z")
_ABBREVIATIONS = words("mr mrs ms dr prof st vs etc e.g i.e approx fig jr sr inc ltd co dept a.m p.m")


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """One sentence without its list marker; `end` is its closing sign, "" where there is none."""

    text: str
    end: str = ""
    listed: bool = False
    """It holds the items of a list, or is one."""
    noted: bool = False
    """It was asked to be remembered."""


def sentences(text: str) -> list[Sentence]:
    """The sentences of a turn, in order."""
    found: list[Sentence] = []
    for line, listed in _joined(_lines(text)):
        found += _split(line, listed=listed)
        if len(found) >= MOST_SENTENCES:
            return found[:MOST_SENTENCES]
    return found


def _lines(text: str) -> list[tuple[str, bool]]:
    """(line, whether it is an item of a list) of what was said; blank lines are gone."""
    said = _without_recalled(text)
    if _FENCE in said:
        said = "\n".join(said.split(_FENCE)[::2])
    lines: list[tuple[str, bool]] = []
    for raw in _without_citations(said.translate(_TYPOGRAPHY)).splitlines():
        line = raw.strip()
        if _LETTER.match(line):
            break
        if not line or line[0] in ">#|<{}" or line.count("|") > 1 or _TIMED.match(line):
            continue
        marker = _MARKER.match(line)
        line = _ASIDE.sub("", line, count=1) if line.startswith("(") and not marker else line
        line = " ".join(_BRACKETED.sub(" ", line[marker.end() :] if marker else line).split())
        if line:
            lines.append((line, marker is not None))
    return lines


def _without_recalled(text: str) -> str:
    """The text without blocks of recalled memories, which are not to be learnt again."""
    if _OPENING not in text:
        return text
    kept: list[str] = []
    rest = text
    while True:
        before, opening, after = rest.partition(_OPENING)
        kept.append(before)
        if not opening:
            return "".join(kept)
        rest = after.partition(CLOSING)[2]


def _without_citations(text: str) -> str:
    """The text without quotations of several lines or of more than a sentence: they are someone else's words."""
    parts = text.split('"')
    if len(parts) < 3 or len(parts) % 2 == 0:
        return text
    inside = [f'"{part}"' if len(part) <= _LONGEST_QUOTE and "\n" not in part else " " for part in parts[1::2]]
    return "".join(a + b for a, b in zip(parts[::2], [*inside, ""], strict=True))


def _joined(lines: list[tuple[str, bool]]) -> list[tuple[str, bool]]:
    """Items of a list put behind the line that introduces them."""
    joined: list[tuple[str, bool]] = []
    items = 0
    for line, listed in lines:
        if listed and joined and (items or joined[-1][0].endswith(":")):
            items += 1
            lead = joined[-1][0]
            if items <= _MOST_ITEMS and len(lead) + len(line) < LONGEST_CHARS:
                mark = " " if items == 1 else "; "
                joined[-1] = (lead + mark + line.rstrip(".;,"), True)
            continue
        items = 0
        joined.append((line, listed))
    return joined


def _split(line: str, *, listed: bool) -> list[Sentence]:
    found: list[Sentence] = []
    start = 0
    for mark in _BREAK.finditer(line):
        if not _ends(line, start, mark):
            continue
        _append(found, line[start : mark.start()], mark[0], listed)
        start = mark.end()
    _append(found, line[start:], "", listed)
    return found


def _append(found: list[Sentence], text: str, end: str, listed: bool) -> None:
    text = text.strip()
    if text and len(text) <= LONGEST_CHARS:
        sign = "?" if "?" in end else end[:1] or (":" if text.endswith(":") else "")
        closing = '"' if '"' in end and text.count('"') % 2 else ""
        found.append(Sentence(text=text + closing, end=sign, listed=listed))


def _ends(line: str, start: int, mark: re.Match[str]) -> bool:
    """Whether a sentence ends here: not after an abbreviation or an initial, nor in a pause ("well... maybe")."""
    sign = mark[0]
    if "?" in sign or "!" in sign:
        return True
    after = line[mark.end() : mark.end() + 3].lstrip()
    if ("…" in sign or sign.startswith("..")) and after[:1].islower():
        return False
    last = _LAST_WORD.search(line[max(start, mark.start() - 13) : mark.start()])
    word = last[0].lower() if last else ""
    return not (word in _ABBREVIATIONS or (len(word) == 1 and word.isalpha() and word != "i"))
