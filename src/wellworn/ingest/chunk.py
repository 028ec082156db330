"""Long texts in pieces that can be recalled one by one.

A piece aims at 200 to 300 tokens and never has more than 500. It ends at a paragraph where one ends in that range,
else at a sentence, else at a word, and only inside a word when there is nothing else. Each piece after the first
begins with the end of the one before, so that a sentence is not torn from what it refers to. Takes time in
proportion to the text, whatever the text. Knows nothing about entries.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from wellworn.core.tokens import count_tokens

LEAST_TOKENS = 200
TARGET_TOKENS = 250
MOST_TOKENS = 300
MAX_TOKENS = 500
LEAST_OVERLAP_TOKENS, MOST_OVERLAP_TOKENS = 20, 60

# Possessive (`++`, `*+`): what was read is not given back, so a million full stops are read once.
_PARAGRAPH_END = re.compile(r"\n[ \t]*+\n\s*+")
_SENTENCE_END = re.compile(
    r"(?<![.!?…])[.!?…]++[\"'”’)\]]*+(?:\s++|\Z)"  # a run of marks, then space
    r"|[。！？]++[”’』」]*+\s*+"  # marks that no space follows
    r"|\n\s*+"
)
_WORD = re.compile(r"\S++\s*+|\s++")


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """A piece: `own` is its share of the text, verbatim; `text` has the overlap before it."""

    text: str
    own: str


@dataclass(frozen=True, kw_only=True)
class _Part:
    """A sentence, or a run of words of a very long one."""

    text: str
    tokens: int
    ends_paragraph: bool


def chunk(text: str) -> list[Chunk]:
    """The pieces in order; joining every `own` gives the text back exactly."""
    if len(text) <= MOST_TOKENS or count_tokens(text) <= MOST_TOKENS:  # a character is one token at most
        return [Chunk(text=text, own=text)]
    pieces = _packed(_parts(text))
    chunks = [Chunk(text=pieces[0], own=pieces[0])]
    for before, piece in pairwise(pieces):
        chunks.append(Chunk(text=_tail(before, _overlap(count_tokens(piece))) + piece, own=piece))
    return chunks


def _split(text: str, end: re.Pattern[str]) -> Iterator[str]:
    """The text cut after every match; nothing is lost, nothing is empty."""
    start = 0
    for match in end.finditer(text):
        if match.end() > start:
            yield text[start : match.end()]
            start = match.end()
    if start < len(text):
        yield text[start:]


def _parts(text: str) -> Iterator[_Part]:
    for paragraph in _split(text, _PARAGRAPH_END):
        sentences = [part for sentence in _split(paragraph, _SENTENCE_END) for part in _short_enough(sentence)]
        for number, sentence in enumerate(sentences, start=1):
            last = number == len(sentences)
            yield _Part(text=sentence, tokens=count_tokens(sentence), ends_paragraph=last)


def _short_enough(sentence: str) -> list[str]:
    """The sentence, or runs of its words up to the target; a word beyond that is cut."""
    if count_tokens(sentence) <= TARGET_TOKENS:
        return [sentence]
    runs: list[str] = []
    room = 0
    for word in _WORD.findall(sentence):
        cost = count_tokens(word)
        if cost > TARGET_TOKENS:
            runs += [word[start : start + TARGET_TOKENS] for start in range(0, len(word), TARGET_TOKENS)]
            room = 0
        elif runs and cost <= room:
            runs[-1] += word
            room -= cost
        else:
            runs.append(word)
            room = TARGET_TOKENS - cost
    return runs


def _packed(parts: Iterator[_Part]) -> list[str]:
    """Parts joined into pieces: closed at a paragraph's end from 200 tokens on, at a sentence's from 250."""
    pieces: list[list[str]] = [[]]
    size = 0
    for part in parts:
        if size + part.tokens > MOST_TOKENS and size:
            pieces.append([])
            size = 0
        pieces[-1].append(part.text)
        size += part.tokens
        if size >= (LEAST_TOKENS if part.ends_paragraph else TARGET_TOKENS):
            pieces.append([])
            size = 0
    joined = ["".join(piece) for piece in pieces if piece]
    if len(joined) > 1 and not joined[-1].strip():
        joined[-2:] = [joined[-2] + joined[-1]]
    return joined


def _overlap(tokens: int) -> int:
    """How much a piece of this size takes over: a short one more, none that would pass the limit."""
    wanted = min(max(TARGET_TOKENS - tokens, LEAST_OVERLAP_TOKENS), MOST_OVERLAP_TOKENS)
    return min(wanted, max(0, MAX_TOKENS - tokens))


def _tail(piece: str, room: int) -> str:
    """The last sentence of a piece if there is room for it, else its last words."""
    sentences = [sentence for sentence in _split(piece, _SENTENCE_END) if sentence.strip()]
    if sentences and count_tokens(sentences[-1]) <= room:
        return sentences[-1].rstrip() + " "
    words: list[str] = []
    for word in reversed(piece[-20 * MOST_OVERLAP_TOKENS :].split()):
        room -= count_tokens(word)
        if room < 0:
            break
        words.insert(0, word)
    return " ".join(words) + " " if words else ""
