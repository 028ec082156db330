"""How two pieces of advice compare: they say the same, contradict each other, or differ.

Vectors see the topic and not the difference that matters: "always retry" and "never retry" have nearly the same
vector, and so has a call with another argument. So the words decide: advice is the same only if its arguments
(numbers, quoted strings, paths, commands, identifiers) and its polarity are equal, and contradicts if it speaks of the
same with the opposite polarity. Polarity is the parity of negations and of words that have an opposite, so "never
disable it" says what "always enable it" says. Knows English; other languages are compared by words and vectors alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache

from wellworn.core.values import Entry
from wellworn.ingest.terms import STOP_WORDS, TASK_LEAD, stem
from wellworn.tasks.items import domain_of, pattern_of

SHARED, MOSTLY_SHARED = 0.6, 0.75
"""Share of their content words that two texts must have in common to speak of the same; more where each has a word
that the other has not: "the header table" is not "the totals table"."""
REWORDED = 0.6
"""Texts that are less alike than this, word by word, are worded differently throughout. In texts that are more alike,
the few words that differ are what matters."""

_TOKEN = re.compile(r"“[^”]*”|\"[^\"]*\"|`[^`]*`|[^\s“”\"`]+")
_CODE = re.compile(r"\d|[/\\_=@#$%<>|~^{}]|^-|\w[.:]\w|[a-z][A-Z]|\w\(")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_CONDITION = re.compile(r"\b(?:when|whenever|if|unless|because|since|while|until)\b[^,;:.]*", re.IGNORECASE)
_WEIGHING = re.compile(r"\b(?:instead|rather|than|over|before|after)\b", re.IGNORECASE)
_LIMIT = re.compile(r"\bno(?:t|) (?:more|less|fewer|later|earlier|longer) than\b", re.IGNORECASE)


_stem = lru_cache(maxsize=20_000)(stem)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NEGATIONS = _words(
    "not no never nor avoid avoids avoiding without cannot stop fail fails failed failing wrong break breaks broke "
    "forbid forbidden refuse refuses skip skips skipping unnecessary needless useless pointless harmful mistake waste "
    "lose loses lost corrupt corrupts corrupted damage damages damaged"
)
_ADVISING = _words("always must should ensure check use verify confirm wait first make prefer require requires only")
_EMPTY = frozenset(map(stem, STOP_WORDS | _words("always must should ever instead rather first need please get got")))
_OPPOSITES = {
    stem(opposite): stem(word)
    for word, opposite in (
        pair.split("/")
        for pair in _words(
            "enable/disable include/exclude include/omit increase/decrease increase/reduce open/close add/remove "
            "allow/deny allow/block accept/reject ascending/descending lock/unlock up/down on/off most/least "
            "before/after public/private parallel/sequential encode/decode true/false new/same minimum/maximum in/out "
            "left/right push/pull upper/lower first/last top/bottom above/below earlier/later more/less start/stop "
            "import/export local/remote manual/automatic required/optional inside/outside online/offline newest/oldest"
        )
    )
}
_EXCLUSIVE = [
    frozenset(map(stem, names.split()))
    for names in (
        "monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays "
        "saturdays sundays",
        "january february march april june july august september october november december",
        "morning noon afternoon evening night midnight",
        "daily weekly monthly yearly hourly",
        "north south east west",
    )
]
"""Words of which only one can hold at a time."""
_UNIVERSAL = re.compile(
    rf"\b(always|never) (\w+) (?:(?:the|an?|any|all|every) )?((?:(?!(?:{'|'.join(sorted(STOP_WORDS))})\b)\w+ ?){{1,4}})",
    re.IGNORECASE,
)
"""Always or never, what to do, and to what."""


@dataclass(frozen=True, kw_only=True)
class Advice:
    """What a text says, as far as words show it."""

    content: tuple[str, ...]
    """Stems of the words that carry the topic, in order, opposites as one word."""
    arguments: tuple[str, ...]
    names: frozenset[str]
    """Capitalised words within a sentence."""
    against: bool
    turned: bool
    """Whether an odd number of opposites made it so."""
    unless: bool
    """Whether its condition is negated."""
    weighs: bool
    """Whether the order of its words matters, as around "before" and "instead of"."""


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
    negations, turned = _negations(told), _turned(told)
    advises = negations > 0 or not _ADVISING.isdisjoint(told.lower().split())
    return Advice(
        content=_content(said),
        arguments=tuple(arguments),
        names=frozenset(re.findall(r"(?<=[a-z,] )[A-Z]\w+", said)),
        against=(negations % 2 == 1 if advises else warns) != turned,
        turned=turned,
        unless=_negations(condition) % 2 == 1,
        weighs=_WEIGHING.search(text) is not None,
    )


def _negations(text: str) -> int:
    words = _WORD.findall(text.lower())
    contracted = sum(1 for word in words if word.replace("’", "'").endswith("n't"))
    return sum(word in _NEGATIONS for word in words) + contracted - len(_LIMIT.findall(text))


def _turned(text: str) -> bool:
    return sum(_stem(word) in _OPPOSITES for word in _WORD.findall(text.lower())) % 2 == 1


def _content(text: str) -> tuple[str, ...]:
    return tuple(word for word in map(_base, _WORD.findall(text.lower())) if word)


@lru_cache(maxsize=20_000)
def _base(word: str) -> str:
    """The stem of a word that carries the topic, one for both of two opposites; empty for any other word."""
    if word in _NEGATIONS or word.replace("’", "'").endswith("n't"):
        return ""
    root = _stem(word)
    root = _OPPOSITES.get(root, root)
    return "" if root in _EMPTY else root


def duplicates(one: Entry, other: Entry, *, near: bool) -> bool:
    """Whether two entries say the same: the same calls under the same conditions or, of prose, the same advice."""
    alike = (one.kind, one.trust, domain_of(one.tags)) == (other.kind, other.trust, domain_of(other.tags))
    mine, yours = pattern_of(one), pattern_of(other)
    if alike and (mine.calls or mine.failed or yours.calls or yours.failed):
        same = mine.key(one.kind) == yours.key(other.kind) and set(mine.conditions) == set(yours.conditions)
        return same and (one.text.startswith(TASK_LEAD) or same_advice(advice_of(one), advice_of(other), near=near))
    return alike and same_advice(advice_of(one), advice_of(other), near=near)


def same_advice(a: Advice, b: Advice, *, near: bool) -> bool:
    """Whether two texts say the same: the same words but for empty ones or, where their vectors are `near`, one with
    a few words more or in other words throughout."""
    if (a.arguments, a.against, a.unless) != (b.arguments, b.against, b.unless):
        return False
    if a.content == b.content or not near:
        return a.content == b.content
    if sorted(a.content) == sorted(b.content) or (a.names - b.names and b.names - a.names):
        return False
    short, long = sorted((a.content, b.content), key=len)
    left = iter(long)
    contained = all(word in left for word in short)
    return contained or SequenceMatcher(None, a.content, b.content, autojunk=False).ratio() < REWORDED


def contradiction(one: Entry, other: Entry) -> str:
    """Why two entries cannot both be right: `outcome`, `negation` or `exclusive`; empty when they can.

    Where both have calls as data, these decide: to make the same calls, or not, under the same conditions.
    """
    mine, yours = pattern_of(one), pattern_of(other)
    if mine.key(one.kind) and yours.key(other.kind):
        same = mine.key(one.kind) == yours.key(other.kind) and set(mine.conditions) == set(yours.conditions)
        return "outcome" if same and one.kind != other.kind else ""
    a, b = advice_of(one), advice_of(other)
    if a.arguments != b.arguments or a.unless != b.unless:
        return ""
    if _universal(one.text, other.text):
        return "negation"
    left, right = set(a.content), set(b.content)
    if a.against == b.against and _only_one_holds(a.content, b.content):
        return "exclusive"
    shared = len(left & right) / max(1, len(left | right))
    ordered = [word for word in a.content if word in right] == [word for word in b.content if word in left]
    enough = shared >= (MOSTLY_SHARED if left - right and right - left else SHARED)
    if not enough or a.against == b.against or (a.weighs and not ordered):
        return ""
    if a.turned != b.turned:
        return "exclusive"
    return "outcome" if one.kind != other.kind else "negation"


def _universal(one: str, other: str) -> bool:
    """Whether one says always and the other never to do the same to things of one sort: "always cache API responses",
    "never cache authentication responses"."""
    found = [match for text in (one, other) if (match := _UNIVERSAL.search(text))]
    if len(found) < 2 or found[0][1].lower() == found[1][1].lower():
        return False
    verbs, things = ([_stem(match[part].split()[-1].lower()) for match in found] for part in (2, 3))
    return verbs[0] == verbs[1] and things[0] == things[1]


def _only_one_holds(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two texts differ in one word, and that is one of a kind of which only one can hold."""
    if len(one) != len(other):
        return False
    different = [(a, b) for a, b in zip(one, other, strict=True) if a != b]
    return len(different) == 1 and any(set(different[0]) <= words for words in _EXCLUSIVE)
