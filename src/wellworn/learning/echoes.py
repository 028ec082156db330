"""What became of a person's earlier questions: entries that helped with a like question, and entries passed over.

    echo(q, e) = max s(q, p)² over past p for which e was cited  −  max s(q, p)² over those where it was shown in vain
    s(q, p)    = |q ∩ p| / √(|q| · |p|) over the terms of both; under 0.5 it counts as 0

Knows terms as numbers and entries as row numbers, no text. Kept in memory only, read from the log when a process
begins: what is forgotten there is forgotten here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from wellworn.core.locks import ForkLock

MOST_RECALLS = 1000
"""A person's last recalls that are looked through for what was told of them."""
LEAST_ALIKE = 0.25
"""Square of the similarity from which on a question is a like one."""


class Echoes:
    """Questions that were told of, by their terms. Grows at the end; safe between threads."""

    def __init__(self) -> None:
        self._places: dict[int, list[int]] = {}
        self._told: list[tuple[set[int], Sequence[int], Sequence[int]]] = []
        self._lock = ForkLock()

    def __len__(self) -> int:
        return len(self._told)

    def add(self, terms: Iterable[int], cited: Iterable[int], shown: Iterable[int]) -> None:
        """A question, the rows that were cited of it, and all that were shown."""
        distinct, helped = set(terms), set(cited)
        if not distinct:  # its words were forgotten
            return
        passed = [no for no in shown if no not in helped]
        with self._lock:
            place = len(self._told)
            self._told.append((distinct, [*helped], passed))
            for term in distinct:
                self._places.setdefault(term, []).append(place)

    def of(self, terms: Sequence[int]) -> dict[int, float]:
        """Row number → echo, of every row that was told of in a like question."""
        asked = set(terms)
        helped: dict[int, float] = {}
        passed: dict[int, float] = {}
        for place in self._near(asked):
            words, cited, in_vain = self._told[place]
            count = len(words & asked)
            alike = count * count / (len(words) * len(asked))
            if alike >= LEAST_ALIKE:
                for kept, nos in ((helped, cited), (passed, in_vain)):
                    for no in nos:
                        if alike > kept.get(no, 0.0):
                            kept[no] = alike
        return {no: helped.get(no, 0.0) - passed.get(no, 0.0) for no in helped | passed}

    def _near(self, asked: set[int]) -> set[int]:
        """Questions that may be like one: all that share a quarter of its terms, and so one of its rarer ones.

        Sharing c of n terms with a question of m ≥ c, the square of the likeness is c²/nm ≤ c/n.
        """
        lists = sorted((self._places.get(term, ()) for term in asked), key=len)
        needed = math.ceil(LEAST_ALIKE * len(asked))
        return set().union(*lists[: len(lists) - needed + 1])
