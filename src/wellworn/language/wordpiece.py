"""Tokens as BERT's uncased models have them: words in lower case without accents, cut into the longest pieces known.

The same tokens as the `tokenizers` package gives, in pure Python. Words that were seen are remembered, until `clear`.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Sequence

from wellworn.core.lazy import regex

CLS, SEP, UNKNOWN = "[CLS]", "[SEP]", "[UNK]"
_WORDS, _MOST_CHARS = 50_000, 100
"""Words whose tokens are remembered, and the characters of a word from which on it is unknown."""
_PLAIN = regex(r"[a-z0-9]+|[!-/:-@\[-`{-~]")
_CONTROL = dict.fromkeys([*range(9), 11, 12, *range(14, 32), 127])
_HAN = ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2FA1F), (0xF900, 0xFAFF))


class WordPiece:
    """Cuts texts into the numbers of their tokens."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        """`vocabulary` in the order of the numbers; pieces inside a word begin with ##."""
        self._number = {piece: number for number, piece in enumerate(vocabulary)}
        self.cls, self.sep, self._unknown = (self._number[name] for name in (CLS, SEP, UNKNOWN))
        self._of_word = functools.lru_cache(_WORDS)(self._pieces)

    def ids(self, text: str) -> list[int]:
        """The tokens of a text, without those for its begin and end."""
        words = _PLAIN.findall(text.translate(_CONTROL).lower()) if text.isascii() else _words(text)
        return [number for word in words for number in self._of_word(word)]

    def clear(self) -> int:
        """Forget the words; returns how many there were."""
        count = self._of_word.cache_info().currsize
        self._of_word.cache_clear()
        return count

    def _pieces(self, word: str) -> list[int]:
        if len(word) > _MOST_CHARS:
            return [self._unknown]
        found, begin = [], 0
        while begin < len(word):
            for end in range(len(word), begin, -1):
                number = self._number.get(word[begin:end] if not begin else f"##{word[begin:end]}")
                if number is not None:
                    break
            else:
                return [self._unknown]
            found.append(number)
            begin = end
        return found


def _words(text: str) -> list[str]:
    """The words of a text that has more than ASCII: lower case, no accents, each sign and each Chinese character by itself."""
    cleaned = []
    for char in text:
        category = unicodedata.category(char)
        if char in "\t\n\r" or category == "Zs":
            cleaned.append(" ")
        elif category[0] == "C" or char in "\x00\ufffd":
            continue
        elif any(first <= ord(char) <= last for first, last in _HAN):
            cleaned.append(f" {char} ")
        else:
            cleaned.append(char)
    found: list[str] = []
    for word in "".join(cleaned).split():
        begin = True
        for char in unicodedata.normalize("NFD", word.lower()):
            if unicodedata.category(char) == "Mn":
                continue
            if _is_sign(char):
                found.append(char)
                begin = True
            elif begin:
                found.append(char)
                begin = False
            else:
                found[-1] += char
    return found


def _is_sign(char: str) -> bool:
    return ("!" <= char <= "/" or ":" <= char <= "@" or "[" <= char <= "`" or "{" <= char <= "~") or (
        unicodedata.category(char)[0] == "P"
    )
