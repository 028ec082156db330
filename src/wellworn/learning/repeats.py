"""Repeated questions: which entries helped with a similar question of the same person, and which were passed over.

    repeated(q, e) = max s(q, p)² over past p for which e was cited  −  max s(q, p)² over past p that showed it in vain
    s(q, p)        = |q ∩ p| / √(|q| · |p|) over the terms of both; below 0.5 it counts as 0

Terms and entries are numbers here, there is no text. It is kept in memory only and read from the log when a process
starts, so what is forgotten there is forgotten here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from wellworn.core.locks import ForkLock

MOST_RECALLS = 1000
"""A person's last recalls that are read from the log."""
LEAST_ALIKE = 0.25
"""The square of the similarity from which on two questions count as similar."""


class RepeatedQuestions:
    """Past questions of one person, by their terms. Only grows; safe between threads."""

    def __init__(self) -> None:
        self._places: dict[int, list[int]] = {}
        self._past: list[tuple[set[int], list[int], list[int]]] = []
        self._lock = ForkLock()

    def __len__(self) -> int:
        return len(self._past)

    def add(self, terms: Iterable[int], cited: Iterable[int], shown: Iterable[int]) -> None:
        """A past question, the rows that were cited, and all that were shown."""
        distinct, helped = set(terms), set(cited)
        if not distinct:  # its words were forgotten
            return
        passed = [no for no in shown if no not in helped]
        with self._lock:
            place = len(self._past)
            self._past.append((distinct, [*helped], passed))
            for term in distinct:
                self._places.setdefault(term, []).append(place)

    def values(self, terms: Sequence[int]) -> dict[int, float]:
        """The value of every row that a similar question showed or cited, by row number."""
        asked = set(terms)
        helped: dict[int, float] = {}
        passed: dict[int, float] = {}
        # s² = c²/nm ≤ c/n for c shared terms of n asked, so a similar question shares a quarter of them or more, and
        # at least one of all but the most frequent.
        lists = sorted((self._places.get(term, ()) for term in asked), key=len)
        needed = math.ceil(LEAST_ALIKE * len(asked))
        for place in set().union(*lists[: len(lists) - needed + 1]):
            words, cited, in_vain = self._past[place]
            count = len(words & asked)
            alike = count * count / (len(words) * len(asked))
            if alike >= LEAST_ALIKE:
                for best, nos in ((helped, cited), (passed, in_vain)):
                    for no in nos:
                        best[no] = max(alike, best.get(no, 0.0))
        return {no: helped.get(no, 0.0) - passed.get(no, 0.0) for no in helped | passed}
