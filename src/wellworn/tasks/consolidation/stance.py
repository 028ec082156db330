"""What a piece of advice says for or against: the part of a text that vectors do not see.

"Always retry" and "never retry" have nearly the same vector, "wait 2 s" and "wait 10 s" too, and "A instead of B" and
"B instead of A" the very same. So a text is read for its direction (denials counted, two of them cancel), for words of
opposed pairs, for amounts, for other numbers, and for which side of "instead of" and of "before" things stand on. What
is denied in a condition ("when the click has no effect") denies no advice. Two entries are one only when their stances
are equal; they contradict each other when they speak of the same and one of these differs.
Rules over English words: advice in another language has a plain stance, and is then compared by its vector alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from wellworn.core.values import Entry
from wellworn.ingest.terms import STOP_WORDS, stem

SHARED_TERMS = 0.6
"""Terms that two texts must share, of all they have (Jaccard), to speak of the same."""
SHARED_FOR_AMOUNTS = 0.75
"""The same, where only an amount differs, or where each has a word that the other has not: other steps often have other
amounts, and "the header table" is not "the totals table"."""

_TOKEN = re.compile(r"\d+(?:\.\d+)?|[a-z]+(?:['’][a-z]+)?")
_DIGIT = re.compile(r"\d")
_DENIALS = frozenset(
    """
    not no never avoid avoids avoiding without cannot stop fail fails failed failing wrong break breaks broke forbid
    forbidden refuse refuses skip skips skipping unless unnecessary needless useless pointless harmful mistake lose
    loses lost corrupt corrupts corrupted damage damages damaged
    """.split()  # noqa: SIM905  a list of words reads better than a list of strings
)
_ADVICE = frozenset(
    """
    always must should ensure check use verify confirm wait include first before make validate prefer send read require
    requires only keep set call
    """.split()  # noqa: SIM905  as above
)
_PAIRS = (
    ("enable activate", "disable deactivate"),
    ("include", "exclude omit"),
    ("increase raise extend", "decrease reduce lower shorten"),
    ("open", "close"),
    ("add", "remove"),
    ("allow permit", "deny block"),
    ("accept", "reject decline"),
    ("first", "last"),
    ("start", "end"),
    ("synchronous", "asynchronous"),
    ("sync", "async"),
    ("parallel", "sequential"),
    ("shorter", "longer"),
    ("fewer", "more"),
    ("small", "large"),
    ("smaller", "larger"),
    ("ascending", "descending"),
    ("lock", "unlock"),
    ("encode", "decode"),
    ("public", "private"),
    ("push", "pull"),
    ("minimum", "maximum"),
    ("true", "false"),
    ("on", "off"),
    ("immediately", "later"),
    ("local", "remote"),
    ("least", "most"),
    ("new", "same"),
    ("left", "right"),
    ("top", "bottom"),
)
"""Opposed words, those that say the same side by side."""
_BOTH_SIDES = frozenset({"on", "end", "lower", "least", "most", "new", "same", "left", "right", "top", "bottom"})
"""Too common in other senses: they count only where the other word of the pair is in the other text."""
_UNITS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), "s"),
    "ms": "ms",
    "milliseconds": "ms",
    **dict.fromkeys(("min", "mins", "minute", "minutes"), "min"),
    **dict.fromkeys(("h", "hour", "hours"), "h"),
    **dict.fromkeys(("day", "days"), "day"),
    **dict.fromkeys(("time", "times", "retry", "retries", "attempt", "attempts", "tries"), "times"),
    **dict.fromkeys(("item", "items", "page", "pages", "row", "rows", "record", "records", "results"), "items"),
    **dict.fromkeys(("kb", "mb", "gb", "byte", "bytes", "token", "tokens", "percent"), "size"),
}
_INSTEAD = re.compile(r"\b(?:instead of|rather than|in place of)\b|,? not (?!only\b)")
_OVER = re.compile(r"\bover\b")
_BEFORE = re.compile(r"\b(?:before|after)\b")
_LIMIT = re.compile(r"\bno(?:t|) (?:more|less|fewer|later|earlier|longer) than\b")
"""Says how much, and denies nothing."""
_GIVEN = frozenset({"when", "whenever", "if", "unless", "because", "since", "while", "until"})
_CONDITION = re.compile(rf"\b(?:{'|'.join(sorted(_GIVEN))})\b[^,;:.]*")
_PHRASES = (
    (" out", re.compile(r"\b(?:leave|leaving|left) (?P<what>[^,;:.]{1,60}?) out\b(?: of)?"), r"exclude \g<what>"),
    (" on", re.compile(r"\b(?:turn|switch)(?:s|es|ed|ing)? on\b"), "enable"),
    (" off", re.compile(r"\b(?:turn|switch)(?:s|es|ed|ing)? off\b"), "disable"),
)
"""Two words for what one word says: how they end, to be quick, what they are, and that word."""


def _forms(word: str) -> Iterator[str]:
    """A verb or adjective as it may stand in a text: looking these up is ten times quicker than stemming every word."""
    stem_ = word.removesuffix("e")
    yield from (word, f"{word}s", f"{word}es", f"{word}ed", f"{word}d", f"{word}ing", f"{stem_}ing")


_SIDE = {
    form: (number, side)
    for number, pair in enumerate(_PAIRS)
    for side, words in enumerate(pair)
    for word in words.split()
    for form in (_forms(word) if len(word) > 3 else (word,))
}
"""Word of a pair, in any form → the pair's number, and which side of it."""
_COMMON = frozenset(_SIDE[word] for word in _BOTH_SIDES)


@dataclass(frozen=True, kw_only=True)
class Stance:
    """How a text stands to what it speaks of."""

    against: bool
    sides: frozenset[tuple[int, int]]
    """Words of opposed pairs that it has: the pair's number, and which side of it."""
    amounts: frozenset[tuple[str, str]]
    """(unit, number)."""
    numbers: frozenset[str]
    """Numbers that are names: status codes, ports, versions."""
    order: int
    """Which of two things that are weighed against each other comes first: -1, 1, or 0 where none are."""
    turn: int
    """Which of two things is done first, of those that "before" or "after" stands between; as above."""
    unless: bool
    """Whether its condition is one that must not hold."""

    @property
    def key(self) -> int:
        """Equal, within one process, for texts that take the same side, whatever their words."""
        return hash(
            (self.against, self.sides - _COMMON, self.amounts, self.numbers, self.order, self.turn, self.unless)
        )


def stance_of(entry: Entry) -> Stance:
    """The stance of a strategy or guardrail. A guardrail names what went wrong, unless it says what to do."""
    return read(entry.text, warns=entry.kind == "guardrail")


def read(text: str, *, warns: bool = False) -> Stance:
    """The stance of a text; `warns`: one that is against what it names, if it says neither way."""
    lowered = _plain(text)
    words = _TOKEN.findall(lowered)
    advice, condition = (lowered, "") if _GIVEN.isdisjoint(words) else _advice(lowered)
    told = words if advice is lowered else _TOKEN.findall(advice)
    denials = _denials(advice, told)
    advises = denials > 0 or not _ADVICE.isdisjoint(told)
    amounts, numbers = _quantities(words) if _DIGIT.search(lowered) else ([], [])
    return Stance(
        against=denials % 2 == 1 if advises else warns,
        sides=frozenset([_SIDE[word] for word in words if word in _SIDE]),
        amounts=frozenset(amounts),
        numbers=frozenset(numbers),
        order=_order(lowered),
        turn=_turn(advice),
        unless=bool(condition) and _denials(condition, _TOKEN.findall(condition)) % 2 == 1,
    )


def _plain(text: str) -> str:
    """In small letters, one word for what one word can say."""
    lowered = text.lower().replace("’", "'")
    for end, phrase, word in _PHRASES:
        if end in lowered:
            lowered = phrase.sub(word, lowered)
    return lowered


def _advice(text: str) -> tuple[str, str]:
    """What a text says to do, and its condition; all of it is advice where the two cannot be told apart."""
    found = _CONDITION.search(text)
    if found is None:
        return text, ""
    rest = text[: found.start()] + text[found.end() :]
    return (rest, found.group()) if len(_TOKEN.findall(rest)) >= 2 else (text, "")


def _denials(text: str, words: list[str]) -> int:
    limits = len(_LIMIT.findall(text)) if "than" in words else 0
    return sum(map(_DENIALS.__contains__, words)) + text.count("n't") - limits


_EMPTY = frozenset(
    stem(word)
    for word in (*STOP_WORDS, "always", "must", "should", "ever", "instead", "rather", "over", "before", "after")
)


def subject_of(text: str) -> frozenset[str]:
    """Stems of what a text speaks of: no denials, no words of opposed pairs, no numbers, no empty words."""
    return _subject(_TOKEN.findall(_plain(text)))


def _subject(words: list[str]) -> frozenset[str]:
    told = [word for word in words if not word[0].isdigit() and word not in _DENIALS and word not in _SIDE]
    return frozenset(stem(word) for word in told if not word.endswith("n't")) - _EMPTY


def _quantities(words: list[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """Numbers with a unit after them, and the others."""
    amounts: list[tuple[str, str]] = []
    numbers: list[str] = []
    for place, word in enumerate(words):
        if not word[0].isdigit():
            continue
        after = words[place + 1] if place + 1 < len(words) else ""
        if after in _UNITS:
            amounts.append((_UNITS[after], word))
        else:
            numbers.append(word)
    return amounts, numbers


def _order(text: str) -> int:
    """Which side of "instead of" things stand on."""
    found = _INSTEAD.search(text) if any(word in text for word in (" of", "than", " not ")) else None
    if found is None and "prefer" in text:
        found = _OVER.search(text)
    return 0 if found is None else _first(text[: found.start()], text[found.end() :])


def _turn(text: str) -> int:
    """Which side of "before" things stand on; of "after", the other one."""
    found = _BEFORE.search(text) if "before" in text or "after" in text else None
    if found is None:
        return 0
    return _first(text[: found.start()], text[found.end() :]) * (1 if found.group() == "before" else -1)


def _first(before: str, after: str) -> int:
    """Whether the first word that only one of two parts has, in the order of the alphabet, stands in the first one."""
    one, other = (_subject(_TOKEN.findall(part)) for part in (before, after))
    apart = one ^ other
    return 0 if not apart else 1 if min(apart) in one else -1


def contradiction(a: Entry, b: Entry) -> str:
    """Why two entries cannot both be right: `outcome`, `negation` or `exclusive`; empty when they can.

    An even number of turned signs cancels: "never disable it" says what "always enable it" says.
    """
    one, other = stance_of(a), stance_of(b)
    if one.numbers != other.numbers or one.unless != other.unless:
        return ""  # of different codes, ports or versions, or for different cases
    subject, others = subject_of(a.text), subject_of(b.text)
    shared = len(subject & others) / max(1, len(subject | others))
    if shared < (SHARED_FOR_AMOUNTS if subject - others and others - subject else SHARED_TERMS):
        return ""
    turned = _turned(one, other) + (one.turn * other.turn == -1)
    if (one.against != other.against) != (turned % 2 == 1):
        if turned:
            return "exclusive"
        return "outcome" if a.kind != b.kind else "negation"
    if turned or one.against or other.against:
        return ""
    if one.order * other.order == -1 and subject == others:
        return "exclusive"
    return "exclusive" if shared >= SHARED_FOR_AMOUNTS and _other_amount(one, other) else ""


def reordered(a: str, b: str) -> bool:
    """Whether two texts have the same words in another order: "day, month, year" is not "year, month, day"."""
    one, other = _TOKEN.findall(a.lower()), _TOKEN.findall(b.lower())
    return one != other and sorted(one) == sorted(other)


def _turned(one: Stance, other: Stance) -> int:
    """Pairs of opposed words of which each text has another one."""
    only, others = one.sides - other.sides, other.sides - one.sides
    return sum((number, 1 - side) in others for number, side in only)


def _other_amount(one: Stance, other: Stance) -> bool:
    """The same units, each once, and another number with one of them."""
    units, others = dict(one.amounts), dict(other.amounts)
    alone = len(units) == len(one.amounts) and len(others) == len(other.amounts)
    return bool(units) and alone and units.keys() == others.keys() and units != others
