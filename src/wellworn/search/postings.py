"""An inverted index in memory: which rows hold a term, and how often.

Most of it is one sorted block (terms, and for each its rows and counts side by side); rows added since lie in a small
dictionary until they are folded in. Knows rows as numbers only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int32]
Counts = npt.NDArray[np.float32]

_NO_ROWS: Rows = np.empty(0, dtype=np.int32)
_NO_COUNTS: Counts = np.empty(0, dtype=np.float32)
_NO_NUMBERS = np.empty(0, dtype=np.uint16)
_SMALLEST_FOLD = 1024
"""Rows kept aside before folding is worth its sort; beyond it, an eighth of the block."""


class Postings:
    """Term → rows and counts. Rows of one term are distinct."""

    def __init__(self) -> None:
        self._terms = np.empty(0, dtype=np.uint64)
        self._starts = np.zeros(1, dtype=np.int64)
        self._rows = _NO_ROWS
        self._counts = np.empty(0, dtype=np.uint16)
        self._block_rows = 0
        self._aside: dict[int, tuple[list[int], list[int]]] = {}
        self._aside_rows = 0

    def add(self, row: int, terms: Iterable[int], counts: Iterable[int]) -> None:
        """One more row."""
        for term, count in zip(terms, counts, strict=True):
            rows, numbers = self._aside.setdefault(term, ([], []))
            rows.append(row)
            numbers.append(count)
        self._aside_rows += 1
        if self._aside_rows > max(_SMALLEST_FOLD, self._block_rows // 8):
            self._fold()

    def extend(self, rows: Sequence[int], terms: Sequence[bytes], counts: Sequence[bytes]) -> None:
        """Many rows at once, their terms and counts as stored bytes."""
        sizes = np.array([len(blob) // 8 for blob in terms], dtype=np.int64)
        self._merge(
            np.frombuffer(b"".join(terms), dtype="<u8"),
            np.repeat(np.asarray(rows, dtype=np.int32), sizes),
            np.frombuffer(b"".join(counts), dtype="<u2"),
        )
        self._block_rows += len(rows)

    def find(self, term: int) -> tuple[Rows, Counts]:
        """The rows that hold a term and how often each does."""
        rows, counts = _NO_ROWS, _NO_COUNTS
        place = int(np.searchsorted(self._terms, np.uint64(term)))
        if place < len(self._terms) and self._terms[place] == term:
            start, end = self._starts[place], self._starts[place + 1]
            rows, counts = self._rows[start:end], self._counts[start:end].astype(np.float32)
        aside = self._aside.get(term)
        if aside is None:
            return rows, counts
        return (
            np.concatenate([rows, np.array(aside[0], dtype=np.int32)]),
            np.concatenate([counts, np.array(aside[1], dtype=np.float32)]),
        )

    def find_all(self, terms: Sequence[int]) -> tuple[Rows, Counts, list[int]]:
        """`find` for several terms at once: their rows and counts one after another, and how many each term has."""
        rows, counts, sizes = [_NO_ROWS], [_NO_NUMBERS], []
        places = self._terms.searchsorted(np.array(terms, dtype=np.uint64)).tolist()
        for term, place in zip(terms, places, strict=True):
            size = 0
            if place < len(self._terms) and self._terms[place] == term:
                start, end = self._starts[place : place + 2].tolist()
                rows.append(self._rows[start:end])
                counts.append(self._counts[start:end])
                size = end - start
            if term in self._aside:
                more, numbers = self._aside[term]
                rows.append(np.array(more, dtype=np.int32))
                counts.append(np.array(numbers, dtype=np.uint16))
                size += len(more)
            sizes.append(size)
        return np.concatenate(rows), np.concatenate(counts).astype(np.float32), sizes

    def spread(self, terms: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """In how many rows each term is."""
        found = np.zeros(len(terms), dtype=np.int64)
        if len(self._terms):
            places = np.minimum(np.searchsorted(self._terms, terms), len(self._terms) - 1)
            found = np.where(self._terms[places] == terms, self._starts[places + 1] - self._starts[places], 0)
        if self._aside:
            held = [len(self._aside[term][0]) if term in self._aside else 0 for term in terms.tolist()]
            found += np.array(held, dtype=np.int64)
        return found

    def count_rare(self, few: int, size: int) -> npt.NDArray[np.int64]:
        """For each of `size` rows how many of its terms are in at most `few` rows."""
        self._fold()
        held_by = np.diff(self._starts)
        return np.bincount(self._rows[np.repeat(held_by <= few, held_by)], minlength=size)

    def _fold(self) -> None:
        if not self._aside_rows:
            return
        terms = np.array([t for t, (rows, _) in self._aside.items() for _ in rows], dtype=np.uint64)
        rows = np.array([row for rows, _ in self._aside.values() for row in rows], dtype=np.int32)
        counts = np.array([count for _, counts in self._aside.values() for count in counts], dtype=np.uint16)
        self._aside = {}
        self._block_rows += self._aside_rows
        self._aside_rows = 0
        self._merge(terms, rows, counts)

    def _merge(self, terms: npt.NDArray[np.uint64], rows: Rows, counts: npt.NDArray[np.uint16]) -> None:
        """Sort new postings into the block; within a term, rows stay in the order they came."""
        all_terms = np.concatenate([np.repeat(self._terms, np.diff(self._starts)), terms])
        order = np.argsort(all_terms, kind="stable")
        all_terms = all_terms[order]
        self._rows = np.concatenate([self._rows, rows])[order]
        self._counts = np.concatenate([self._counts, counts])[order]
        first = np.ones(len(all_terms), dtype=bool)
        first[1:] = all_terms[1:] != all_terms[:-1]
        self._terms = all_terms[first]
        self._starts = np.append(np.flatnonzero(first), len(all_terms))

    def drop(self, rows: Sequence[int]) -> None:
        """Take rows out altogether."""
        self._fold()
        kept = ~np.isin(self._rows, np.asarray(rows, dtype=np.int32))
        terms = np.repeat(self._terms, np.diff(self._starts))[kept]
        kept_rows, kept_counts = self._rows[kept], self._counts[kept]
        self._terms, self._starts = np.empty(0, dtype=np.uint64), np.zeros(1, dtype=np.int64)
        self._rows, self._counts = _NO_ROWS, np.empty(0, dtype=np.uint16)
        self._merge(terms, kept_rows, kept_counts)

    def renumbered(self, new_row: npt.NDArray[np.int32]) -> Postings:
        """The same postings with rows renumbered; rows mapped to -1 are dropped."""
        self._fold()
        rows = new_row[self._rows]
        kept = rows >= 0
        terms = np.repeat(self._terms, np.diff(self._starts))
        other = Postings()
        other._merge(terms[kept], rows[kept], self._counts[kept])
        other._block_rows = self._block_rows
        return other
