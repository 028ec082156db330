"""Names: capitalised runs as one unit each, and when two of them mean the same person, place or thing.

Acronyms match what they stand for, by a table of common ones or by initials; a title and a surname match the full
name. Nothing here looks at spelling distance: Ann is not Anna.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from wellworn.reflection.matching.lexicon import ALIASES, TITLES, is_plain
from wellworn.reflection.matching.tokens import Token

_INSIDE = frozenset({"of", "de", "del", "da", "di", "van", "von", "der", "la", "le", "al", "bin"})
_NOT_A_NAME = frozenset({"i", "user", "users", "assistant", "speaker", "ok", "yes", "no", "am", "pm"})
_GENDERED = {"mr": "m", "mrs": "f", "ms": "f", "miss": "f", "sir": "m", "madam": "f"}
_LONGEST_RUN = 8
_SHORTENED = frozenset({"st", "mt", "ft"})
"""Words of names that are written with a full stop."""
_UNSPELLED = frozenset({"of", "the", "and", "for", "in", "de"})


def joined(found: Sequence[Token]) -> list[Token]:
    """The tokens with each run of capitalised words made one; `raw` then holds the words, a title first."""
    made: list[Token] = []
    place = 0
    fresh = True  # at the beginning of a sentence, where a capital tells nothing
    while place < len(found):
        token, used = found[place], 1
        if token.capital and token.raw not in _NOT_A_NAME and not (fresh and is_plain(token.raw)):
            used = _run(found, place)
            raw = " ".join(part.raw for part in found[place : place + used] if part.kind != "mark")
            token = replace(token, raw=raw, end=found[place + used - 1].end)
        made.append(token)
        fresh = token.kind == "mark" and token.raw in ".!?;:】*"
        place += used
    return made


def _run(found: Sequence[Token], place: int) -> int:
    """How many tokens the name takes that begins here."""
    used = 1
    if (
        (found[place].raw in TITLES or found[place].raw in _SHORTENED)
        and place + 1 < len(found)
        and found[place + 1].raw == "."
    ):
        used = 2
    while place + used < len(found) and used < _LONGEST_RUN:
        token = found[place + used]
        if token.capital and token.raw not in _NOT_A_NAME:
            used += 1
        elif token.raw in _INSIDE and place + used + 1 < len(found) and found[place + used + 1].capital:
            used += 2
        else:
            break
    return 1 if used == 2 and found[place + 1].kind == "mark" else used


def is_acronym(name: str) -> bool:
    """Whether a folded name could be the initials of another."""
    return 2 <= len(name) <= 6 and name.isalpha()


def initials(name: str) -> str:
    return "".join(word[0] for word in name.split() if word not in _UNSPELLED)


def same_name(one: str, other: str) -> bool:
    """Whether two folded names mean the same: equal, an alias, initials, or a title with a surname."""
    if one == other or ALIASES.get(one, one) == ALIASES.get(other, other):
        return True
    short, long = sorted((one, other), key=len)
    if " " not in short and " " in long and is_acronym(short) and len(short) >= 3 and initials(long) == short:
        return True
    return _titled(one, other)


def _titled(one: str, other: str) -> bool:
    """`dr smith` and `john smith`, `dr smith` and `dr john smith`; not `mr smith` and `mrs smith`."""
    first, second = _without_title(one), _without_title(other)
    if not first[0] and not second[0]:
        return False
    genders = {_GENDERED.get(first[0], ""), _GENDERED.get(second[0], "")} - {""}
    if len(genders) > 1:
        return False
    short, long = sorted((first[1], second[1]), key=len)
    return bool(short) and (long == short or long[-len(short) :] == short)


def _without_title(name: str) -> tuple[str, list[str]]:
    words = name.split()
    return (words[0], words[1:]) if words and words[0] in TITLES and len(words) > 1 else ("", words)


def is_short_for(one: str, other: str) -> bool:
    """Whether one of two names of a person begins the other: `ada` and `ada lovelace`."""
    short, long = sorted((one.split(), other.split()), key=len)
    return bool(short) and long[: len(short)] == short
