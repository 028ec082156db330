"""What shape a question has, read from its words alone: the cheap half of routing.

| shape     | example                                                        | what helps                              |
|-----------|----------------------------------------------------------------|-----------------------------------------|
| `bridge`  | Who directed the film that was shot in Leland?                 | re-query with what the best hits name   |
| `compare` | Which bridge was built first, the Alder or the Birch Bridge?   | each side on its own, then side by side |
| `gather`  | What books has Ada borrowed?                                   | one hit a place, so that all are seen   |
| `suppose` | Would Ada enjoy a concert?                                     | what she says of the subject            |
| `plain`   | What database does the API team use?                           | nothing: one search                     |

English only; a question in another language is plain unless it is scored complex.
"""

from __future__ import annotations

import re
from typing import Literal

Shape = Literal["plain", "bridge", "compare", "gather", "suppose"]

_ASKED = r"^\W*(?:(?:in|at|on|to|from|with|for|by)\s+)?"
_HAS_DONE = re.compile(
    _ASKED + r"(?:what|which|where|who|whom)\b(?:(?!\b(?:do|does|did|is|was|are|should|must|that|which)\b).)*?"
    r"\b(?:has|have)\b(?!\s+(?:the|a|an|to|no)\b|\W*$)",
    re.I,
)
_PLURAL = re.compile(
    _ASKED + r"(?:what|which)\s+(?:(?!(?:do|does|did|is|was|are|were|has|have)\b)[\w'’-]+\s+){0,4}?"
    r"(?!(?:is|was|does|has|his|this|its)\b)[\w-]*[^\Ws]s\s+(?:(?!did\b)[\w'’-]+\s+){0,3}?"
    r"(?:has|have|do|does|are|were|can)\b",
    re.I,
)
"""Not with "did": "What gifts did Ada bring to the party?" asks for one occasion, which has one place."""
_ARE = re.compile(_ASKED + r"(?:what|which|who) (?:are|were)\b", re.I)
_MANY = re.compile(r"\bhow (?:many times|many|often)\b", re.I)
_ALL = re.compile(r"\b(?:all|every|each|various|several|in common|list|across)\b", re.I)

_RELATIVE = re.compile(r"\b(?:that|which|who|whom|whose|where|when|what)\b", re.I)
_CHAIN = re.compile(
    r"\bof (?:the|a|an)\b|\bof (?-i:(?=[A-Z\"“]))|\w['’]s\b"
    r"|\bthe \w+ (?:that|who|which|by|from|where|in(?! (?:the (?:morning|afternoon|evening|end)|\d|"
    r"jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|spring|summer|autumn|fall|winter)))\b",
    re.I,
)
_RELATIVE_AFTER, _LONG_WORDS = 2, 9
READ_CHARS = 600
"""How far into a query cues are looked for: what is longer is a text, not a question."""

_NAME = (
    r"(?:the\s+|a\s+|an\s+)?[\"“]?[A-Z][\w'’.&-]*"
    r"(?:\s+(?:(?:(?:of|the|de|and|in|for|von|van|la)\s+)?[A-Z][\w'’.&-]*|\d+\b))*"
)
_EITHER = re.compile(rf"(?P<a>{_NAME})(?P<gap>[\"”]?,?\s+or\s+)(?P<b>{_NAME})")
_BOTH = re.compile(
    r"(?:[Aa]re|[Ww]ere|[Dd]o|[Dd]id|[Hh]ave|[Bb]oth|[Bb]etween|[Cc]ompare)\b[^?]*?"
    rf"(?P<a>{_NAME})(?P<gap>[\"”]?,?\s+(?:and|with|to|vs\.?|versus)\s+)(?P<b>{_NAME})"
)
_BETWEEN = re.compile(
    r"\b(?:between|compare)\s+(?P<a>[\w' -]{2,60}?)(?P<gap>\s+(?:and|with|to|vs\.?|versus)\s+)(?P<b>[\w' -]{2,60})",
    re.I,
)
_COMPARES = re.compile(
    r"\b(?:both|same|first|earlier|older|later|larger|more|difference|differ|compare|than|between)\b|, ", re.I
)
_SUPPOSES = re.compile(
    r"\b(?:would|wouldn['’]t|might|likely|unlikely|probably|could|couldn['’]t|possibly|perhaps)\b", re.I
)
"""What is supposed is in no entry: covering such words leads away from those that tell."""
_POLITE = re.compile(r"\b(?:would|could|might) (?:you|i|we)\b|\b(?:i|we|you)(?: would|['’]d)\b", re.I)


def sides(query: str) -> tuple[str, str] | None:
    """The question about each of the two things that it compares, if it names two."""
    if not _COMPARES.search(query) and " or " not in query:
        return None
    found = _EITHER.search(query) or _BETWEEN.search(query) or _BOTH.search(query)
    if found is None:
        return None
    return query[: found.end("a")] + query[found.end("b") :], query[: found.start("a")] + query[found.start("b") :]


def shape_of(query: str) -> Shape:
    """The shape of a question."""
    query = query.strip()[:READ_CHARS]
    words = query.split()
    if _SUPPOSES.search(query):
        return "plain" if _POLITE.search(query) else "suppose"
    if sides(query) is not None:
        return "compare"
    if _HAS_DONE.search(query) or _MANY.search(query):
        return "gather"
    nested = _RELATIVE.search(" ".join(words[_RELATIVE_AFTER:])) is not None
    chained = len(_CHAIN.findall(query))
    if chained >= 2 or (nested and len(words) >= _LONG_WORDS) or (chained and len(words) > _LONG_WORDS):
        return "bridge"
    return "gather" if any(cue.search(query) for cue in (_PLURAL, _ARE, _ALL)) else "plain"
