"""JSON out of what a model wrote.

Models wrap it in prose, fences and thoughts, break its rules, or stop in the middle. Valid JSON is read exactly as `json`
does. Besides: trailing and missing commas, single or typographic quotes, bare keys, Python's and JavaScript's literals,
comments, line breaks and unescaped quotes inside strings, wrong or missing brackets. A text cut off
in the middle loses what it was cut in: half a sentence may say the opposite of the whole, and half a number is another
number.

Whatever they write, the result is a value or `ReplyUnreadable`. Each character is looked at a bounded number of times, so
any text takes linear time. Knows nothing about what the values mean: the caller checks them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Final, Literal, TypeVar

from wellworn.core.errors import ReplyUnreadable
from wellworn.core.lazy import regex
from wellworn.core.wellformed import well_formed

T = TypeVar("T")
MAX_CHARS = 1_000_000
"""What comes after is not read."""
MAX_DEPTH = 64

Found = dict[str, Any] | list[Any]
Place = Literal["key", "value", "item"]
"""What a string is: the key of an object, its value, or an item of a list."""

_FENCED = regex(r"^[ \t]*```[^\n`]*\n(?P<inside>.*?)(?:^[ \t]*```|\Z)", re.MULTILINE | re.DOTALL)
# Brackets that prose does not have: with something behind them that may begin a value.
_OPENER = regex(r"""\{(?=\s*["'“‘}\w/#.,]) | \[(?=\s*["'“‘{\[(\])\dtfnTFNI.,/#-])""", re.VERBOSE)
_THOUGHTS, _THOUGHTS_END = "<think>", "</think>"
_SURROGATE = regex(r"\\u[dD][89a-fA-F]")
_REREAD_CHARS = 100_000  # how much text may be looked at again after a false start
_QUOTED_CHARS = 80

_NOTHING: Final = object()
_BLANK = regex(r"(?:\s+|//[^\n]*|#[^\n]*|/\*[^*]{0,200}\*/)*")
_CLOSERS = {'"': '"', "'": "'", "“": '”"', "‘": "’'"}
_STOPS = {opener: regex(rf"[\\{closers}]") for opener, closers in _CLOSERS.items()}
# Without quotes, or with the second one only.
_BARE_KEY = regex(r"(?P<key>[^\W\d][\w$.-]{0,63})[\"']?(?=\s{0,8}:)")
_KEY_AHEAD = regex(r"""(?P<quote>["'])[\w $.-]{1,64}(?P=quote)\s{0,8}:""")
_WORDS = regex(r"[^,}\])\n]*")
_RESUME = regex(r"[,}\])\n\"'“‘{\[]")
_NUMBER = regex(r"[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.])")
_NOTHING_SAID = ("null", "None", "undefined", "NaN", "Infinity", "-Infinity", "nan", "inf")
_LITERALS = {"true": True, "True": True, "false": False, "False": False, **dict.fromkeys(_NOTHING_SAID)}
_LITERAL = regex(rf"(?:{'|'.join(_LITERALS)})(?!\w)")
_AFTER_SCALAR = ("", *",}])\"'“‘`")
_ITEM = regex(r"[\"'“‘{\[(\])\d-]|\.\.\.|(?:true|false|null|True|False|None)\b")
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", '"': '"', "'": "'", "/": "/", "\\": "\\", "\n": ""}
_HEX = regex(r"u([0-9a-fA-F]{4})")


def read_json(text: str, *, wants: Sequence[str] = ()) -> Found:
    """The object or list that answers: the first object with all the keys it `wants`, else with one of them, else the
    first that is not empty, else the first. `ReplyUnreadable` when there is none."""
    found = find_json(text)
    objects = [value for value in found if isinstance(value, dict)]
    for value in chain(
        (value for value in objects if wants and all(key in value for key in wants)),
        (value for value in objects if any(key in value for key in wants)),
        (value for value in objects if value),
        (value for value in found if value),
        found,
    ):
        return value
    beginning = " ".join(text[: _QUOTED_CHARS * 4].split())[:_QUOTED_CHARS]
    start = f"it begins {beginning!r}" if beginning else "it is empty"
    raise ReplyUnreadable(f"the model's answer of {len(text)} characters holds no JSON: {start}")


def fraction(value: object, usual: T) -> float | T:
    """A confidence as a model gives it, within 0 … 1; the usual one where it gives none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return usual
    return min(max(float(value), 0.0), 1.0)


def find_json(text: str) -> list[Found]:
    """Every object and list in a text, those inside fences first, otherwise in order; broken ones are mended."""
    text = text[:MAX_CHARS]
    whole = _strict(text)
    if isinstance(whole, str):  # JSON said as a JSON string
        text, whole = whole, _strict(whole)
    if isinstance(whole, dict | list):
        return [whole]
    return _in_parts(_after_thoughts(text)) or _in_parts(text)


def _after_thoughts(text: str) -> str:
    """What follows a model's thoughts. An end inside a string is none, unless thoughts were begun."""
    begun = text.lstrip().startswith(_THOUGHTS)
    thoughts, end, answer = text.partition(_THOUGHTS_END)
    while end and not begun and thoughts.count('"') % 2:
        more, end, answer = answer.partition(_THOUGHTS_END)
        thoughts += end + more
    return answer if end else text


def _in_parts(text: str) -> list[Found]:
    fenced = [block["inside"] for block in _FENCED.finditer(text)]
    outside = _FENCED.sub("\n", text) if fenced else text
    return [found for part in (*fenced, outside) for found in _in_text(part)]


def _in_text(text: str) -> Iterator[Found]:
    whole = _strict(text)
    if isinstance(whole, dict | list):
        yield whole
        return
    reader, may_reread = _Reader(text), _REREAD_CHARS
    at = 0
    while (opener := _OPENER.search(text, at)) is not None:
        start = reader.pos = opener.start()
        reader.cut = False
        try:
            value = reader.value(0, "item")
        except _NotOneError:
            at = max(reader.pos, start + 1)
            continue
        at = reader.pos
        if reader.cut and not value:  # a bracket in prose swallowed the rest: look behind it instead
            may_reread -= at - start
            if may_reread < 0:
                return
            at = start + 1
            continue
        yield value


def _strict(text: str) -> Any:
    """What `json` makes of the whole text, with null for numbers that are none; None when it is not valid."""
    try:
        value = json.loads(text, parse_constant=lambda _: None, parse_float=_finite)
        if _SURROGATE.search(text):  # half a character may have come of it
            return json.loads(well_formed(json.dumps(value, ensure_ascii=False)))
        return value
    except (ValueError, RecursionError):
        return None


def _finite(digits: str) -> float | None:
    value = float(digits)
    return value if math.isfinite(value) else None


class _NotOneError(Exception):
    """What starts here is no JSON value, not even a broken one."""


class _Reader:
    """Reads values from `text`, from `pos` on; `cut` says that the text ended inside one."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.pos = 0
        self.cut = False

    def value(self, depth: int, place: Place) -> Any:
        """What starts at `pos`, which moves behind it; `_NotOneError` if it is no value."""
        character = self._character(self.pos)
        if character in ("{", "[", "("):
            if depth >= MAX_DEPTH:
                raise _NotOneError
            self.pos += 1
            return self._members(depth, place) if character == "{" else self._items(depth)
        if character in _CLOSERS:
            return self._string(place)
        return self._bare(depth, place)

    def _members(self, depth: int, place: Place) -> dict[str, Any]:
        """An object, from behind its brace on."""
        made: dict[str, Any] = {}
        sure = depth > 0
        while not self._ended("}", "])"):
            if depth > 0 and place == "item" and self._character(self.pos) == "{":  # the next one: our brace is missing
                break
            key = self._key(depth)
            if key is _NOTHING and not self.cut:
                if not sure:
                    raise _NotOneError
                resumed = _RESUME.search(self.text, self.pos + 1)
                self.pos = resumed.start() if resumed else len(self.text)
                continue
            value = _NOTHING if self.cut else self._after_colon(depth, sure)
            sure = True
            if value is not _NOTHING:
                made[key] = value
            if self.cut:
                break
        return made

    def _key(self, depth: int) -> Any:
        character = self._character(self.pos)
        if character in _CLOSERS:
            return self._string("key")
        if character in "{[" and depth > 0:  # a value without a key is no use
            self.value(depth + 1, "value")
            return _NOTHING
        found = _BARE_KEY.match(self.text, self.pos)
        if found is None:
            return _NOTHING
        self.pos = found.end()
        return found["key"]

    def _after_colon(self, depth: int, sure: bool) -> Any:
        self.pos = self._blank_end(self.pos)
        if self._character(self.pos) == ":":
            self.pos = self._blank_end(self.pos + 1)
        elif not sure and self.pos < len(self.text):
            raise _NotOneError
        character = self._character(self.pos)
        if not character:
            self.cut = True
            return _NOTHING
        return None if character in ",}])" else self.value(depth + 1, "value")

    def _items(self, depth: int) -> list[Any]:
        """A list, from behind its bracket on."""
        made: list[Any] = []
        self.pos = self._blank_end(self.pos)
        if depth == 0 and self.pos < len(self.text) and not _ITEM.match(self.text, self.pos):
            raise _NotOneError
        while not self._ended("])", "}" if depth else ""):
            start = self.pos
            value = self.value(depth + 1, "item")
            if isinstance(value, str) and self._character(self._blank_end(self.pos)) == ":":
                self.pos = start  # it is a key, and its brace is missing
                value = self._members(depth + 1, "item")
            if value is not _NOTHING:
                made.append(value)
            if self.cut:
                break
        return made

    def _ended(self, closers: str, others: str) -> bool:
        """Whether the object or list ends here; what stands between its members is passed over.

        The closers of someone else are left to them: ours is missing.
        """
        while True:
            self.pos = self._blank_end(self.pos)
            character = self._character(self.pos)
            if not character:
                self.cut = True
                return True
            if character in closers:
                self.pos += 1
                return True
            if character in others:
                return True
            if character not in ",;:}" and not self.text.startswith("...", self.pos):
                return False
            self.pos += 3 if character == "." else 1

    def _string(self, place: Place) -> Any:
        parts: list[str] = []
        stops, at = _STOPS[self.text[self.pos]], self.pos + 1
        while (stop := stops.search(self.text, at)) is not None:
            parts.append(self.text[at : stop.start()])
            at = stop.end()
            if stop[0] == "\\":
                part, at = self._escape(at)
                parts.append(part)
            elif self._closes(at, place):
                self.pos = at
                return well_formed("".join(parts))
            else:
                parts.append(stop[0])
        self.pos, self.cut = len(self.text), True
        return _NOTHING

    def _escape(self, at: int) -> tuple[str, int]:
        """What the characters after a backslash stand for, and where they end; unknown ones stand for themselves."""
        character = self._character(at)
        if found := _HEX.match(self.text, at):
            return chr(int(found[1], 16)), found.end()
        return _ESCAPES.get(character, "\\" + character), at + len(character)

    def _closes(self, at: int, place: Place) -> bool:
        """Whether a quote before `at` ends the string, or is one that should have been escaped: by what follows."""
        if self._character(at).isalnum():
            return False
        after = self._blank_end(at)
        character = self._character(after)
        if not character:
            return True
        if place == "key":
            return character in ":,}" or (character in _CLOSERS and after > at)
        if character in "}])" or (place == "item" and character == ":"):
            return True
        if character == ",":
            return self._goes_on(self._blank_end(after + 1), place)
        # Of two strings in a row the comma is missing, if a line ends between them or the second is a key.
        if character not in _CLOSERS or after == at:
            return False
        return "\n" in self.text[at:after] or _KEY_AHEAD.match(self.text, after) is not None

    def _goes_on(self, at: int, place: Place) -> bool:
        """Whether what is behind a comma looks like the next member."""
        character = self._character(at)
        if not character or character in "}]" or character in _CLOSERS:
            return True
        if place == "value":
            return character == "," or _BARE_KEY.match(self.text, at) is not None
        return _ITEM.match(self.text, at) is not None

    def _bare(self, depth: int, place: Place) -> Any:
        """A literal, a number, or words without quotes."""
        found = _LITERAL.match(self.text, self.pos)
        if found is not None and self._ends_scalar(found.end(), place):
            self.pos = found.end()
            return _LITERALS[found[0]]
        found = _NUMBER.match(self.text, self.pos)
        if found is not None and self._ends_scalar(found.end(), place):
            self.pos = found.end()
            self.cut = self.pos == len(self.text)  # it may have gone on
            return _NOTHING if self.cut else _number(found[0])
        if depth <= 1 and place == "item":  # [sic]: a remark in prose
            raise _NotOneError
        found = _WORDS.match(self.text, self.pos)
        words = found[0].strip().rstrip("\"'") if found else ""
        self.pos = max(found.end() if found else 0, self.pos + 1)
        self.cut = self.pos >= len(self.text)
        return _NOTHING if self.cut or not words else well_formed(words)

    def _ends_scalar(self, at: int, place: Place) -> bool:
        after = self._blank_end(at)
        character = self._character(after)
        return character in _AFTER_SCALAR or "\n" in self.text[at:after] or (place == "item" and character.isdecimal())

    def _blank_end(self, at: int) -> int:
        found = _BLANK.match(self.text, at)
        return found.end() if found else at

    def _character(self, at: int) -> str:
        """The one there, or nothing at the end."""
        return self.text[at : at + 1]


def _number(word: str) -> int | float | None:
    word = word.replace("_", "")
    try:
        return int(word)
    except ValueError:  # not whole, or longer than Python converts
        return _finite(word)
