"""The main road of recall: arms over every row → the best as candidates → named factors → score → links → top k.

Deterministic: equal inputs give equal hits in equal order. Only the hits' texts are read.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import numpy.typing as npt

from wellworn.core.clock import Clock, NewId, aware, to_micros
from wellworn.core.errors import EmbeddingFailed, InvalidInput
from wellworn.core.values import KINDS, Cost, Entry, Factor, Hit, Partition, Recall, Scope, filled
from wellworn.ingest.scrub import NO_SCRUBBING, Scrubbing
from wellworn.ingest.terms import forget_words, read_question
from wellworn.ingest.validate import checked_k, checked_query
from wellworn.learning.learner import Learner
from wellworn.learning.log import LoggedRecall
from wellworn.models.port import Embedder
from wellworn.search.arms import Lexical, meaning, words
from wellworn.search.bank import Bank, Mask
from wellworn.search.browse import nearest, newest
from wellworn.search.cache import EntryCache
from wellworn.search.context import Check, Refine, SearchContext, Vector
from wellworn.search.diversify import diversify
from wellworn.search.features import FEATURES, View, dated, features
from wellworn.search.filters import Filters
from wellworn.search.learned import SPARE, Seen, corrected, logged
from wellworn.search.profiles import Profile, profile_named
from wellworn.search.ram import Ram
from wellworn.search.ranked import Ranked
from wellworn.store.port import Store

ROUTE = "hybrid"
FOLD_DEPTH = 3
"""How many times k are looked at for memories and turns that share a place."""
_EPISODE, _SUMMARY = KINDS.index("episode"), KINDS.index("summary")
_NOTHING: frozenset[int] = frozenset()
FEW = 4096
"""Rows of a bank up to which partitioning all of them is quickest."""
TIE_DECIMALS = 3
"""Scores that agree to this many decimals are a tie, which the more specific layer wins."""


def checked_profile(profile: str | Profile) -> Profile:
    """A profile by name or as given, whose every weight is of a factor there is."""
    chosen = profile_named(profile)
    unknown = sorted(set(chosen.weights) - set(FEATURES))
    if unknown or not chosen.weights:
        problem = f"{chosen.name!r} weighs {', '.join(unknown) or 'nothing'}"
        raise InvalidInput("profile", problem, f"factors are {', '.join(FEATURES)}")
    return chosen


@dataclass(frozen=True, kw_only=True, eq=False)
class Near:
    """An entry with its vector and the cosine of that with the one asked for."""

    entry: Entry
    cosine: float
    vector: npt.NDArray[np.float32]


class Searcher:
    """Answers queries from the partitions of one store."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder | None,
        *,
        profile: Profile,
        clock: Clock,
        new_id: NewId,
        learner: Learner | None = None,
        scrubbing: Scrubbing = NO_SCRUBBING,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._profile = profile
        self._clock = aware(clock)
        self._new_id = new_id
        self._learner = learner
        self._scrubbing = scrubbing
        self._cache = EntryCache(store)
        self._ram = Ram(store, embedder, neighbour_weights=profile.near_meaning, on_removed=self._let_go)

    def under(self, profile: Profile, learner: Learner | None, scrubbing: Scrubbing) -> Searcher:
        """A searcher that ranks and scrubs otherwise, over the same indexes and cache: forgotten is gone in both.

        A neighbour's share in `meaning` stays as these indexes have it; `similarity` has none.
        """
        other = copy.copy(self)
        other._profile, other._learner, other._scrubbing = profile, learner, scrubbing
        return other

    def recall(self, query: str, *, scope: Scope, k: int, filters: Filters, refine: Refine | None = None) -> Recall:
        """The k best entries for a query; `refine` may change the untrained ranking among those that pass."""
        started = time.perf_counter()
        query, k = checked_query(query), checked_k(k)
        home = scope.home()  # a scope without a layer sees nothing: better an error than silence
        query = self.scrubbed(query, home)
        vector = self._embed(query)
        recall_id = self._new_id()
        with self._ram.bank(scope.partitions()) as (bank, partitions):
            ranked, searched, seen = self._rank(query, vector, bank, partitions, k, filters, home, recall_id, refine)
            nos, seqs = _named(bank, ranked.rows)
            if self._learner is not None:
                recall = self._logged(seen, ranked, bank, recall_id, home, query)
                self._learner.log.add(recall, new=home not in partitions)
        return filled(
            Recall,
            id=recall_id,
            query=query,
            hits=self._hits(ranked, nos, seqs),
            route=ROUTE,
            searched=searched,
            cost=Cost(seconds=time.perf_counter() - started, embedded_texts=int(vector is not None)),
            trace=(),
        )

    def search(self, query: str, *, partitions: Sequence[Partition], k: int, page: int) -> Iterator[list[Hit]]:
        """The k best entries of these partitions by the untrained ranking, outside the log that learning reads.

        Ranked at once and read page by page, so that a caller who picks among them may go far down.
        """
        query = self.scrubbed(query, partitions[0] if partitions else None)
        vector = self._embed(query)
        with self._ram.bank(partitions) as (bank, there):
            ranked, _, _ = self._rank(query, vector, bank, there, k, Filters(), None, "")
            nos, seqs = _named(bank, ranked.rows)
        for start in range(0, len(nos), page):
            part = slice(start, start + page)
            yield self._hits(ranked.take(np.arange(len(nos))[part]), nos[part], seqs[part])

    def nearest(self, vector: npt.NDArray[np.float32], *, partitions: Sequence[Partition], k: int) -> list[Near]:
        """The k entries of these partitions whose vectors are nearest to a unit vector."""
        with self._ram.bank(partitions) as (bank, _):
            rows, cosines = nearest(bank, vector, self._clock(), k)
            nos, seqs = _named(bank, rows)
            vectors = bank.vectors(rows) if len(rows) else np.empty((0, len(vector)), dtype=np.float32)
        entries = self._cache.read(nos, seqs)
        return [
            Near(entry=entries[no], cosine=cosine, vector=own)
            for no, cosine, own in zip(nos, cosines.tolist(), vectors, strict=True)
            if no in entries
        ]

    def newest(self, *, partitions: Sequence[Partition], page: int) -> Iterator[list[Entry]]:
        """Entries of these partitions that begin a thread or have none, newest first, in any state, page by page."""
        with self._ram.bank(partitions) as (bank, _):
            nos, seqs = _named(bank, newest(bank, self._clock()))
        for start in range(0, len(nos), page):
            part = slice(start, start + page)
            entries = self._cache.read(nos[part], seqs[part])
            yield [entries[no] for no in nos[part] if no in entries]

    def examine(self, query: str, *, scope: Scope, k: int = 5) -> LoggedRecall | None:
        """What learning would see of a recall, without logging it; None when there is nothing to see."""
        if self._learner is None:
            return None
        home, recall_id = scope.home(), self._new_id()
        query = self.scrubbed(query, home)
        with self._ram.bank(scope.partitions()) as (bank, partitions):
            ranked, _, seen = self._rank(query, self._embed(query), bank, partitions, k, Filters(), home, recall_id)
            if seen is None or not len(ranked.rows):
                return None
            return self._logged(seen, ranked, bank, recall_id, home, query)

    def _logged(
        self, seen: Seen | None, ranked: Ranked, bank: Bank, recall_id: str, home: Partition, query: str
    ) -> LoggedRecall:
        profile, now = self._profile.name, self._clock()
        return logged(seen, ranked.rows, bank, recall_id=recall_id, home=home, at=now, query=query, profile=profile)

    def similar(
        self, text: str, *, partition: Partition, k: int, kinds: Sequence[str]
    ) -> list[tuple[Entry, float | None]]:
        """The k entries of one partition that are most like a text, with their cosine (None without an embedder).

        Ranked without what was learned and not logged: nobody asked.
        """
        text = self.scrubbed(text, partition)
        vector = self._embed(text)
        with self._ram.bank([partition]) as (bank, partitions):
            ranked, _, _ = self._rank(text, vector, bank, partitions, k, Filters(kinds=[*kinds]), None, "")
            nos, seqs = _named(bank, ranked.rows)
            cosines: list[float | None] = [None] * len(nos)
            if vector is not None and nos:
                cosines = (bank.vectors(ranked.rows) @ vector).tolist()
        entries = self._cache.read(nos, seqs)
        return [(entries[no], cosine) for no, cosine in zip(nos, cosines, strict=True) if no in entries]

    def vector_of(self, query: str, *, partitions: Sequence[Partition]) -> npt.NDArray[np.float32] | None:
        """The vector of a question, scrubbed first; None without an embedder."""
        return self._embed(self.scrubbed(query, partitions[0] if partitions else None))

    def scrubbed(self, query: str, partition: Partition | None) -> str:
        """The query as it may be embedded elsewhere and logged: also as what it asks for is stored."""
        return self._scrubbing.asked(partition)(query) if self._scrubbing.on else query

    def _embed(self, query: str) -> npt.NDArray[np.float32] | None:
        if self._embedder is None:
            return None
        vector = self._embedder.embed_query(query)
        if vector.shape != (self._embedder.width,) or not np.isfinite(vector).all():
            raise EmbeddingFailed(f"embedder {self._embedder.name!r} gave no usable vector for the query")
        return vector

    def _rank(
        self,
        query: str,
        vector: npt.NDArray[np.float32] | None,
        bank: Bank,
        partitions: Sequence[Partition],
        k: int,
        filters: Filters,
        home: Partition | None,
        recall_id: str,
        refine: Refine | None = None,
    ) -> tuple[Ranked, int, Seen | None]:
        """The top k rows, how many were eligible, and what learning saw; with no home it sees nothing."""
        moment = filters.as_of or self._clock()
        live = bank.live(moment)
        eligible = _both(live, bank.wanted(filters, self._store, [partition.layer for partition in partitions]))
        searched = bank.size if eligible is None else int(np.count_nonzero(eligible))
        names = [*self._profile.weights]
        weights = np.array([*self._profile.weights.values()], dtype=np.float64)
        if searched == 0:
            empty = np.empty(0, dtype=np.intp)
            return Ranked(rows=empty, names=names, weights=weights, values=np.empty((0, len(names)))), 0, None
        began = time.perf_counter()
        view = self._view(query, vector, bank, live, eligible, moment, k)
        took = time.perf_counter() - began
        ranked = Ranked(rows=view.rows, names=names, weights=weights, values=features(view))
        ranked = self._with_linked(ranked, view, eligible)
        if refine is not None:
            ranked = refine(ranked, self._desk(query, view, live, eligible, moment, k, partitions, home, took))
        seen = None
        if self._learner is not None and home is not None:
            ranked, seen = corrected(ranked, view, self._learner, home, recall_id)
        wanted = k if seen is None else k + SPARE
        if home is None:
            ranked = self._ordered(ranked, bank, wanted)
        elif not _has_turns(ranked, bank, filters):  # nothing to fold, so no depth is needed
            ranked = self._ordered(ranked, bank, k if seen is None or seen.tried is None else wanted)
        else:
            ranked = self._folded(self._ordered(ranked, bank, FOLD_DEPTH * wanted), bank, wanted)
        if seen is not None:
            ranked = seen.explored(ranked, k)
        if filters.min_score is not None:
            ranked = ranked.take(np.flatnonzero(ranked.scores >= filters.min_score))
        return ranked, searched, seen

    def _view(
        self,
        query: str,
        vector: npt.NDArray[np.float32] | None,
        bank: Bank,
        live: Mask | None,
        eligible: Mask | None,
        moment: datetime,
        k: int,
        check: Check | None = None,
    ) -> View:
        """Both arms over the bank, and its best rows as candidates; between them `check` may stop it."""
        profile = self._profile
        question = read_question(query)
        nothing, base = np.zeros((2, len(bank)), dtype=np.float32)
        if "terms" in profile.weights or self._learner is not None:
            lexical = words(bank, question, profile, live)
        else:
            lexical = Lexical(score=nothing, plain=nothing, found=[])
        if check is not None:
            check()
        similarity, blended = (nothing, nothing) if vector is None else meaning(bank, vector, profile)
        for name, arm in (("terms", lexical.score), ("meaning", blended), ("similarity", similarity)):
            if name in profile.weights:
                base += np.float32(profile.weights[name]) * arm
        if question.dates and "date" in profile.weights:
            base += (profile.weights["date"] * dated(question, bank)).astype(np.float32)
        newest = max(partition.newest for partition in bank.partitions)
        return filled(
            View,
            bank=bank,
            rows=_best(base, bank, eligible, max(profile.candidates, 2 * k)),
            question=question,
            profile=profile,
            lexical=lexical,
            meaning=blended,
            similarity=similarity,
            vector=vector,
            reference=min(to_micros(moment), newest),
        )

    def _desk(
        self,
        query: str,
        view: View,
        live: Mask | None,
        eligible: Mask | None,
        moment: datetime,
        k: int,
        partitions: Sequence[Partition],
        home: Partition | None,
        took: float,
    ) -> SearchContext:
        """The same search, open for more."""
        bank = view.bank

        def embed(query: str) -> Vector | None:
            return self._embed(self.scrubbed(query, home))

        def again(query: str, vector: Vector | None, check: Check) -> View:
            return self._view(self.scrubbed(query, home), vector, bank, live, eligible, moment, k, check)

        def read(rows: npt.NDArray[np.intp]) -> dict[int, Entry]:
            nos, seqs = _named(bank, rows)
            entries = self._cache.read(nos, seqs)
            return {row: entries[no] for row, no in zip(rows.tolist(), nos, strict=True) if no in entries}

        def linked(rows: npt.NDArray[np.intp]) -> list[tuple[int, int, str, float]]:
            edges = self._store.linked(_named(bank, rows)[0])
            ends = {no: row for no in {end for edge in edges for end in edge[:2]} for row in bank.rows_of([no])}
            return [(ends[a], ends[b], type_, sure) for a, b, type_, sure in edges if a in ends and b in ends]

        layers = [partition.layer for partition in partitions]
        return SearchContext(
            query=query,
            view=view,
            eligible=eligible,
            layers=layers,
            read=read,
            linked=linked,
            again=again,
            embed=None if self._embedder is None else embed,
            seconds=took,
        )

    def _with_linked(self, ranked: Ranked, view: View, eligible: Mask | None) -> Ranked:
        """Candidates that hand-made links bring in, lifted to a share of the score they are linked to."""
        share = self._profile.link_share
        if not share:
            return ranked
        bank = view.bank
        sources = ranked.take(np.argsort(-ranked.scores, kind="stable")[: self._profile.link_sources])
        source_nos = bank.column("no", sources.rows).tolist()
        lifts = _lifts(self._store.linked(source_nos), dict(zip(source_nos, sources.scores.tolist(), strict=True)))
        if not lifts:
            return ranked
        rows = {row: lifts[no] for no in lifts for row in bank.rows_of([no]) if eligible is None or eligible[row]}
        new = np.array(sorted(set(rows) - set(ranked.rows.tolist())), dtype=np.intp)
        if len(new):
            more = View(**{**view.__dict__, "rows": new})
            ranked = Ranked(
                rows=np.concatenate([ranked.rows, new]),
                names=ranked.names,
                weights=ranked.weights,
                values=np.vstack([ranked.values, features(more)]),
            )
        target = np.array([rows.get(int(row), -np.inf) for row in ranked.rows])
        return ranked.with_factor("linked", np.maximum(target * share - ranked.scores, 0.0), 1.0)

    def _ordered(self, ranked: Ranked, bank: Bank, k: int) -> Ranked:
        """The best k: by score, then the more specific layer, then the older row."""
        weight = self._profile.diversity
        order = _order(bank, ranked.rows, np.rint(ranked.scores * 10**TIE_DECIMALS), k)
        if not weight or self._embedder is None:
            return ranked.take(order[:k])
        if k == 1:  # nothing to be unlike
            return ranked.take(order[:1]).with_factor("diversity", np.zeros(min(1, len(order))), weight)
        pool = ranked.take(order)
        places, redundancy = diversify(pool.scores, bank.vectors(pool.rows), k, lambda_=1 / (1 + weight))
        return pool.take(places).with_factor("diversity", -np.array(redundancy), weight)

    def _folded(self, ranked: Ranked, bank: Bank, k: int) -> Ranked:
        """The best k, of a memory and the turns it was derived from only the better: they say the same."""
        kinds = bank.column("kind", ranked.rows)
        turns = kinds == _EPISODE
        if turns.all() or not turns.any():
            return ranked.take(np.arange(min(k, len(turns))))
        nos = bank.column("no", ranked.rows).tolist()
        memories = [no for no, kind in zip(nos, kinds.tolist(), strict=True) if kind not in (_EPISODE, _SUMMARY)]
        beside: dict[int, set[int]] = {}
        for memory, turn in self._store.derived(memories):
            beside.setdefault(memory, set()).add(turn)
            beside.setdefault(turn, set()).add(memory)
        taken: set[int] = set()
        kept: list[int] = []
        for place, no in enumerate(nos):
            if beside.get(no, _NOTHING).isdisjoint(taken):
                taken.add(no)
                kept.append(place)
            if len(kept) == k:
                break
        return ranked.take(kept)

    def _hits(self, ranked: Ranked, nos: Sequence[int], seqs: Sequence[int]) -> list[Hit]:
        entries = self._cache.read(nos, seqs)
        weights = ranked.weights.tolist()
        hits = []
        for no, values in zip(nos, ranked.values.tolist(), strict=True):
            if no in entries:
                factors = tuple(
                    [
                        filled(Factor, name=name, value=value, weight=weight)
                        for name, value, weight in zip(ranked.names, values, weights, strict=True)
                    ]
                )
                hits.append(Hit(entry=entries[no], score=sum(f.contribution for f in factors), explanation=factors))
        return hits

    def forget(self, partitions: Sequence[Partition]) -> int:
        """Drop what memory holds of what was removed from these partitions, words and vectors of texts included."""
        dropped = self._ram.forget(partitions) + self._cache.forget(partitions)
        forget_words()
        clear = getattr(self._embedder, "clear", None)
        return dropped + (int(clear()) if callable(clear) else 0)

    def _let_go(self, nos: Sequence[int]) -> None:
        """Rows are gone from the store."""
        self._cache.drop(nos)
        if self._learner is not None:
            self._learner.forget(nos)

    def drop_ram(self) -> None:
        """Read everything anew on next use."""
        self._ram.clear()
        self._cache.clear()


def _named(bank: Bank, rows: npt.NDArray[np.intp]) -> tuple[list[int], list[int]]:
    """Row numbers of some rows, and the counts of their last changes."""
    if not len(rows):
        return [], []
    return bank.column("no", rows).tolist(), bank.column("seq", rows).tolist()


def _both(a: Mask | None, b: Mask | None) -> Mask | None:
    if a is None or b is None:
        return a if b is None else b
    return a & b


def _has_turns(ranked: Ranked, bank: Bank, filters: Filters) -> bool:
    if filters.kinds is not None and "episode" not in filters.kinds:
        return False
    return bool(np.count_nonzero(bank.column("kind", ranked.rows) == _EPISODE))


def _order(bank: Bank, rows: npt.NDArray[np.intp], scores: npt.NDArray[np.float64], k: int) -> npt.NDArray[np.intp]:
    """Places from the best on; where one is asked for, only those that share the best score."""
    if k == 1 and len(rows):
        best = np.flatnonzero(scores == scores.max())
        if len(best) == 1:
            return best
    return np.lexsort((bank.column("no", rows), bank.owner(rows), -scores))


def _best(base: npt.NDArray[np.float32], bank: Bank, eligible: Mask | None, count: int) -> npt.NDArray[np.intp]:
    """Rows of the highest base scores, in row order; those of the others are lost."""
    there = bank.size if eligible is None else int(np.count_nonzero(eligible))
    count = min(count, there)
    if count == len(base):
        return np.arange(len(base))
    if eligible is not None:
        np.putmask(base, ~eligible, -np.inf)
    elif len(bank.dead):
        base[bank.dead] = -np.inf
    rows = _highest(base, count)
    rows.sort()
    return rows


def _highest(base: npt.NDArray[np.float32], count: int) -> npt.NDArray[np.intp]:
    """Places of the highest scores, as `argpartition` gives them, in a third of its time where they are few of many.

    In each of `count` groups of places one score is the highest: nothing below the lowest of these can be wanted.
    """
    size = len(base) // count
    if size >= 8 and len(base) >= FEW:
        bound = base[: size * count].reshape(size, count).max(axis=0).min()
        near = np.flatnonzero(base >= bound)
        scores = base[near]
        order = np.argpartition(scores, -count)
        last = scores[order[-count]]  # partitioned: the lowest that is taken
        if not (scores[order[:-count]] == last).any():  # else: which of equal ones is taken depends on all places
            return near[order[-count:]]
    return base.argpartition(-count)[-count:]


def _lifts(edges: Sequence[tuple[int, int, str, float]], scores: dict[int, float]) -> dict[int, float]:
    """Row number → the best (score × link confidence) it is linked to; `contradicts` and `supersedes` lift nothing."""
    lifts: dict[int, float] = {}
    for source, target, type_, confidence in edges:
        if type_ in ("contradicts", "supersedes"):
            continue
        for known, other in ((source, target), (target, source)):
            if scores.get(known, 0.0) > 0:  # what misses the question lifts nothing
                lifts[other] = max(lifts.get(other, 0.0), scores[known] * confidence)
    return lifts
