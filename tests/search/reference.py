"""Partitions, arms and neighbours once more, written plainly and slowly: what the quick ones must agree with."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from wellworn.ingest.terms import Question, Trait
from wellworn.search.arms import FewScores, LazyWords
from wellworn.search.bank import Bank
from wellworn.search.partition import PartitionIndex
from wellworn.search.profiles import Profile
from wellworn.store.port import Delta, Slim

WIDTH = 6


@dataclass(frozen=True, kw_only=True)
class Row:
    """One entry as ranking sees it."""

    no: int
    terms: dict[int, int]
    vector: tuple[float, ...]
    thread: int | None = None
    position: int | None = None
    length: int | None = None
    traits: int = 0
    speaker: int = 0
    at: int = 0
    valid_from: int = 0
    valid_to: int | None = None
    confidence: float = 0.8
    usage: int = 0
    repeats: int = 0
    kind: str = "note"
    state: str = "active"
    chars: int = 150
    seq: int = 1
    index_seq: int = 1

    @property
    def words(self) -> int:
        return self.length if self.length is not None else sum(self.terms.values())

    def slim(self) -> Slim:
        ordered = sorted(self.terms)
        return Slim(
            no=self.no,
            seq=self.seq,
            index_seq=self.index_seq,
            kind=self.kind,
            state=self.state,
            at=self.at,
            valid_from=self.valid_from,
            valid_to=self.valid_to,
            confidence=self.confidence,
            usage_count=self.usage,
            repeats=self.repeats,
            thread=self.thread,
            position=self.position,
            length=self.words,
            chars=self.chars,
            traits=self.traits,
            speaker=self.speaker,
            terms=np.array(ordered, dtype="<u8").tobytes(),
            counts=np.array([self.terms[t] for t in ordered], dtype="<u2").tobytes(),
            vector=np.array(self.vector, dtype="<f4").tobytes() if self.vector else None,
        )


@dataclass
class Partition:
    """The rows of a partition, and the deltas that its changes give."""

    rows: dict[int, Row] = field(default_factory=dict)
    seq: int = 0
    _known: tuple[int, int] = (-1, -1)
    _places: dict[tuple[int | None, int | None], int] = field(default_factory=dict)

    def change(self, *, put: Sequence[Row] = (), renumber: Sequence[Row] = (), remove: Sequence[int] = ()) -> Delta:
        """One transaction: rows new or with a new text, rows with new numbers only, rows gone."""
        self.seq += 1
        changed = [replace(row, seq=self.seq, index_seq=self.seq) for row in put]
        changed += [replace(row, seq=self.seq, index_seq=self.rows[row.no].index_seq) for row in renumber]
        for row in changed:
            self.rows[row.no] = row
        for no in remove:
            self.rows.pop(no, None)
        rows = [row.slim() for row in sorted(changed, key=lambda row: row.no) if row.no in self.rows]
        return Delta(seq=self.seq, rows=rows, removed=list(remove))

    def whole(self) -> Delta:
        """Everything, as a first look would get it."""
        return Delta(seq=self.seq, rows=[self.rows[no].slim() for no in sorted(self.rows)], removed=[])

    def places(self) -> dict[tuple[int | None, int | None], int]:
        """(thread, position) → row number, worked out once for each state."""
        if self._known != (self.seq, len(self.rows)):
            self._known = (self.seq, len(self.rows))
            self._places = {(r.thread, r.position): r.no for r in self.rows.values() if r.thread is not None}
        return self._places

    def beside(self, no: int, step: int) -> int | None:
        """The row one or two places on in the thread; two away only where the one between is there."""
        row, places = self.rows[no], self.places()
        if row.thread is None or row.position is None:
            return None
        if abs(step) == 2 and (row.thread, row.position + step // 2) not in places:
            return None
        return places.get((row.thread, row.position + step))

    def blend(self, no: int, weights: tuple[float, float]) -> npt.NDArray[np.float64]:
        vector = np.array(self.rows[no].vector, dtype=np.float64)
        for step, weight in ((-1, weights[0]), (1, weights[0]), (-2, weights[1]), (2, weights[1])):
            other = self.beside(no, step)
            if other is not None:
                vector = vector + weight * np.array(self.rows[other].vector, dtype=np.float64)
        return vector


def index_of(partition: Partition, profile: Profile, *, partition_no: int = 1) -> PartitionIndex:
    """The quick index, loaded from scratch."""
    index = PartitionIndex(partition_no, WIDTH, profile.near_meaning)
    index.apply(partition.whole())
    return index


def by_no(bank: Bank, scores: npt.NDArray[np.float32] | LazyWords | FewScores) -> dict[int, float]:
    """Scores of the rows that are alive."""
    found: dict[int, float] = {}
    for partition, start in zip(bank.partitions, bank.starts, strict=False):
        for row in np.flatnonzero(partition.alive):
            found[int(partition.no[row])] = float(scores[:][start + row])
    return found


def words(partitions: Sequence[Partition], question: Question, profile: Profile) -> dict[int, float]:
    """The lexical arm, from its formula."""
    rows = [row for partition in partitions for row in partition.rows.values()]
    idf, best = {}, 0.0
    for term in question.terms:
        df = sum(term in row.terms for row in rows)
        idf[term] = math.log(1 + (len(rows) - df + 0.5) / (df + 0.5))
        best += idf[term] if df else profile.absent_share * idf[term]

    def bm25(row: Row) -> float:
        damping = profile.k1 * (1 - profile.b + profile.b * max(1.0, row.words / profile.pivot_terms))
        return sum(
            idf[t] * row.terms[t] * (profile.k1 + 1) / (row.terms[t] + damping)
            for t in question.terms
            if t in row.terms
        )

    own = {row.no: bm25(row) for row in rows}
    near, far = profile.near_terms
    found = {}
    for partition in partitions:
        for no in partition.rows:
            score = own[no]
            for step, weight in ((-1, near), (1, near), (-2, far), (2, far)):
                other = partition.beside(no, step)
                score += weight * own[other] if other is not None else 0.0
            before = partition.beside(no, -1)
            if before is not None and partition.rows[before].traits & Trait.QUESTION:
                score += profile.answer_share * own[before]
            found[no] = score / best if best > 0 else 0.0
    return found


def meaning(partitions: Sequence[Partition], query: npt.NDArray[np.float32], profile: Profile) -> dict[int, float]:
    """The vector arm, from its formula."""
    found = {}
    for partition in partitions:
        for no in partition.rows:
            blend = partition.blend(no, profile.near_meaning)
            found[no] = float(query.astype(np.float64) @ blend) / (float(np.linalg.norm(blend)) or 1.0)
    return found


def random_partition(dice: np.random.Generator, count: int, *, first_no: int = 1, threads: int = 3) -> Partition:
    """Entries with random words and unit vectors, most of them in threads."""
    partition = Partition()
    partition.change(put=list(random_rows(dice, count, first_no=first_no, threads=threads)))
    return partition


def random_rows(dice: np.random.Generator, count: int, *, first_no: int = 1, threads: int = 3) -> Iterator[Row]:
    positions = [0] * threads
    for no in range(first_no, first_no + count):
        vector = dice.normal(size=WIDTH)
        vector /= np.linalg.norm(vector)
        thread = int(dice.integers(-1, threads))
        position = None
        if thread >= 0:
            position, positions[thread] = positions[thread], positions[thread] + 1
        chosen = dice.choice(np.arange(10, 40), size=int(dice.integers(1, 8)), replace=False)
        yield Row(
            no=no,
            terms={int(t): int(dice.integers(1, 5)) for t in chosen},
            vector=tuple(float(x) for x in vector.astype(np.float32)),
            thread=thread if thread >= 0 else None,
            position=position,
            length=int(dice.integers(5, 200)),
            traits=int(dice.integers(0, 2)),
        )
