"""Everything that the detectors find in a text, and which finding stays where two overlap.

Detectors read a plain form of the text: digits of other alphabets, wide letters and dashes as in ASCII, no invisible
signs. Findings are spans of the text itself.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Sequence

from wellworn.ingest.pii.detectors import DETECTORS, Finder
from wellworn.ingest.pii.named import names_secrets
from wellworn.ingest.pii.secrets import Finding

PLACEHOLDER = re.compile(r"\[(?!(?:AKIA|ASIA|ABIA|ACCA)[A-Z]{16}\])[A-Z][A-Z_]{0,40}(?:_\d{1,12})?\]")
"""A type in brackets; not the one kind of key that may have nothing but capitals."""
_HINT = re.compile(
    r"\d|(?<![\s\[\]])@[\w\[]|:[0-9A-Fa-f]{0,4}:|[?&;][\w.-]{1,64}=[^\s\[\]]{4}|[\w-]{16}|-----|eyJ|"
    r"[Bb](?:earer|asic)\s"
)
"""Nothing is found in a text without one of these outside of placeholders, and most texts have none."""
_MARK = ""
"""The type of what is a placeholder already: before all others, and nothing to mask."""
_RANK = {type_: rank for rank, type_ in enumerate((_MARK, *DETECTORS))}
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")


def find(text: str, *, strict: bool = False, others: Sequence[Finder] = ()) -> list[Finding]:
    """What is in a text, in its order, without overlaps; findings of `others` give way to those of the rules."""
    plain, places = _plain(text)
    found: list[Finding] = []
    if _HINT.search(PLACEHOLDER.sub("[]", plain) if "[" in plain else plain) or names_secrets(plain):
        found = [finding for detector in DETECTORS.values() for finding in detector(plain)]
    if strict:
        from wellworn.ingest.pii.strict import strict_findings

        found += strict_findings(plain)
    if places is not None:
        found = [Finding(places[start], places[end - 1] + 1, type_, value) for start, end, type_, value in found]
    for finder in others:
        found += [one for one in finder(text) if 0 <= one.start < one.end <= len(text)]
    if found and "[" in text:
        found += [Finding(mark.start(), mark.end(), _MARK, "") for mark in PLACEHOLDER.finditer(text)]
    return _apart(found, len(text)) if found else []


def _apart(found: list[Finding], length: int) -> list[Finding]:
    """The surest first, then the longest; whatever overlaps one that stays, or a placeholder, goes. Places are marked
    off, so the time is linear however many there are."""
    taken, kept = bytearray(length), []
    for one in sorted(found, key=lambda one: (_RANK.get(one.type, len(_RANK)), one.start - one.end, one.start)):
        if taken.find(1, one.start, one.end) < 0:
            taken[one.start : one.end] = b"\x01" * (one.end - one.start)
            kept.append(one)
    return sorted(one for one in kept if one.type != _MARK)


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
