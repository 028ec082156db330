"""Everything that the detectors find in a text, and which finding stays where two overlap.

Detectors read a plain form of the text: digits of other alphabets, wide letters and dashes as in ASCII, no invisible
signs. Findings are spans of the text itself.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Sequence
from operator import itemgetter

from wellworn.ingest.pii.detectors import DETECTORS, Finder, Finding

PLACEHOLDER = re.compile(r"\[(?!(?:AKIA|ASIA|ABIA|ACCA)[A-Z]{16}\])[A-Z][A-Z_]{0,40}(?:_\d{1,12})?\]")
"""A type in brackets; not the one kind of key that may have nothing but capitals."""
_HINT = re.compile(
    r"\d|(?<![\s\[\]])@[\w\[]|:[0-9A-Fa-f]{0,4}:|[?&;][\w.-]{1,64}=[^\s\[\]]{4}|[\w-]{16}|-----|eyJ|"
    r"[Bb](?:earer|asic)\s|[Kk][Ee][Yy][\"']?\s{0,4}[:=]"
)
"""Nothing is found in a text without one of these outside of placeholders, and most texts have none."""
_MARK = ""
"""The type of what is a placeholder already: before all others, and nothing to mask."""
_RANK = {type_: rank for rank, type_ in enumerate((_MARK, *DETECTORS))}
_START = itemgetter(0)
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")


def find(text: str, *, others: Sequence[Finder] = ()) -> list[Finding]:
    """What is in a text, in its order, without overlaps; findings of `others` give way to those of the rules."""
    plain, places = _plain(text)
    found: list[Finding] = []
    if _HINT.search(PLACEHOLDER.sub("[]", plain) if "[" in plain else plain):
        found = [finding for detector in DETECTORS.values() for finding in detector(plain)]
    if places is not None:
        found = [Finding(places[start], places[end - 1] + 1, type_, value) for start, end, type_, value in found]
    for finder in others:
        found += [one for one in finder(text) if 0 <= one.start < one.end <= len(text)]
    if found and "[" in text:
        found += [Finding(mark.start(), mark.end(), _MARK, "") for mark in PLACEHOLDER.finditer(text)]
    return _apart(found) if found else []


def _apart(found: list[Finding]) -> list[Finding]:
    """The surest first, then the longest; whatever overlaps one that stays, or a placeholder, goes."""
    found.sort(key=_START)
    kept: list[Finding] = []
    first, reach = 0, found[0][1]  # where a cluster of overlapping ones begins in the list, and ends in the text
    for place, one in enumerate(found):
        if one[0] >= reach:
            kept += _surest(found[first:place])
            first = place
        reach = max(reach, one[1])
    kept += _surest(found[first:])
    return [one for one in kept if one[2] != _MARK]


def _surest(cluster: list[Finding]) -> list[Finding]:
    """Of those that overlap. Places are marked off, so the time is linear however many there are."""
    if len(cluster) < 2:
        return cluster
    begin = cluster[0].start
    taken = bytearray(max(one.end for one in cluster) - begin)
    kept = []
    for one in sorted(cluster, key=lambda one: (_RANK.get(one.type, len(_RANK)), one.start - one.end, one.start)):
        if taken.find(1, one.start - begin, one.end - begin) < 0:
            taken[one.start - begin : one.end - begin] = b"\x01" * (one.end - one.start)
            kept.append(one)
    return sorted(kept, key=_START)


def _plain(text: str) -> tuple[str, Sequence[int] | None]:
    """The plain form, and for each of its characters its place in the text; None when the places are the same."""
    if text.isascii():
        return text, None
    if not _INVISIBLE.search(text):
        return text.translate(_table()), None
    hidden = set(_INVISIBLE.findall(text))
    places = [place for place, char in enumerate(text) if char not in hidden]
    return "".join([text[place] for place in places]).translate(_table()), places


@functools.cache
def _table() -> dict[int, int]:
    wide = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
    spaces = dict.fromkeys([0xA0, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000], ord(" "))
    dashes = dict.fromkeys([*range(0x2010, 0x2016), 0x2212, 0xFE58, 0xFE63], ord("-"))
    values = ((code, unicodedata.decimal(chr(code), None)) for code in range(0x660, 0x1FBFA))  # to the last digits
    digits = {code: ord("0") + value for code, value in values if value is not None}
    return {**wide, **spaces, **dashes, **digits}
