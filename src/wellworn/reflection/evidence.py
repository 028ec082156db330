"""Check a model's memory against the turns it names, and reject it if they do not say it.

Words are compared by stem. A summary may paraphrase, so a share of its words suffices. Names and numbers may not be
invented, so each must stand somewhere in what was said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from wellworn.core.lazy import regex
from wellworn.core.values import Turn
from wellworn.ingest.terms import terms, words
from wellworn.reflection.values import Candidate

MIN_SHARE = 0.3
"""Of a summary's words that must stand in the turns it names."""
_SAID_OF_ANYONE = frozenset({"user", "users", "assistant", "speaker", "person", "they", "their", "he", "she"})
_MONTHS = "january february march april may june july august september october november december".split()  # noqa: SIM905
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()  # noqa: SIM905
_CALENDAR = frozenset({*_MONTHS, *(month[:3] for month in _MONTHS), *_WEEKDAYS})
_DATE = regex(
    rf"\b\d{{4}}-\d{{2}}-\d{{2}}\b|\b\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?(?:{'|'.join(_MONTHS)})(?:,?\s+\d{{4}})?"
    rf"|\b(?:{'|'.join(_MONTHS)})\s+\d{{1,2}}(?:st|nd|rd|th)?\b(?:,?\s+\d{{4}})?|\b(?:{'|'.join(_MONTHS)})\s+\d{{4}}",
    re.IGNORECASE,
)
_NUMBER = regex(r"\d+(?:[.,:]\d+)*")
_NAME = regex(r"(?<![.!?]\s)(?<!^)\b[A-Z][\w'’-]*")
_TO_TWENTY = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen twenty
"""
_SPELLED = {word: str(value) for value, word in enumerate(_TO_TWENTY.split())}
_SPELLED |= {"thirty": "30", "forty": "40", "fifty": "50", "hundred": "100", "thousand": "1000", "dozen": "12"}
_SPELLED |= {"once": "1", "twice": "2"}


def rejection(candidate: Candidate, turns: Sequence[Turn], around: Sequence[Turn]) -> str | None:
    """Why a memory is not believed, or None when it is. `turns` are those it names, `around` all that was read."""
    about = {candidate.speaker or "", *(turn.speaker or turn.role for turn in around)}
    own = _content(candidate.summary) - _terms_of(about) - _generic()
    if not own:
        return "says nothing"
    said = _terms_of(turn.text for turn in turns)
    if len(own & said) < MIN_SHARE * len(own):
        return "not in the evidence"
    everything = [turn.text for turn in around]
    if not _numbers(candidate.summary) <= _all_numbers(everything, around):
        return "invented number"
    if not _names(candidate.summary) <= _terms_of([*everything, *about]) | _generic():
        return "invented name"
    return None


def evidence_of(turns: Iterable[Turn]) -> str:
    """The turns verbatim, one below the other."""
    return "\n".join(f"{turn.speaker or turn.role}: {turn.text}" for turn in turns)


def _content(text: str) -> set[int]:
    """Terms of a text without its dates, which a summary may have worked out."""
    return set(terms(_DATE.sub(" ", text))) - _terms_of(_CALENDAR)


def _terms_of(texts: Iterable[str]) -> set[int]:
    return {term for text in texts for term in terms(text)}


@lru_cache(maxsize=1)
def _generic() -> frozenset[int]:
    return frozenset(_terms_of(_SAID_OF_ANYONE | _CALENDAR))


def _numbers(text: str) -> set[str]:
    return {_plain(number) for number in _NUMBER.findall(_DATE.sub(" ", text))}


def _plain(number: str) -> str:
    """1,200 and 1200 are the same; so are 3:00 and 3."""
    return re.sub(r"(?:[.:]0+)?$", "", number.replace(",", "")) or number


def _all_numbers(texts: Iterable[str], turns: Iterable[Turn]) -> set[str]:
    """Every number said, in digits or spelled, with those of the turns' own dates."""
    found: set[str] = set()
    for text in texts:
        numbers = [_plain(number) for number in _NUMBER.findall(text)]
        found.update(numbers)
        found.update(part for number in numbers for part in re.split(r"[.:]", number))
        found.update(_SPELLED[word] for word in words(text) if word in _SPELLED)
    for turn in turns:
        found.update({str(turn.at.year), str(turn.at.month), str(turn.at.day), str(turn.at.year + 1)})
    return found


def _names(text: str) -> set[int]:
    """Terms of the capitalised words inside a summary's sentences."""
    return {term for name in _NAME.findall(_DATE.sub(" ", text)) for term in terms(name)}
