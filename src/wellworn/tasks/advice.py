"""How two pieces of advice compare: they say the same, contradict each other, or differ.

Where an item has its calls as data, these decide. Else the words do, because vectors see the topic and not the
difference that matters: "always retry" and "never retry" have nearly the same vector. Advice is the same only if its
arguments (numbers, quoted strings, paths, commands) and its polarity are equal. It contradicts if it denies the same
words, or differs in one word of a kind of which only one can hold (up and down, Monday and Friday). Knows English.
"""

from __future__ import annotations

import re
from functools import lru_cache

from wellworn.core.dataclass import dataclass
from wellworn.core.lazy import regex
from wellworn.core.values import Entry
from wellworn.ingest.terms import STOP_WORDS, TASK_LEAD, stem
from wellworn.tasks.items import domain_of, pattern_of

SHARED, MOSTLY_SHARED = 0.6, 0.75
"""Share of their words that two texts must have in common to speak of the same; more where each has a word that the
other has not: "the header table" is not "the totals table"."""
REWORDED = 0.6
"""Texts that are less alike than this, word by word, are worded differently throughout. In texts that are more alike,
the few words that differ are what matters."""

_TOKEN = regex(r"“[^”]*”|\"[^\"]*\"|`[^`]*`|[^\s“”\"`]+")
_CODE = regex(r"\d|[/\\_=@#$%<>|~^{}]|^-|\w[.:]\w|[a-z][A-Z]|\w\(")
_WORD = regex(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_CONDITION = regex(r"\b(?:when|whenever|if|unless|because|since|while|until)\b[^,;:.]*", re.IGNORECASE)
_NOT = regex(
    r"\b(?:not|no|never|nor|avoid\w*|without|cannot|stop|fail\w*|skip\w*|forbidden|wrong|mistake|\w+n['’]t)\b"
    r"(?! (?:more|less|fewer|later|earlier|longer) than)",
    re.IGNORECASE,
)
_ADVISES = regex(r"\b(?:always|must|should|ensure|use|verify|wait|make|prefer|only)\b", re.IGNORECASE)
_ONE_OF = [
    frozenset(map(stem, names.split()))
    for names in """
    enable disable; include exclude omit; increase decrease reduce; open close; add remove; allow deny block
    accept reject; lock unlock; ascending descending; up down; on off; in out; left right; before after; first last
    above below; more less; most least; top bottom; public private; parallel sequential; encode decode; true false
    minimum maximum; push pull; start stop; import export; local remote; manual automatic; required optional
    online offline; newest oldest; earlier later; upper lower; inside outside; new same; north south east west
    monday tuesday wednesday thursday friday saturday sunday; hourly daily weekly monthly yearly
    morning noon afternoon evening night midnight
    january february march april june july august september october november december
    """.replace("\n", ";").split(";")
]
"""Words of which only one can hold at a time."""
_EMPTY = frozenset(map(stem, [*STOP_WORDS, "always", "must", "should", "ever", "instead", "rather", "need", "please"]))
_KEPT = frozenset().union(*_ONE_OF)
_UNIVERSAL = regex(
    rf"\b(always|never) (\w+) (?:(?:the|an?|any|all|every) )?((?:(?!(?:{'|'.join(sorted(STOP_WORDS))})\b)\w+ ?){{1,4}})",
    re.IGNORECASE,
)
"""Always or never, what to do, and to what."""


@dataclass(frozen=True, kw_only=True)
class Advice:
    """What a text says, as far as words show it."""

    content: tuple[str, ...]
    """Stems of the words that carry the topic, in order."""
    arguments: tuple[str, ...]
    against: bool
    unless: bool
    """Whether its condition is denied."""


def advice_of(entry: Entry) -> Advice:
    """What an entry says. A guardrail is against what it names, unless it says what to do."""
    return _read(entry.text, entry.kind == "guardrail")


@lru_cache(maxsize=8192)
def _read(text: str, warns: bool) -> Advice:
    arguments: list[str] = []

    def kept(match: re.Match[str]) -> str:
        token = match.group()
        bare = token.strip(".,;:!?()[]")
        if token[0] not in '“"`' and not _CODE.search(bare):
            return token
        arguments.append(bare)
        return token[-1] if token[-1] in ",;:." else ""

    said = _TOKEN.sub(kept, text)
    found = _CONDITION.search(said)
    condition = found.group() if found and len(_WORD.findall(said.replace(found.group(), ""))) >= 2 else ""
    told = said.replace(condition, "") if condition else said
    denials = len(_NOT.findall(told))
    stems = [stem(word) for word in _WORD.findall(_NOT.sub(" ", said).lower())]
    return Advice(
        content=tuple(word for word in stems if word in _KEPT or word not in _EMPTY),
        arguments=tuple(arguments),
        against=denials % 2 == 1 if denials or _ADVISES.search(told) else warns,
        unless=len(_NOT.findall(condition)) % 2 == 1,
    )


def duplicates(one: Entry, other: Entry, *, near: bool) -> bool:
    """Whether two entries say the same: the same calls under the same conditions or, of prose, the same advice.
    `near` entries (by their vectors) may say it in other words throughout, or one with a few words more."""
    if (one.kind, one.trust, domain_of(one.tags)) != (other.kind, other.trust, domain_of(other.tags)):
        return False
    mine, yours = pattern_of(one), pattern_of(other)
    if mine.key(one.kind) or yours.key(other.kind):
        same = mine.key(one.kind) == yours.key(other.kind) and set(mine.conditions) == set(yours.conditions)
        if not same or one.text.startswith(TASK_LEAD):
            return same
    a, b = advice_of(one), advice_of(other)
    if (a.arguments, a.against, a.unless) != (b.arguments, b.against, b.unless):
        return False
    if a.content == b.content or not near:
        return a.content == b.content
    if sorted(a.content) == sorted(b.content):  # the order is the difference
        return False
    short, long = sorted((a.content, b.content), key=len)
    left = iter(long)
    contained = all(word in left for word in short)
    from difflib import SequenceMatcher

    return contained or SequenceMatcher(None, a.content, b.content, autojunk=False).ratio() < REWORDED


def contradiction(one: Entry, other: Entry) -> str:
    """Why two entries cannot both be right: `outcome` (one says to do what the other says not to), `negation` or
    `exclusive`; empty when they can."""
    mine, yours = pattern_of(one), pattern_of(other)
    if mine.key(one.kind) and yours.key(other.kind):
        same = mine.key(one.kind) == yours.key(other.kind) and set(mine.conditions) == set(yours.conditions)
        return "outcome" if same and one.kind != other.kind else ""
    a, b = advice_of(one), advice_of(other)
    if a.arguments != b.arguments or a.unless != b.unless:
        return ""
    if a.against == b.against:
        return "exclusive" if _one_of(a.content, b.content) else ""
    if _universal(one.text, other.text):
        return "negation"
    left, right = set(a.content), set(b.content)
    shared = len(left & right) / max(1, len(left | right))
    ordered = [word for word in a.content if word in right] == [word for word in b.content if word in left]
    if not ordered or shared < (MOSTLY_SHARED if left - right and right - left else SHARED):
        return ""
    return "outcome" if one.kind != other.kind else "negation"


def _one_of(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether two texts differ in one word, and that is one of a kind of which only one can hold."""
    different = [{a, b} for a, b in zip(one, other, strict=False) if a != b]
    return len(one) == len(other) and len(different) == 1 and any(different[0] <= words for words in _ONE_OF)


def _universal(one: str, other: str) -> bool:
    """Whether one says always and the other never to do the same to things of one sort: "always cache API responses",
    "never cache authentication responses"."""
    found = [match for text in (one, other) if (match := _UNIVERSAL.search(text))]
    if len(found) < 2 or found[0][1].lower() == found[1][1].lower():
        return False
    verbs, things = ([stem(match[part].split()[-1].lower()) for match in found] for part in (2, 3))
    return verbs[0] == verbs[1] and things[0] == things[1]
