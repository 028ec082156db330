"""Compare two memories without a language model: the same, more of the same, a change, or unrelated.

Both are read as the speaker said them ("Ada lives in Oslo" is "I live in Oslo"). Equal words are the same; words that
go on where the others end are more of it; whether one replaces the other is the judgement of `ingest.replaces`, which
also judges turns.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from wellworn.core.lazy import regex
from wellworn.core.wellformed import fold
from wellworn.ingest.replaces import SURE, probability, says_more
from wellworn.reflection import Candidate

Relation = Literal["same", "adds", "supersedes", "unrelated"]

_ATTRIBUTED = regex(r"^[^\W\d_][\w .'’-]{0,60}: (?=\S)")
_DATE_BEHIND = regex(r" \(\d{4}[-\d]*(?: to [-\d]+)?\)")
_WORD = regex(r"[^\W_]+(?:[.,:@/'-][^\W_]+)*[+#]*|[^\w\s.,;:!?'\"()。！？]+")
_SKIPPED = frozenset("a an the now currently just recently already still please also always then".split())  # noqa: SIM905
_GOES_ON = frozenset(
    """
    in at to for on with without from as by of into over under near before after during until since and or called named
    who which that because every each so when where while
    """.split()  # noqa: SIM905
)
"""After these words a longer text says more of the same: "in Berlin with a cat", but not "a dog allergy"."""
_RESTRICTS = frozenset("only except hardly rarely unless if".split())  # noqa: SIM905
_FIRST_PERSON = {"is": "am", "has": "have", "does": "do", "doesn't": "don't", "hasn't": "haven't", "isn't": "am not"}


def compare(old: str, new: str, *, speaker: str | None = None) -> Relation:
    """How `new`, which was said later, relates to `old`. `speaker` is who said both, if that is known."""
    before, after = _as_said(old, speaker), _as_said(new, speaker)
    first, second = _words(before), _words(after)
    if first == second:
        return "same"
    if _is_more(second, first):
        return "adds"
    if _is_more(first, second):
        return "same"
    ends = probability(before, after, stated=True) >= SURE and not says_more(before, after)
    return "supersedes" if ends else "unrelated"


def _is_more(longer: Sequence[str], shorter: Sequence[str]) -> bool:
    size = len(shorter)
    begins = 1 < size < len(longer) and longer[:size] == shorter
    return begins and longer[size] in _GOES_ON and _RESTRICTS.isdisjoint(longer)


def _as_said(text: str, speaker: str | None) -> str:
    """A memory in the first person, without what was put before and behind it."""
    text = _DATE_BEHIND.sub("", _ATTRIBUTED.sub("", text)).replace("’", "'")
    if not speaker:
        return text
    name = rf"\b{re.escape(speaker)}"
    text = re.sub(rf"{name}'s\b", "my", text, flags=re.IGNORECASE)
    verb = rf"{name}((?:\s+(?:no longer|never|always|also|just|now|still|[a-z]+ly))*)\s+([a-z]+(?:'t)?)\b"
    return re.sub(verb, lambda found: f"I{found[1]} {_first_form(found[2])}", text, flags=re.IGNORECASE)


def _first_form(verb: str) -> str:
    """The form of a verb after "I", from the one after a name."""
    if verb in _FIRST_PERSON or not verb.endswith("s") or verb.endswith("ss") or verb == "was":
        return _FIRST_PERSON.get(verb, verb)
    if verb.endswith("ies"):
        return f"{verb[:-3]}y"
    return verb[:-2] if verb.endswith(("shes", "ches", "xes", "zes", "oes", "sses")) else verb[:-1]


def _words(text: str) -> list[str]:
    """The words for comparing: in small letters, without accents and fillers."""
    plain = fold(text).replace("can't", "can not").replace("cannot", "can not").replace("n't", " not")
    found = _WORD.findall(plain)
    return [word for word in found if word not in _SKIPPED] or found


# -- repeats within one session ----------------------------------------------------------------------------------------
def group_same(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates without repeats, in the order of their first mention.

    Those that say the same, or one more than the other, become one with the turns of both, the fuller text and the
    higher confidence. Changes stay apart: the comparison with what is stored judges them.
    """
    kept: list[Candidate] = []
    for one in candidates:
        for place, before in enumerate(kept):
            kind = _relation(before, one)
            if kind in ("same", "adds") and "supersedes" not in (_relation(before, each) for each in kept[place + 1 :]):
                kept[place] = _united(one, before) if kind == "adds" else _united(before, one)
                break
        else:
            kept.append(one)
    return kept


def _relation(old: Candidate, new: Candidate) -> Relation:
    if not may_be_one(old.speaker, new.speaker):
        return "unrelated"
    return compare(old.summary, new.summary, speaker=new.speaker or old.speaker)


def may_be_one(one: str | None, other: str | None) -> bool:
    """Whether two speakers may be the same person: unknown, equal, or `Ada` and `Ada Lovelace`."""
    first, second = (fold(name or "").split() for name in (one, other))
    return first[: len(second)] == second[: len(first)]


def _united(fuller: Candidate, other: Candidate) -> Candidate:
    return replace(
        fuller,
        turns=tuple(sorted({*fuller.turns, *other.turns})),
        confidence=max(fuller.confidence, other.confidence),
        speaker=fuller.speaker or other.speaker,
        valid_from=fuller.valid_from or other.valid_from,
        valid_to=fuller.valid_to or other.valid_to,
    )
