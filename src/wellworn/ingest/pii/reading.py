"""A text as finders read it: other alphabets' digits, wide letters and dashes as ASCII has them, no invisible signs.

Places are kept, so that what is found in the plain form can be cut out of the text itself. Knows no rule.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Sequence

_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
_LAST_DIGITS = 0x1FBFA  # beyond the last block of decimal digits


@functools.cache
def _table() -> dict[int, int]:
    wide = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
    spaces = dict.fromkeys([0xA0, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000], ord(" "))
    dashes = dict.fromkeys([*range(0x2010, 0x2016), 0x2212, 0xFE58, 0xFE63], ord("-"))
    values = ((code, unicodedata.decimal(chr(code), None)) for code in range(0x660, _LAST_DIGITS))
    digits = {code: ord("0") + value for code, value in values if value is not None}
    return {**wide, **spaces, **dashes, **digits}


def plain(text: str) -> tuple[str, Sequence[int] | None]:
    """The plain form, and for each of its characters its place in the text; None when the places are the same."""
    if text.isascii():
        return text, None
    if not _INVISIBLE.search(text):
        return text.translate(_table()), None
    hidden = set(_INVISIBLE.findall(text))
    places = [place for place, char in enumerate(text) if char not in hidden]
    return "".join([text[place] for place in places]).translate(_table()), places
