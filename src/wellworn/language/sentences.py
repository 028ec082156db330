"""Where the sentences of a text are.

People type without full stops, so a long stretch is also cut at commas and joining words. Offsets point into the text as it
is given; every character that is no space lies in exactly one sentence.
"""

from __future__ import annotations

import re

from wellworn.core.lazy import regex

SHORTEST, LONGEST, MOST = 12, 180, 24
"""Characters below which a stretch is joined to the one before, characters above which it is cut further, and how many sentences a
text has at most: the last one takes the rest."""
_ENDS = regex(r"(?<=[.!?…。！？])[\"'”’)\]]*\s+|\s*\n+\s*|;\s+|\s+[-–—]+\s+|(?<=[。！？])")
_JOINTS = regex(r",\s+|\s+(?=(?:and|but|so|also|because|which|und|aber|weil|et|mais|y|pero|e|ma|mas|en|maar)\s)", re.I)


def sentences(text: str) -> list[tuple[int, int]]:
    """Begin and end of each sentence, in order; none for a blank text."""
    found: list[tuple[int, int]] = []
    for begin, end in _cut(text, 0, len(text), _ENDS):
        found += _parts(text, begin, end)
    joined: list[tuple[int, int]] = []
    for begin, end in found:
        if joined and (end - begin < SHORTEST or joined[-1][1] - joined[-1][0] < SHORTEST):
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((begin, end))
    if len(joined) > MOST:
        joined[MOST - 1 :] = [(joined[MOST - 1][0], joined[-1][1])]
    return joined


def in_other_script(text: str) -> bool:
    """Whether most letters of a text are not Latin: the reader knows no other script, and words find such texts."""
    letters = [] if text.isascii() else [char for char in text if char.isalpha()]
    return 2 * sum(char >= "\u0370" and not "\u1e00" <= char < "\u1f00" for char in letters) > len(letters)


def _cut(text: str, begin: int, end: int, marks: re.Pattern[str]) -> list[tuple[int, int]]:
    """The stretches between marks, without space around them."""
    found, start = [], begin
    for mark in [*marks.finditer(text, begin, end), None]:
        stop = end if mark is None else mark.start()
        piece = text[start:stop]
        if piece.strip():
            lead = len(piece) - len(piece.lstrip())
            found.append((start + lead, start + lead + len(piece.strip())))
        start = stop if mark is None else mark.end()
    return found


def _parts(text: str, begin: int, end: int) -> list[tuple[int, int]]:
    """A stretch, cut near its middle until each part is short enough or has no joint."""
    if end - begin <= LONGEST:
        return [(begin, end)]
    pieces = _cut(text, begin, end, _JOINTS)
    if len(pieces) < 2:
        return [(begin, end)]
    middle = (begin + end) / 2
    second = min(range(1, len(pieces)), key=lambda place: abs(pieces[place][0] - middle))
    return _parts(text, begin, pieces[second - 1][1]) + _parts(text, pieces[second][0], end)
