"""What a person's past outcomes say about entries: similar questions, and habits.

    repeated(q, e) = max s(q, p)² over past p for which e was cited  −  max s(q, p)² over past p that showed it in vain
    in_vain(q, e)  = sum of s(q, p)² over past p after which nothing was cited, unless e helped; s ≥ 0.8
    s(q, p)        = |q ∩ p| / √(|q| · |p|) over the terms of both; below 0.5 it counts as 0

A habit is what cited entries have in common: how much more often entries with a value (a kind, a source, a speaker, a
tag) were cited than what was shown beside them.

    habit(v) = Σ (y - ȳ) / (n + 5)      over the n shown entries with v; y = 1 for cited ones, ȳ the recall's mean

Terms, values and entries are numbers here, there is no text. It is kept in memory only and read from the log when a
process starts, so what is forgotten there is forgotten here. Nothing of it is shared with other people.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache

import msgspec

from wellworn.core.cache import text_cache
from wellworn.core.hashes import hash64, signed64
from wellworn.core.locks import fork_lock
from wellworn.core.values import KINDS, Entry
from wellworn.ingest.terms import name_hash

MOST_OUTCOMES = 1000
"""A person's last outcomes that are read from the log."""
LEAST_ALIKE = 0.25
"""The square of the similarity from which on two questions count as similar."""
SAME = 0.64
"""… from which on one counts as the other asked again."""
MOST_IN_VAIN = 2.0
DOUBT = 5.0
"""A habit counts as if it had been seen so many times without effect before."""
KEEP = 1.0 - 1.0 / 200
"""Each further time, older ones fade a little."""
SHARED = ("kind", "source", "speaker")
"""With its tags, what makes up an entry's `habit`."""

Attributes = dict[str, int]
"""An entry as its columns have it: no, kind, source, speaker, and tags as bits."""


@text_cache(4096)
def source_code(source: str) -> int:
    return signed64(hash64(source))


@text_cache(4096)
def tag_bits(tags: str) -> int:
    """Tags (a JSON list) as bits of a signed 64-bit number. Two tags in a hundred share a bit with a given one."""
    return sum({1 << hash64(tag) % 63 for tag in msgspec.json.decode(tags)}) if len(tags) > 2 else 0


def attributes_of(no: int, entry: Entry) -> Attributes:
    return {
        "no": no,
        "kind": KINDS.index(entry.kind),
        "source": source_code(entry.source),
        "speaker": name_hash(entry.speaker) if entry.speaker else 0,
        "tags": tag_bits(msgspec.json.encode(entry.tags).decode()),
    }


class PersonPast:
    """Past questions of one person by their terms, and their habits. Only grows; safe between threads."""

    def __init__(self) -> None:
        self._places: dict[int, list[int]] = {}
        self._past: list[tuple[set[int], list[int], list[int]]] = []
        self._habits: dict[tuple[str, int], tuple[float, float]] = {}
        self._lock = fork_lock()

    def __len__(self) -> int:
        return len(self._past)

    def add(
        self, terms: Iterable[int], cited: Iterable[int], shown: Sequence[int], entries: Iterable[Attributes] = ()
    ) -> None:
        """A past question, the rows that were cited, all that were shown, and what these are like."""
        distinct, helped = set(terms), set(cited)
        passed = [no for no in shown if no not in helped]
        with self._lock:
            if 0 < len(helped) <= len(shown) / 2:
                for entry in entries:
                    self._note(entry, (entry["no"] in helped) - len(helped) / len(shown))
            if not distinct:  # its words were forgotten
                return
            place = len(self._past)
            self._past.append((distinct, [*helped], passed))
            for term in distinct:
                self._places.setdefault(term, []).append(place)

    def _note(self, entry: Attributes, surprise: float) -> None:
        for key in _keys(entry["tags"], *(entry[name] for name in SHARED)):
            n, total = self._habits.get(key, (0.0, 0.0))
            self._habits[key] = KEEP * n + 1.0, KEEP * total + surprise

    def values(self, terms: Sequence[int]) -> tuple[dict[int, float], dict[int, float]]:
        """`repeated` and `in_vain` of every row that a similar question showed, by row number."""
        asked = set(terms)
        helped: dict[int, float] = {}
        passed: dict[int, float] = {}
        vain: dict[int, float] = {}
        # s² = c²/nm ≤ c/n for c shared terms of n asked, so a similar question shares a quarter of them or more, and
        # at least one of all but the most frequent.
        lists = sorted((self._places.get(term, ()) for term in asked), key=len)
        needed = math.ceil(LEAST_ALIKE * len(asked))
        for place in set().union(*lists[: len(lists) - needed + 1]):
            words, cited, missed = self._past[place]
            count = len(words & asked)
            alike = count * count / (len(words) * len(asked))
            if alike >= LEAST_ALIKE:
                for best, nos in ((helped, cited), (passed, missed)):
                    for no in nos:
                        best[no] = max(alike, best.get(no, 0.0))
            if alike >= SAME and not cited:
                for no in missed:
                    vain[no] = min(MOST_IN_VAIN, alike + vain.get(no, 0.0))
        repeated = {no: helped.get(no, 0.0) - passed.get(no, 0.0) for no in helped | passed}
        return repeated, {no: value for no, value in vain.items() if no not in helped}

    def habits(self, rows: Sequence[tuple[int, ...]]) -> list[float] | None:
        """The feature `habit` of rows with these tags, kinds, sources and speakers; None before there are any."""
        if not self._habits:
            return None
        of = {one: sum(map(self._habit, _keys(*one))) for one in {*rows}}
        return [of[one] for one in rows]

    def _habit(self, key: tuple[str, int]) -> float:
        n, total = self._habits.get(key, (0.0, 0.0))
        return total / (n + DOUBT)


def _keys(tags: int, *shared: int) -> list[tuple[str, int]]:
    return [*(("tag", bit) for bit in _bits(tags)), *zip(SHARED, shared, strict=True)]


@lru_cache(maxsize=4096)
def _bits(mask: int) -> tuple[int, ...]:
    return tuple(bit for bit in range(63) if mask >> bit & 1)
