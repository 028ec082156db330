"""Long texts in pieces that can be recalled one by one.

A piece aims at 250 tokens and never has more than 500. It ends at a paragraph where that lies near the aim, else at
a sentence, else at a word, and only inside a word when there is nothing else. Each piece after the first begins with
the end of the one before, so that a sentence is not torn from what it refers to. Knows nothing about entries.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from recollect.tokens import count_tokens

TARGET_TOKENS = 250
MAX_TOKENS = 500
OVERLAP_TOKENS = 40

_PARAGRAPH = re.compile(r".*?(?:\n[ \t]*\n\s*|\Z)", re.DOTALL)
_SENTENCE = re.compile(r".*?(?:[.!?。！？…]+[\"'”’)\]]*\s+|[。！？]|\n|\Z)", re.DOTALL)
_WORD = re.compile(r"\s*\S+\s*|\s+")


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """A piece: `own` is its share of the text, verbatim; `text` has the overlap before it."""

    text: str
    own: str


def chunk(text: str) -> list[Chunk]:
    """The pieces in order; joining every `own` gives the text back exactly."""
    enough = TARGET_TOKENS * 6 // 5
    if len(text) <= enough or count_tokens(text) <= enough:  # a character is one token at most
        return [Chunk(text=text, own=text)]
    pieces = _pack(_atoms(text))
    chunks = [Chunk(text=pieces[0], own=pieces[0])]
    for before, piece in pairwise(pieces):
        lead = _tail(before) if count_tokens(piece) + OVERLAP_TOKENS <= MAX_TOKENS else ""
        chunks.append(Chunk(text=lead + piece, own=piece))
    return chunks


def _atoms(text: str) -> list[tuple[str, bool]]:
    """Pieces no larger than the target, each with whether a paragraph ends after it."""
    atoms: list[tuple[str, bool]] = []
    for paragraph in filter(None, _PARAGRAPH.findall(text)):
        parts = [paragraph] if count_tokens(paragraph) <= TARGET_TOKENS else _sentences(paragraph)
        atoms += [(part, False) for part in parts[:-1]]
        atoms.append((parts[-1], True))
    return atoms


def _sentences(paragraph: str) -> list[str]:
    parts: list[str] = []
    for sentence in filter(None, _SENTENCE.findall(paragraph)):
        parts += [sentence] if count_tokens(sentence) <= TARGET_TOKENS else _words(sentence)
    return parts


def _words(sentence: str) -> list[str]:
    """Runs of words up to the target; a word beyond it is cut."""
    runs: list[str] = []
    room = 0
    for word in _WORD.findall(sentence):
        cost = count_tokens(word)
        if cost > TARGET_TOKENS:
            # At one token a character at worst, this many characters always fit.
            runs += [word[start : start + TARGET_TOKENS] for start in range(0, len(word), TARGET_TOKENS)]
            room = 0
        elif cost <= room:
            runs[-1] += word
            room -= cost
        else:
            runs.append(word)
            room = TARGET_TOKENS - cost
    return runs


def _pack(atoms: list[tuple[str, bool]]) -> list[str]:
    """Atoms joined up to the target; past four fifths of it the next paragraph end closes the piece."""
    pieces: list[str] = []
    current, size = "", 0
    for atom, ends_paragraph in atoms:
        cost = count_tokens(atom)
        if current and size + cost > TARGET_TOKENS:
            pieces.append(current)
            current, size = "", 0
        current += atom
        size += cost
        if ends_paragraph and size >= TARGET_TOKENS * 4 // 5:
            pieces.append(current)
            current, size = "", 0
    if current.strip() or not pieces:
        pieces.append(current)
    elif current:
        pieces[-1] += current
    return pieces


def _tail(piece: str) -> str:
    """The last sentence of a piece if it is short enough, else its last words."""
    sentences: list[str] = [s for s in _SENTENCE.findall(piece) if s.strip()]
    if sentences and count_tokens(sentences[-1]) <= OVERLAP_TOKENS:
        return sentences[-1].rstrip() + " "
    words: list[str] = []
    room = OVERLAP_TOKENS
    for word in reversed(piece.split()):
        room -= count_tokens(word)
        if room < 0:
            break
        words.insert(0, word)
    return " ".join(words) + " " if words else ""
