"""A forgiving reader of one JSON value at a place in a text.

Reads valid JSON exactly as `json` does, and what models make of it besides: trailing and missing commas, single or
typographic quotes, bare keys, Python's and JavaScript's literals, comments, line breaks and unescaped quotes inside
strings, wrong or missing brackets. Each character is looked at a bounded number of times, so any text takes linear
time. Knows nothing about prose around the value: see `structured`.

A text cut off in the middle loses what it was cut in: half a sentence may say the opposite of the whole, and half a
number is another number.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final, Literal

from wellworn.core.wellformed import well_formed

MAX_DEPTH = 64

Place = Literal["key", "value", "item"]
"""What a string is: the key of an object, its value, or an item of a list."""

_NOTHING: Final = object()
_BLANK = re.compile(r"(?:\s+|//[^\n]*|#[^\n]*)*")
_CLOSERS = {'"': '"', "'": "'", "“": '”"', "‘": "’'"}
_STOPS = {opener: re.compile(rf"[\\{closers}]") for opener, closers in _CLOSERS.items()}
# Without quotes, or with the second one only.
_BARE_KEY = re.compile(r"(?P<key>[^\W\d][\w$.-]{0,63})[\"']?(?=\s{0,8}[:=])")
_KEY_AHEAD = re.compile(r"""(?P<quote>["'])[\w $.-]{1,64}(?P=quote)\s{0,8}:""")
_NEAR_CHARS = 32
_WORDS = re.compile(r"[^,}\])\n]*")
_RESUME = re.compile(r"[,}\])\n\"'“‘{\[]")
_NUMBER = re.compile(r"[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.])")
_NOTHING_SAID = ("null", "None", "undefined", "NaN", "Infinity", "-Infinity", "nan", "inf")
_LITERALS = {"true": True, "True": True, "false": False, "False": False, **dict.fromkeys(_NOTHING_SAID)}
_LITERAL = re.compile(rf"(?:{'|'.join(_LITERALS)})(?!\w)")
_AFTER_SCALAR = ("", *",}])\"'“‘`")
_ITEM = re.compile(r"[\"'“‘{\[(\])\d-]|\.\.\.|(?:true|false|null|True|False|None)\b")
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", '"': '"', "'": "'", "/": "/", "\\": "\\", "\n": ""}
_HEX = {"u": re.compile(r"[0-9a-fA-F]{4}"), "x": re.compile(r"[0-9a-fA-F]{2}")}
_FENCE = "```"


class NotOneError(Exception):
    """What starts here is no JSON value, not even a broken one."""


class JsonReader:
    """Reads values from `text`, from `pos` on; `cut` says that the text ended inside one."""

    def __init__(self, text: str, pos: int = 0) -> None:
        self.text = text
        self.pos = pos
        self.cut = False
        self._last_comment_end = text.rfind("*/")
        self._last_triple = {quote: text.rfind(quote * 3) for quote in "\"'"}

    def read(self) -> Any:
        """The object or list that starts at `pos`, which moves behind it; `NotOneError` if it is none."""
        start = self.pos
        try:
            return self._value(0, "item")
        except NotOneError:
            self.pos = max(self.pos, start + 1)
            raise

    def _value(self, depth: int, place: Place) -> Any:
        character = self._peek()
        if character in "{[(":
            if depth >= MAX_DEPTH:
                raise NotOneError
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
            if sure and place == "item" and depth > 0 and self._peek() == "{":  # the next one: our brace is missing
                break
            key = self._key(depth)
            if key is _NOTHING:
                if self.cut:
                    break
                if not sure:
                    raise NotOneError
                self._resume()
                continue
            value = self._after_colon(depth, sure)
            sure = True
            if value is not _NOTHING:
                made[key] = value
            if self.cut:
                break
        return made

    def _key(self, depth: int) -> Any:
        character = self._peek()
        if character in _CLOSERS:
            return self._string("key")
        if character in "{[" and depth > 0:  # a value without a key is no use
            self._value(depth + 1, "value")
            return _NOTHING
        found = _BARE_KEY.match(self.text, self.pos)
        if found is None:
            return _NOTHING
        self.pos = found.end()
        return found["key"]

    def _after_colon(self, depth: int, sure: bool) -> Any:
        self._skip_blank()
        character = self._peek()
        if character in ":=" and character:
            self.pos += 2 if self.text.startswith("=>", self.pos) else 1
            self._skip_blank()
            character = self._peek()
        elif not sure and character:
            raise NotOneError
        if not character or self.text.startswith(_FENCE, self.pos):
            self.cut = True
            return _NOTHING
        if character in ",}])":
            return None
        return self._value(depth + 1, "value")

    def _items(self, depth: int) -> list[Any]:
        """A list, from behind its bracket on."""
        made: list[Any] = []
        self._skip_blank()
        if depth == 0 and self._peek() and not _ITEM.match(self.text, self.pos):
            raise NotOneError
        while not self._ended("])", "}" if depth else ""):
            start = self.pos
            value = self._value(depth + 1, "item")
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
            self._skip_blank()
            character = self._peek()
            if not character or self.text.startswith(_FENCE, self.pos):
                self.cut = True
                return True
            if character in closers:
                self.pos += 1
                return True
            if character in others:
                return True
            if self.text.startswith("...", self.pos):
                self.pos += 3
            elif character in ",;:}":
                self.pos += 1
            else:
                return False

    def _string(self, place: Place) -> Any:
        quote = self._peek()
        if self.text.startswith(quote * 3, self.pos) and self._last_triple.get(quote, -1) > self.pos:
            end = self.text.find(quote * 3, self.pos + 3)
            if end >= 0:
                body, self.pos = self.text[self.pos + 3 : end], end + 3
                return well_formed(body)
        parts: list[str] = []
        at = self.pos + 1
        stops = _STOPS[quote]
        while (stop := stops.search(self.text, at)) is not None:
            parts.append(self.text[at : stop.start()])
            at = stop.end()
            if stop[0] == "\\":
                part, at = self._escape(at)
                parts.append(part)
            elif self._closes(at, place):
                self.pos = at
                return well_formed("".join(parts))
            elif (lost := self._lost_quote(stop.start(), place)) is not None:
                self.pos = lost
                return well_formed("".join(parts).rstrip().rstrip(":,").rstrip())
            else:
                parts.append(stop[0])
        self.pos, self.cut = len(self.text), True
        return _NOTHING

    def _escape(self, at: int) -> tuple[str, int]:
        """What the characters after a backslash stand for, and where they end; unknown ones stand for themselves."""
        character = self._character(at)
        if character in _HEX and (found := _HEX[character].match(self.text, at + 1)):
            return chr(int(found[0], 16)), found.end()
        if not character:
            return "", at
        return _ESCAPES.get(character, "\\" + character), at + 1

    def _closes(self, at: int, place: Place) -> bool:
        """Whether a quote before `at` ends the string, or is one that should have been escaped: by what follows."""
        if self._character(at).isalnum():
            return False
        after = self._blank_end(at)
        character = self._character(after)
        if not character or self.text.startswith(_FENCE, after):
            return True
        if place == "key":
            return character in ":=,}" or (character in _CLOSERS and after > at)
        if character in "}])" or (place == "item" and character == ":"):
            return True
        if character == ",":
            then = self._blank_end(after + 1)
            return self._goes_on(then, place)
        # Of two strings in a row the comma is missing, if a line ends between them or the second is a key.
        if character not in _CLOSERS or after == at:
            return False
        return "\n" in self.text[at:after] or _KEY_AHEAD.match(self.text, after) is not None

    def _lost_quote(self, at: int, place: Place) -> int | None:
        """Where a string ended that has lost its second quote, if the quote at `at` begins what comes after it.

        `"key: "value"` ends at the colon, `"value, "key": …` at the comma.
        """
        before = self.text[max(self.pos + 1, at - _NEAR_CHARS) : at].rstrip()
        if place == "key" and before.endswith(":"):
            return self.text.rindex(":", 0, at)
        if place == "value" and before.endswith(",") and _KEY_AHEAD.match(self.text, at):
            return at
        return None

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
        for kind in (_LITERAL, _NUMBER):
            found = kind.match(self.text, self.pos)
            if found is None or not self._ends_scalar(found.end(), place):
                continue
            self.pos = found.end()
            if kind is _LITERAL:
                return _LITERALS[found[0]]
            if self.pos == len(self.text):  # it may have gone on
                self.cut = True
                return _NOTHING
            return _number(found[0])
        return self._words(depth, place)

    def _ends_scalar(self, at: int, place: Place) -> bool:
        after = self._blank_end(at)
        character = self._character(after)
        return character in _AFTER_SCALAR or "\n" in self.text[at:after] or (place == "item" and character.isdecimal())

    def _words(self, depth: int, place: Place) -> Any:
        if depth <= 1 and place == "item":  # [sic]: a remark in prose
            raise NotOneError
        found = _WORDS.match(self.text, self.pos)
        words = found[0].strip().rstrip("\"'") if found else ""
        self.pos = max(found.end() if found else 0, self.pos + 1)
        if self.pos >= len(self.text):
            self.cut = True
            return _NOTHING
        return well_formed(words) if words else _NOTHING

    def _resume(self) -> None:
        """Past what cannot be read, to where something may start again."""
        found = _RESUME.search(self.text, self.pos + 1)
        self.pos = found.start() if found else len(self.text)

    def _skip_blank(self) -> None:
        self.pos = self._blank_end(self.pos)

    def _blank_end(self, at: int) -> int:
        while True:
            found = _BLANK.match(self.text, at)
            at = found.end() if found else at
            if not self.text.startswith("/*", at) or at > self._last_comment_end:
                return at
            at = self.text.find("*/", at) + 2

    def _peek(self) -> str:
        return self._character(self.pos)

    def _character(self, at: int) -> str:
        """The one there, or nothing at the end."""
        return self.text[at : at + 1]


def _number(word: str) -> int | float | None:
    word = word.replace("_", "")
    try:
        return int(word)
    except ValueError:  # not whole, or longer than Python converts
        value = float(word)
        return value if math.isfinite(value) else None
