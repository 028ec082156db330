"""What finds the rows of a partition in memory by their words: postings.

Postings are term → rows and counts: one sorted block, and what came since. Rows that are taken out leave a hole in the
block, so that taking them out moves nothing: a block may lie in a file that others read. Terms that nobody has any more
are overwritten.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wellworn.store.port import Vector

LocalRows = npt.NDArray[np.int32]
Counts = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]

_NO_ROWS: LocalRows = np.empty(0, dtype=np.int32)
_NO_NUMBERS = np.empty(0, dtype=np.uint16)
_SMALLEST_FOLD = 1024
"""LocalRows kept aside before folding is worth its sort; beyond it, an eighth of the block."""


class TermsFound(NamedTuple):
    """What several terms have."""

    rows: LocalRows
    """One term's after another's."""
    counts: Counts
    sizes: list[int]
    """Rows of each term."""
    held_by: list[int]
    """In how many rows of the partition each term is."""
    products: tuple[npt.NDArray[np.int64], Counts] | None
    """Rows whose vectors were multiplied with the query's, and the products."""


class Postings:
    """Term → rows and counts. LocalRows of one term are distinct."""

    def __init__(self) -> None:
        self._terms = np.empty(0, dtype=np.uint64)
        self._starts = np.zeros(1, dtype=np.int64)
        self._rows = _NO_ROWS
        self._counts = np.empty(0, dtype=np.uint16)
        self._block_rows = 0
        self._holes = False
        """Whether rows were taken out of the block, each of which left -1 in its place."""
        self._aside: dict[int, tuple[list[int], list[int]]] = {}
        self._aside_rows = 0

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What `Postings.of` makes the same postings from."""
        self._fold()
        return {"terms": self._terms, "starts": self._starts, "rows": self._rows, "counts": self._counts}

    @classmethod
    def of(cls, arrays: Mapping[str, npt.NDArray[Any]], rows: int) -> Postings:
        made = cls()
        made._terms, made._starts, made._rows, made._counts = (
            arrays[name] for name in ("terms", "starts", "rows", "counts")
        )
        made._block_rows, made._holes = rows, True  # there may be some; the first fold looks
        return made

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

    def find(self, term: int) -> tuple[LocalRows, Counts]:
        """The rows that hold a term and how often each does."""
        found = self.find_all([term])
        return found.rows, found.counts

    def has(self, term: int, row: int) -> bool:
        """Whether a row has a term."""
        place = int(self._terms.searchsorted(np.uint64(term)))
        if place < len(self._terms) and self._terms[place] == term:
            start, end = self._starts[place : place + 2].tolist()
            if (self._rows[start:end] == row).any():
                return True
        return term in self._aside and row in self._aside[term][0]

    def find_all(
        self, terms: Sequence[int], passing: Mask | None = None, vector: Vector | None = None, least: int = 0
    ) -> TermsFound:
        """`find` for several terms at once. Where the words are elsewhere, only the rows of rare terms, those nearest to a
        vector, of which `least` pass, and few that are `passing` are told, with the products of their vectors and this one."""
        rows, counts, sizes = [_NO_ROWS], [_NO_NUMBERS], []
        places = self._terms.searchsorted(np.array(terms, dtype=np.uint64)).tolist()
        for term, place in zip(terms, places, strict=True):
            size = 0
            if place < len(self._terms) and self._terms[place] == term:
                here, numbers_here = self._block(place)
                rows.append(here)
                counts.append(numbers_here)
                size = len(here)
            if term in self._aside:
                more, numbers = self._aside[term]
                rows.append(np.array(more, dtype=np.int32))
                counts.append(np.array(numbers, dtype=np.uint16))
                size += len(more)
            sizes.append(size)
        return TermsFound(np.concatenate(rows), np.concatenate(counts).astype(np.float32), sizes, sizes, None)

    def _block(self, place: int) -> tuple[LocalRows, npt.NDArray[np.uint16]]:
        """Rows and counts of the term at a place of the block."""
        start, end = self._starts[place : place + 2].tolist()
        rows, counts = self._rows[start:end], self._counts[start:end]
        if self._holes and len(rows):
            rows = rows.copy()  # another process may be making holes in the same file
            there = rows >= 0
            return rows[there], counts[there]
        return rows, counts

    def spread(self, terms: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """In how many rows each term is."""
        found = np.zeros(len(terms), dtype=np.int64)
        if len(self._terms):
            places = np.minimum(np.searchsorted(self._terms, terms), len(self._terms) - 1)
            there = self._terms[places] == terms
            if self._holes:
                sizes = [len(self._block(place)[0]) for place in places[there].tolist()]
                found[there] = sizes
            else:
                found = np.where(there, self._starts[places + 1] - self._starts[places], 0)
        if self._aside:
            held = [len(self._aside[term][0]) if term in self._aside else 0 for term in terms.tolist()]
            found += np.array(held, dtype=np.int64)
        return found

    def count_rare(self, few: int, size: int) -> npt.NDArray[np.int64]:
        """For each of `size` rows how many of its terms are in at most `few` rows."""
        self._fold()
        places = np.diff(self._starts)
        held_by = places
        if self._holes and len(places):
            held_by = np.add.reduceat(self._rows >= 0, self._starts[:-1], dtype=np.int64)
        rows = self._rows[np.repeat(held_by <= few, places)]
        return np.bincount(rows[rows >= 0] if self._holes else rows, minlength=size)

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

    def _merge(self, terms: npt.NDArray[np.uint64], rows: LocalRows, counts: npt.NDArray[np.uint16]) -> None:
        """Sort new postings into the block; within a term, rows stay in the order they came."""
        own_terms, own_rows, own_counts = self._held()
        all_terms = np.concatenate([own_terms, terms])
        order = np.argsort(all_terms, kind="stable")
        all_terms = all_terms[order]
        self._rows = np.concatenate([own_rows, rows])[order]
        self._counts = np.concatenate([own_counts, counts])[order]
        first = np.ones(len(all_terms), dtype=bool)
        first[1:] = all_terms[1:] != all_terms[:-1]
        self._terms = all_terms[first]
        self._starts = np.append(np.flatnonzero(first), len(all_terms))
        self._holes = False

    def _held(self) -> tuple[npt.NDArray[np.uint64], LocalRows, npt.NDArray[np.uint16]]:
        """Term, row and count of every posting of the block."""
        terms = np.repeat(self._terms, np.diff(self._starts))
        if not self._holes:
            return terms, self._rows, self._counts
        there = self._rows >= 0
        return terms[there], self._rows[there], self._counts[there]

    def drop(self, rows: Sequence[int]) -> None:
        """Take rows out altogether, in place: nothing of them is left, and nothing else is moved."""
        self._fold()
        gone = np.flatnonzero(np.isin(self._rows, np.asarray(rows, dtype=np.int32)))
        self._rows[gone] = -1
        self._counts[gone] = 0
        self._holes = True
        for place in np.unique(np.searchsorted(self._starts, gone, side="right") - 1).tolist():
            start, end = self._starts[place : place + 2].tolist()
            if self._rows[start:end].max() < 0:  # a term that only they had, in places behind it too; the order stays
                behind = int(np.searchsorted(self._terms, self._terms[place], side="right"))
                self._terms[place:behind] = self._terms[place - 1] if place else 0
        if 4 * len(gone) > len(self._rows):
            self._merge(np.empty(0, dtype=np.uint64), _NO_ROWS, _NO_NUMBERS)

    def renumbered(self, new_row: npt.NDArray[np.int32]) -> Postings:
        """The same postings with rows renumbered; rows mapped to -1 are dropped."""
        self._fold()
        terms, rows, counts = self._held()
        rows = new_row[rows]
        kept = rows >= 0
        other = Postings()
        other._merge(terms[kept], rows[kept], counts[kept])
        other._block_rows = self._block_rows
        return other
