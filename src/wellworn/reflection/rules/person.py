"""Sentences turned around: what a speaker says of themselves, said about them by name, with the verbs agreeing.

"I work at Ocado and my sister lives with me" said by Ada becomes "Ada works at Ocado and their sister lives with
them". Nobody's gender is guessed. Quoted words stay. Knows grammar by word lists only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from wellworn.reflection.rules.lists import words
from wellworn.reflection.rules.verbs import ADVERBS, BASE, MODALS, is_past, third_person

_PIECE = re.compile(r"\w+(?:'\w+)*|\s+|[^\w\s]")
_CONTRACTED = {
    "i'm": ("i", "am"),
    "i've": ("i", "have"),
    "i'll": ("i", "will"),
    "i'd": ("i", "would"),
    "im": ("i", "am"),
    "ive": ("i", "have"),
    "we're": ("we", "are"),
    "we've": ("we", "have"),
    "we'll": ("we", "will"),
    "we'd": ("we", "would"),
    "you're": ("you", "are"),
    "you've": ("you", "have"),
    "you'll": ("you", "will"),
    "you'd": ("you", "would"),
}
_AFTER_HAD = words("better been had never just gone always")
_POSSESSIVES = {"my": "their", "our": "their"}
_ALONE = {"mine": "theirs", "ours": "theirs", "myself": "themselves", "ourselves": "themselves"}
_JOINS = words("and or but then")
_CLAUSE = words("that if when because so but and while as since until what how where why before after which who , ;")
_SIDE_WORDS = 7


@dataclass(frozen=True, kw_only=True)
class Persons:
    """Who speaks and who is spoken to, by name."""

    speaker: str
    listener: str


@dataclass(kw_only=True)
class _Turning:
    """One sentence on its way: the pieces done, and what was said of the speaker so far."""

    who: Persons
    pieces: list[str]
    done: list[str] = field(default_factory=list)
    named: bool = False
    acted: bool = False
    """The speaker was the subject already."""
    agree: str = ""
    """What the next verb agrees with: "one" (a name), "many" (they), "" (nothing to do)."""
    present: bool = False
    """The speaker's verb stood in the present, so that "and live" becomes "and lives"."""


def turn_around(text: str, who: Persons, *, named: bool = False) -> str:
    """The sentence about the speaker by name, beginning with a capital; `named` when the name stands before it."""
    state = _Turning(who=who, pieces=_pieces(text), named=named)
    quoted = False
    for place, piece in enumerate(state.pieces):
        if piece == '"':
            quoted = not quoted
        if quoted or piece.isspace():
            state.done.append(piece)
        else:
            _take(state, piece, place)
    turned = "".join(state.done).strip()
    return turned[:1].upper() + turned[1:]


def _pieces(text: str) -> list[str]:
    """Words, spaces and signs, with "I'm" as two words."""
    found: list[str] = []
    for piece in _PIECE.findall(text):
        pair = _CONTRACTED.get(piece.lower())
        found += [pair[0], " ", pair[1]] if pair and piece != "IM" else [piece]
    return found


def _take(state: _Turning, piece: str, place: int) -> None:
    lower = piece.lower()
    if lower == "i" and (piece == "I" or _speaks(state.pieces, place)):
        _subject(state, place)
    elif lower == "we":
        state.done.append("they" if state.named else f"{state.who.speaker} and others")
        state.named, state.acted, state.agree = True, True, ""
    elif lower in _POSSESSIVES:
        state.done.append(_POSSESSIVES[lower] if state.named else f"{state.who.speaker}'s")
        state.named = True
    elif lower == "me" or piece == "us":
        state.done.append("them" if state.named else state.who.speaker)
        state.named = True
    elif lower in _ALONE:
        state.done.append(_ALONE[lower])
    elif lower in ("you", "your", "yours", "yourself"):
        _listener(state, lower, place)
    else:
        state.done.append(_verb(state, piece, lower, place))


def _subject(state: _Turning, place: int) -> None:
    before = _side(state.pieces, place, -1)
    together = before[:1] == ["and"] and len(before) < _SIDE_WORDS and not state.acted
    if state.named and not together:
        state.done.append("they")
    else:
        state.done.append(state.who.speaker)
    state.agree = "many" if state.named or together else "one"  # "my wife and I": both act, the verb stays
    state.named = state.acted = True


def _listener(state: _Turning, lower: str, place: int) -> None:
    name = state.who.listener
    if lower != "you":
        state.done.append(name if lower == "yourself" else f"{name}'s")
        return
    before, after = _side(state.pieces, place, -1)[:1], _side(state.pieces, place, 1)[:1]
    subject = not before or before[0] in _CLAUSE or (bool(after) and after[0] in ("are", "have"))
    state.done.append(name)
    state.agree = "one" if subject else ""


def _verb(state: _Turning, piece: str, lower: str, place: int) -> str:
    if not state.agree:
        return _second_verb(state, piece, lower, place)
    if lower in ADVERBS or (lower.endswith("ly") and lower not in BASE):
        return piece
    agree, state.agree = state.agree, ""
    if not lower[0].isalpha():
        state.agree = agree if lower == "," else ""
        return piece
    if lower == "would" and _stands_for_had(state.pieces, place):
        return "had"
    if agree == "many":
        return {"am": "are", "was": "were", "wasn't": "weren't"}.get(lower, piece)
    state.present = lower in BASE and not is_past(lower)
    return third_person(piece)


def _stands_for_had(pieces: list[str], place: int) -> bool:
    """Whether "I'd" was "I had": "I'd been there". A "would" that was written out has its subject in its own case."""
    contracted = place >= 2 and pieces[place - 1] == " " and pieces[place - 2] in ("i", "we", "you")
    after = _side(pieces, place, 1)[:1]
    return contracted and bool(after) and after[0] in _AFTER_HAD


def _second_verb(state: _Turning, piece: str, lower: str, place: int) -> str:
    """The verb after "and" of a subject given by name: "works here and lives there", but "wants to eat and sleep"."""
    if not state.present or lower not in BASE or is_past(lower):
        return piece
    before, after = _side(state.pieces, place, -1), _side(state.pieces, place, 1)[:1]
    joint = before[1:2] if before and before[0] in ADVERBS else before[:1]
    if not joint or joint[0] not in _JOINS or "to" in before or not after or after[0] in (",", "is", "are", "was"):
        return piece
    return third_person(piece)


def _speaks(pieces: list[str], place: int) -> bool:
    """A small "i" is the speaker where a verb follows: "i like it", not "vitamin i"."""
    after = [word for word in _side(pieces, place, 1) if word not in ADVERBS][:1]
    return bool(after) and (after[0] in BASE or after[0] in MODALS or is_past(after[0]) or after[0] in ("am", "don't"))


def _side(pieces: list[str], place: int, step: int) -> list[str]:
    """A few words and signs on one side, nearest first, in lower case."""
    found: list[str] = []
    at = place + step
    while 0 <= at < len(pieces) and len(found) < _SIDE_WORDS:
        if not pieces[at].isspace():
            found.append(pieces[at].lower())
        at += step
    return found
