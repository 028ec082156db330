"""A text cut into words, numbers, signs and marks, folded so that spacing, case and typography do not matter.

Works on any script and in linear time. Knows nothing about what words mean; `reading` does.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from wellworn.reflection.matching import lexicon as lx

TokenKind = Literal["word", "number", "clock", "date", "email", "phone", "link", "sign", "mark"]

_TOKEN = re.compile(
    r"""
      (?P<email> [\w.+-]{1,64} @ [\w-]{1,63} (?:\.[\w-]{1,63}){1,8} )
    | (?P<link> https?://\S{1,500} )
    | (?P<date> (?<!\d)\d{4}-\d{2}-\d{2}(?!\d) )
    | (?P<clock> (?<![\d.,])\d{1,2}(?:[:.]\d{2})?\ ?[ap]\.?m\b\.? | (?<![\d.,])\d{1,2}:\d{2}(?!\d) )
    | (?P<phone> (?<![\d.,])\+?\d{1,5}(?:[ -]\(?\d{2,6}\)?){1,5}(?![\d,.]\d|\d) )
    | (?P<number> (?:(?<!\S)[-−])?\d+(?:[.,]\d+)* )
    | (?P<dotted> (?<!\w)(?:[^\W\d_]\.){2,12} )
    | (?P<word> [^\W\d_]\w* (?: \+\+ | \# | (?:['’][^\W\d_]+){1,2} )? )
    | (?P<mark> [.!?;,:()\[\]…。！？、，；：（）【】] )
    | (?P<other> \S )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_CLOCK = re.compile(r"(\d{1,2})(?:[:.](\d{2}))?\s?([ap])?")
_YEARS = re.compile(r"(?:19|20)\d\d")
_CONTRACTED = {"n't": "not", "'re": "are", "'ve": "have", "'ll": "will", "'d": "would", "'m": "am"}
_SAYS_IS = lx.word_set("it that he she what there who here how where i you we they this")
SIGNS_THAT_ARE_MARKS = frozenset("*_`~|<>=^")
"""Of the signs of mathematics and markup, those that mostly are Markdown."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Token:
    """One piece of a text: `raw` is its folded form, `text` as it stands in the source at `start`:`end`."""

    kind: TokenKind
    raw: str
    text: str = field(compare=False)
    start: int = field(compare=False)
    end: int = field(compare=False)

    @property
    def capital(self) -> bool:
        return self.kind == "word" and self.text[:1].isupper()


def fold(word: str) -> str:
    """Lower case in one Unicode form; a name loses its Latin accents as well: `Zoë` is `zoe`, but `año` stays."""
    folded = unicodedata.normalize("NFKC", word).casefold()
    if folded.isascii() or not word[:1].isupper():
        return folded
    plain = unicodedata.normalize("NFKD", folded)
    if not plain[0].isascii():
        return folded
    return "".join(c for c in plain if not unicodedata.combining(c))


def tokens(text: str) -> list[Token]:
    """The tokens of a text in order. What neither a letter, a digit nor a sign is left out, but for marks."""
    found: list[Token] = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or "other"
        found += _CUT[kind](match[0], match.start())
    return found


def near_key(found: list[Token]) -> tuple[str, ...]:
    """What two texts share that differ in case, spacing and punctuation only; a question is no statement."""
    raws = [token.raw for token in found if token.kind != "mark"]
    return (*raws, "?") if any(token.raw == "?" for token in found if token.kind == "mark") else tuple(raws)


def _token(kind: TokenKind, raw: str, text: str, start: int) -> list[Token]:
    return [Token(kind=kind, raw=raw, text=text, start=start, end=start + len(text))]


def _word(text: str, start: int) -> list[Token]:
    """A word, its contraction taken apart: `doesn't` is `does not`, `Ada's` is `Ada` and `'s`."""
    plain = text.replace("’", "'")
    low = plain.casefold()
    if low in ("cannot", "can't", "won't", "shan't"):
        base = {"won't": "will", "shan't": "shall"}.get(low, "can")
        return [*_token("word", base, text, start), *_token("word", "not", "", start + len(text))]
    head, sign, tail = plain.rpartition("'")
    if not sign:
        return _token("word", fold(text), text, start)
    if low.endswith("n't"):
        return [
            *_token("word", fold(text[:-3]), text[:-3], start),
            *_token("word", "not", text[-3:], start + len(text) - 3),
        ]
    ending = "'" + tail.casefold()
    if ending == "'s":
        second = "is" if head.casefold() in _SAYS_IS else "'s"
    elif ending in _CONTRACTED:
        second = _CONTRACTED[ending]
    else:  # O'Brien, aujourd'hui
        return _token("word", fold(plain), text, start)
    cut = len(head)
    return [*_token("word", fold(text[:cut]), text[:cut], start), *_token("word", second, text[cut:], start + cut)]


def _dotted(text: str, start: int) -> list[Token]:
    letters = text.replace(".", "")
    return [Token(kind="word", raw=fold(letters), text=letters, start=start, end=start + len(text))]


def _number(text: str, start: int) -> list[Token]:
    raw = text.replace("−", "-")
    bare = raw.lstrip("-")
    if _THOUSANDS.fullmatch(bare):
        bare = bare.replace(",", "")
    elif bare.count(",") == 1 and "." not in bare:
        bare = bare.replace(",", ".")
    if bare.count(".") == 1:
        bare = bare.rstrip("0").rstrip(".")
    return _token("number", ("-" if raw.startswith("-") else "") + _digits(bare), text, start)


def _digits(text: str) -> str:
    """Digits of any script as ASCII ones."""
    return text if text.isascii() else "".join(str(unicodedata.digit(c, c)) for c in text)


def _clock(text: str, start: int) -> list[Token]:
    match = _CLOCK.match(text)
    if match is None:  # cannot be: the token's own pattern is narrower
        return _token("sign", text, text, start)
    hour, minute, half = int(match[1]), int(match[2] or 0), (match[3] or "").lower()
    if half and 1 <= hour <= 12:
        hour = hour % 12 + (12 if half == "p" else 0)
    return _token("clock", f"{hour:02}:{minute:02}", text, start)


def _phone(text: str, start: int) -> list[Token]:
    """A telephone number from seven digits on; fewer, or nothing but years, are numbers."""
    digits = "".join(c for c in text if c.isdecimal())
    groups = re.split(r"[ -]", text)
    if len(digits) >= 7 and not all(_YEARS.fullmatch(group) for group in groups) and "--" not in text:
        return _token("phone", _digits(digits), text, start)
    return [token for match in re.finditer(r"\d+", text) for token in _number(match[0], start + match.start())]


def _other(text: str, start: int) -> list[Token]:
    """A sign is kept, a mark of punctuation or an invisible one is not."""
    category = unicodedata.category(text)
    if text in SIGNS_THAT_ARE_MARKS or (category[0] in "PCZ" and text not in "%&@#"):
        return []
    return _token("sign", unicodedata.normalize("NFKC", text), text, start)


_MARKS = {"。": ".", "！": "!", "？": "?", "，": ",", "、": ",", "；": ";", "：": ":", "…": "."}
_CUT: dict[str, Callable[[str, int], list[Token]]] = {
    "email": lambda text, start: _token("email", text.casefold(), text, start),
    "link": lambda text, start: _token("link", text.rstrip(".,;:!?)"), text, start),
    "date": lambda text, start: _token("date", text, text, start),
    "clock": _clock,
    "phone": _phone,
    "number": _number,
    "dotted": _dotted,
    "word": _word,
    "mark": lambda text, start: _token("mark", _MARKS.get(text, text), text, start),
    "other": _other,
}
