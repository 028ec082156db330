"""The two arms of candidate search, over every row: words (BM25) and meaning (cosine), each with its neighbourhood.

Both are on a fixed scale, so that they can be added in a bank of any size: words as a share of the best score the
query could reach, meaning as a cosine. Standard scores over the bank were measured and lost (docs/recall.md): in a
large sparse bank their spread goes to zero and any shared word outweighs all meaning.

Words, for query terms t and row i, with f how often t occurs in i and |i| its length in terms:

    idf(t) = ln(1 + (n - df + ½) / (df + ½))
    bm25(i) = Σ_t idf(t) · f (k1 + 1) / (f + k1 (1 - b + b · max(1, |i| / pivot)))

A row that lacks t gets a share of that for a related word that it has ("moved" for "live", see `ingest/word_lists.py`). Then

    words(i) = (bm25(i) + Σ_d w_d (bm25(i-d) + bm25(i+d)) + a · bm25(i-1) [i-1 is a short question]) / Σ_t idf(t)

Meaning, for unit vectors q and v and neighbour weights w:

    meaning(i) = q · (v_i + Σ_d w_d (v_{i-d} + v_{i+d})) / ‖v_i + Σ_d w_d (v_{i-d} + v_{i+d})‖
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from wellworn.core.dataclass import dataclass
from wellworn.core.hashes import signed64
from wellworn.ingest.terms import Question, Trait
from wellworn.search.bank import Bank, Mask, Rows, Vector, distinct, joined
from wellworn.search.partition import PartitionIndex
from wellworn.search.profiles import Profile

Scores = npt.NDArray[np.float32]

MOST_POSTINGS = 50_000
"""Rows with words of a query that are summed up in a bank with signs. Words more frequent than that are looked at only in
rows that a rarer word or the meaning brought in."""
FEW_OF = 16
"""How many times as many rows there are, where those with words of the query are few."""


class LazyWords:
    """Scores of words in a very large bank: the most frequent words are added for the rows that are asked for."""

    def __init__(self, rarer: Scores, frequent: Callable[[Rows], Scores]) -> None:
        """`rarer` are the scores of all rows by the other words, `frequent` gives what these words add."""
        self.rarer, self._frequent = rarer, frequent

    def __getitem__(self, rows: Rows | slice) -> Scores:
        rows = np.arange(len(self.rarer))[rows] if isinstance(rows, slice) else rows
        return self.rarer[rows] + self._frequent(rows)


class FewScores:
    """Scores of some rows of a very large bank; all others have the same."""

    def __init__(self, size: int, rows: Rows, scores: Scores, others: float) -> None:
        """`rows` are in order, each once, and at least one; `size` is that of the bank."""
        self._size, self.rows, self.scores, self._others = size, rows, scores, np.float32(others)

    def __getitem__(self, rows: Rows | slice) -> Scores:
        rows = np.arange(self._size)[rows] if isinstance(rows, slice) else rows
        place = self.rows.searchsorted(rows).clip(max=len(self.rows) - 1)
        return np.where(self.rows[place] == rows, self.scores[place], self._others)


@dataclass(frozen=True, kw_only=True, eq=False)
class Lexical:
    """The lexical arm: the score that ranks, and what learning looks at beside it."""

    score: Scores | LazyWords | FewScores
    """With the neighbourhood, as a share of the best attainable; only where the profile weighs `terms`."""
    plain: Scores | LazyWords | FewScores
    """Each row's own share over the query terms that are nobody's name."""
    found: list[tuple[float, Rows]]
    """For each of those terms its idf and the rows that have it, in order."""
    products: FewScores | None = None
    """Plain cosines, as far as a store told them; NaN where it did not."""


def words(
    bank: Bank,
    question: Question,
    profile: Profile,
    live: Mask | None,
    passing: Mask | None = None,
    vector: Vector | None = None,
    least: int = 0,
) -> Lexical:
    """The lexical arm for every row, about 0 … 2. Where a store has the words: for rows with rare words, those nearest to the
    vector, of which `least` are `passing`, and all that are, if they are few."""
    total = bank.size if live is None else int(np.count_nonzero(live))
    rows, counts, sizes, held_by, products = _rows_with(bank, question.terms, live, passing, vector, least)
    idfs = [math.log(1 + max(0.5, total - held + 0.5) / (held + 0.5)) for held in held_by]
    if len(rows) > MOST_POSTINGS and bank.inexact and not bank.threaded and not bank.speakers:
        return _bounded(bank, profile, rows, counts, sizes, idfs)
    few, places = None, rows
    held = bank.words_held
    if not held and not bank.threaded and not bank.speakers and 0 < FEW_OF * len(rows) < len(bank):
        few = distinct(rows)
        places = few.searchsorted(rows)
    bm25 = np.zeros(len(bank) if few is None else len(few), dtype=np.float32)
    gains = counts
    if len(rows):
        gains = _saturated(counts, bank.length[rows], profile)
        gains *= np.array(idfs, dtype=np.float32).repeat(sizes)
        np.add.at(bm25, places, gains)  # term by term, as they lie
    parts = [slice(end - size, end) for size, end in zip(sizes, accumulate(sizes), strict=True)]
    of_terms = [(idf, rows[part]) for idf, part in zip(idfs, parts, strict=True)]
    if question.related and held:
        _add_related(bm25, bank, question, profile, live, of_terms)
    of_names = None
    best = best_plain = 0.0
    found: list[tuple[float, Rows]] = []
    for term, having, part, (idf, own) in zip(question.terms, held_by, parts, of_terms, strict=True):
        attainable = idf if having else profile.absent_share * idf
        best += attainable
        if bank.speakers and any(signed64(term) in names for names in bank.speakers):
            of_names = np.zeros(len(bank), dtype=np.float32) if of_names is None else of_names
            of_names[own] += gains[part]
        else:
            best_plain += attainable
            found.append((idf, own))
    of_all = (bm25 if of_names is None else bm25 - of_names) / np.float32(best_plain or 1.0)
    plain = of_all if few is None else FewScores(len(bank), few, of_all, 0.0)
    score = plain
    if few is None and (best <= 0 or "terms" not in profile.weights):  # then nobody asks for the score
        score = bm25
    elif few is None and (of_names is not None or bank.threaded):
        spread = [
            _with_neighbours(partition, bm25[start : start + len(partition)], profile)
            for partition, start in bank.filled
        ]
        score = joined(spread) / np.float32(best)
    return Lexical(score=score, plain=plain, found=found, products=products)


def _bounded(
    bank: Bank, profile: Profile, rows: Rows, counts: Scores, sizes: Sequence[int], idfs: Sequence[float]
) -> Lexical:
    """`words` of a large bank without threads and speakers: only rarer terms are summed for every row."""
    found = [*zip(idfs, *([*np.split(one, [*accumulate(sizes)][:-1])] for one in (rows, counts)), strict=True)]
    order = sorted(range(len(sizes)), key=lambda term: sizes[term])
    summed = [*accumulate(sizes[term] for term in order)]
    many = {term for term, size in zip(order[1:], summed[1:], strict=True) if size > MOST_POSTINGS}
    best = sum(idf if size else profile.absent_share * idf for idf, size in zip(idfs, sizes, strict=True))

    def gains(idf: float, where: Rows, often: Scores) -> Scores:
        saturated = _saturated(often, bank.length[where], profile)
        return saturated * np.float32(idf / (best or 1.0))

    def frequent(asked: Rows) -> Scores:
        added = np.zeros(len(asked), dtype=np.float32)
        for idf, having, often in (found[term] for term in many):
            place = np.minimum(having.searchsorted(asked), len(having) - 1)
            there = np.flatnonzero(having[place] == asked)
            added[there] += gains(idf, asked[there], often[place[there]])
        return added

    rarer = np.zeros(len(bank), dtype=np.float32)
    for idf, having, often in (found[term] for term in range(len(sizes)) if term not in many):
        rarer[having] += gains(idf, having, often)
    score = LazyWords(rarer, frequent)
    return Lexical(score=score, plain=score, found=[(idf, having) for idf, having, _ in found])


def _add_related(
    bm25: Scores,
    bank: Bank,
    question: Question,
    profile: Profile,
    live: Mask | None,
    having: Sequence[tuple[float, Rows]],
) -> None:
    """Adds what rows get that have no word of the question itself but a related one: of several the best. `having` has for
    each term its idf and the rows that have it."""
    every = [*dict.fromkeys(other for others in question.related.values() for other in others)]
    rows, counts, sizes, _, _ = _rows_with(bank, every, live, None, None, 0)
    if not len(rows):
        return
    of_each = np.split(np.arange(len(rows)), [*accumulate(sizes)])
    gains = np.float32(profile.related_share) * _saturated(counts, bank.length[rows], profile)
    for term, (idf, own) in zip(question.terms, having, strict=True):
        for_term = np.zeros(len(bm25), dtype=np.float32)
        for other in question.related.get(term, ()):
            places = of_each[every.index(other)]
            np.maximum.at(for_term, rows[places], gains[places] * np.float32(idf))
        for_term[own] = 0.0
        bm25 += for_term


def _rows_with(
    bank: Bank, terms: Sequence[int], live: Mask | None, passing: Mask | None, vector: Vector | None, least: int
) -> tuple[Rows, Scores, list[int], list[int], FewScores | None]:
    """Rows that have each term, one term's after another's, how often each has it, how many a term has here, and how many
    have it at all; and the cosines that were told with them."""
    parts, told = [], list[tuple[Rows, Scores]]()
    for partition, start in bank.filled:
        alive = partition.alive
        allowed = alive if passing is None else passing[start : start + len(alive)]
        parts.append(found := partition.postings.find_all(terms, allowed, vector, least))
        if found.products is not None and vector is not None and len(found.products[0]):
            order = found.products[0].argsort()
            told.append((found.products[0][order] + start, found.products[1][order]))
    products = None
    if told:
        rows, cosines = (np.concatenate(one) for one in zip(*told, strict=True))
        products = FewScores(len(bank), rows, cosines, np.nan)
    if len(parts) == 1:
        rows, (_, counts, sizes, held_by, _) = parts[0].rows.astype(np.intp), parts[0]
    else:
        rows, counts, sizes = _term_by_term([part[:3] for part in parts], [start for _, start in bank.filled])
        held_by = [sum(held) for held in zip(*(part.held_by for part in parts), strict=True)]
    if live is None or not len(rows):
        return rows, counts, sizes, held_by, products
    kept = live[rows]
    before = np.append(0, np.cumsum(kept))[[0, *accumulate(sizes)]]
    left = np.diff(before).tolist()
    share = np.count_nonzero(live) / max(1, bank.size)
    held_by = [
        now if held <= size else max(now, round(share * held))
        for now, held, size in zip(left, held_by, sizes, strict=True)
    ]
    return rows[kept], counts[kept], left, held_by, products


def _term_by_term(
    parts: Sequence[tuple[npt.NDArray[np.int32], Scores, list[int]]], starts: Sequence[int]
) -> tuple[Rows, Scores, list[int]]:
    """What several partitions have of each term, from first to last partition within a term."""
    rows = np.concatenate([part[0] + np.intp(start) for part, start in zip(parts, starts, strict=True)])
    counts = np.concatenate([part[1] for part in parts])
    of_term = np.concatenate([np.repeat(np.arange(len(part[2])), part[2]) for part in parts])
    order = np.argsort(of_term, kind="stable")
    return rows[order], counts[order], [sum(sizes) for sizes in zip(*(part[2] for part in parts), strict=True)]


def _saturated(counts: Scores, lengths: npt.NDArray[np.generic], profile: Profile) -> Scores:
    k1, b = profile.k1, profile.b
    damping = k1 * (1 - b + b * np.maximum(1.0, lengths.astype(np.float64) / profile.pivot_terms))
    return (counts * np.float32(k1 + 1) / (counts + damping)).astype(np.float32)


def _with_neighbours(partition: PartitionIndex, bm25: Scores, profile: Profile) -> Scores:
    """Each row's score plus shares of its neighbours'; only rows that have a score give any."""
    near, far = profile.near_terms
    if not partition.threaded or not (near or far or profile.answer_share):
        return bm25
    giving = np.flatnonzero(bm25 != 0)
    given = bm25[giving]
    around = np.append(bm25, np.float32(0))  # the last place takes what goes to no neighbour
    after = partition.after[giving].astype(np.intp)
    share = np.float32(near) * given
    around[partition.before[giving].astype(np.intp)] += share
    around[after] += share
    share = np.float32(far) * given
    around[partition.before2[giving].astype(np.intp)] += share
    around[partition.after2[giving].astype(np.intp)] += share
    asked = (partition.traits[giving] & Trait.QUESTION) != 0
    around[after[asked]] += np.float32(profile.answer_share) * given[asked]
    return around[:-1]


def meaning(bank: Bank, query: Vector, profile: Profile) -> tuple[Scores, Scores]:
    """The vector arm for every row: plain cosine, and cosine with the neighbourhood; each in -1 … 1."""
    cosines = [(partition, partition.vectors @ query) for partition, _ in bank.filled]
    return joined([one for _, one in cosines]), joined([_blended(*one, profile) for one in cosines])


class LazyMeaning:
    """The vector arm for the rows that are asked for, where there are too many to compute it for all."""

    def __init__(
        self, bank: Bank, query: Vector, near: tuple[float, float] = (0.0, 0.0), known: FewScores | None = None
    ) -> None:
        """`near` are the weights of the neighbourhood; without them it is the plain cosine. `known` are plain cosines."""
        self._bank, self._query = bank, query
        self._near = near if bank.threaded else (0.0, 0.0)
        self._fetches = any(partition.fetch for partition, _ in bank.filled)
        self._cosines = np.zeros(len(bank) + 1, dtype=np.float32)
        self._there = np.zeros(len(bank) + 1, dtype=bool)
        self._there[-1] = True  # the last place stands for no neighbour
        if known is not None:
            self._cosines[known.rows], self._there[known.rows] = known.scores, ~np.isnan(known.scores)

    def __getitem__(self, rows: Rows | slice) -> Scores:
        rows = np.arange(len(self._bank))[rows] if isinstance(rows, slice) else rows
        if not any(self._near):
            return self._plain(rows)
        near, far = self._near
        before, after, before2, after2 = (
            self._bank.beside(name, rows) for name in ("before", "after", "before2", "after2")
        )
        every = distinct(rows, before, after, before2, after2)
        if not self._fetches:
            self._plain(every)
            plain = self._cosines
            around = near * (plain[before] + plain[after]) + far * (plain[before2] + plain[after2])
            blended: Scores = ((plain[rows] + around) / self._bank.blend_norm[rows]).astype(np.float32)
            return blended
        self._bank.vectors(every[every >= 0])  # fetched at once
        blend = self._bank.vectors(rows)
        for weight, them in ((near, before), (near, after), (far, before2), (far, after2)):
            there = np.flatnonzero(them >= 0)
            blend[there] += np.float32(weight) * self._bank.vectors(them[there])
        lengths = np.linalg.norm(blend, axis=1)
        return (blend @ self._query / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)

    def _plain(self, rows: Rows) -> Scores:
        """The plain cosines of these rows, each computed once."""
        missing = rows[~self._there[rows]]
        if len(missing):
            self._cosines[missing], self._there[missing] = self._bank.vectors(missing) @ self._query, True
        return self._cosines[rows]


def _blended(partition: PartitionIndex, cosine: Scores, profile: Profile) -> Scores:
    near, far = profile.near_meaning
    if not partition.threaded or not (near or far):
        return cosine
    padded = np.append(cosine, np.float32(0))  # index -1: no neighbour, no share
    blend = padded.take(partition.before, mode="wrap")
    blend += padded.take(partition.after, mode="wrap")
    blend *= np.float32(near)
    beyond = padded.take(partition.before2, mode="wrap")
    beyond += padded.take(partition.after2, mode="wrap")
    beyond *= np.float32(far)
    blend += beyond
    blend += cosine
    blend /= partition.blend_norm
    return blend
