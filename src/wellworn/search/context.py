"""One open search: everything that a query is answered from, within a recall's scope, filters and time.

`view_of` runs both arms over every row and takes the best as candidates. A recall goes on from there; a search in
several steps asks more of the same context (further queries, texts, links) and cannot reach further than the recall.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

import numpy as np

from wellworn.core.clock import to_micros
from wellworn.core.values import KINDS, Entry, Layer
from wellworn.ingest.terms import Question, read_question
from wellworn.ingest.utterance import asks_assistant
from wellworn.language.reader import bundled
from wellworn.search.arms import FewScores, LazyMeaning, LazyWords, Lexical, Scores, meaning, words
from wellworn.search.bank import Bank, Mask, Rows, Vector, distinct
from wellworn.search.partition import FETCHED_ROWS, NEAR_ROWS, WORDED_ROWS
from wellworn.search.profiles import Profile
from wellworn.search.ram import EntryCache
from wellworn.search.score import Ranked, View, dated, factors, none_of
from wellworn.search.sentences import Sentences
from wellworn.store.port import TELLING, Edge, Store

Check = Callable[[], None]
"""Raises when it is time to stop."""
Embed = Callable[[str], Vector | None]
ALL = "told"
"""The factor of hits for a question that asks for all that is known of a person."""
_TOLD = [KINDS.index(kind) for kind in ("fact", "preference", "pattern", "note")]


class Bounds(NamedTuple):
    """What a search may see, and how it scores."""

    bank: Bank
    profile: Profile
    live: Mask | None
    """Rows valid at the moment; None: all that are not dead."""
    eligible: Mask | None
    """Rows that the recall may return; None: all that are not dead."""
    moment: datetime
    candidates: int
    sentences: Sentences
    """Those of the candidates; read when a factor needs them."""
    reader: bool
    """Whether the vectors are the bundled reader's."""
    learns: bool
    """Whether learning looks at the candidates, and so needs the lexical arm whatever the profile."""

    @property
    def searched(self) -> int:
        return self.bank.size if self.eligible is None else int(np.count_nonzero(self.eligible))


class SearchContext(NamedTuple):
    """A query on its bounds, with its view."""

    bounds: Bounds
    bank: Bank
    query: str
    """What is asked, scrubbed."""
    view: View
    layers: Sequence[Layer]
    """The layer of each partition of the bank."""
    seconds: float
    """What both arms took, and so may take for another query."""
    store: Store
    entries: EntryCache
    scrub: Callable[[str], str]
    embed: Embed | None
    """The vector of another query, which may be slow; None where there is no embedder."""

    def about(self, query: str, vector: Vector | None, check: Check) -> tuple[Ranked, SearchContext]:
        """The ranking for another query and its vector, and its context; `check` may stop it on the way."""
        view = view_of(self.bounds, self.scrub(query), vector, check)
        return factors(view), self._replace(query=query, view=view)

    def on_layer(self, rows: Rows, layer: Layer | None) -> Mask:
        """Which of these rows are on a layer; all when none is named."""
        wanted = np.array([not layer or one == layer for one in self.layers], dtype=bool)
        return wanted[self.bank.owner(rows)]

    def read(self, rows: Rows) -> dict[int, Entry]:
        """Entries by row."""
        nos, seqs = self.bank.named(rows)
        entries = self.entries.read(nos, seqs)
        return {row: entries[no] for row, no in zip(rows.tolist(), nos, strict=True) if no in entries}

    def edges(self, rows: Rows, types: Sequence[str] = TELLING) -> list[Edge]:
        """Links of these types that touch these rows, by row number."""
        return [edge for edge in self.entries.edges(*self.bank.named(rows)) if edge[2] in types]

    def linked(self, rows: Rows) -> list[tuple[int, int, str, float]]:
        """Hand-made links that touch these rows, between rows: (source, target, type, confidence)."""
        edges = [edge[:4] for edge in self.entries.edges(*self.bank.named(rows)) if edge[4]]
        ends = {no: row for no in {end for edge in edges for end in edge[:2]} for row in self.bank.rows_of([no])}
        return [(ends[a], ends[b], type_, sure) for a, b, type_, sure in edges if a in ends and b in ends]

    def with_rows(self, ranked: Ranked, rows: Rows) -> Ranked:
        """The ranking with further rows; factors that were added to it are 0 for these."""
        if not len(rows):
            return ranked
        added = {*_allowed(rows, self.bounds).tolist()}.difference(ranked.rows.tolist())
        if not added:
            return ranked
        new = np.array(sorted(added), dtype=np.intp)
        values, weights = np.zeros((2, len(new), len(ranked.names)))
        own = factors(self.view.of_rows(new))
        values[:, : len(own.names)] = own.values
        weights[:] = ranked.weights[:1] if len(ranked.rows) else 1.0
        weights[:, : len(own.names)] = own.weights
        rows = np.concatenate([ranked.rows, new])
        values, weights = np.vstack([ranked.values, values]), np.vstack([ranked.weights, weights])
        return replace(ranked, rows=rows, values=values, weights=weights)

    def with_linked(self, ranked: Ranked) -> Ranked:
        """Candidates that hand-made links bring in, lifted to a share of the score they are linked to."""
        profile = self.bounds.profile
        if not profile.link_share or not self.bank.linked:
            return ranked
        best = ranked.take(ranked.order[: profile.link_sources])
        nos, seqs = self.bank.named(best.rows)
        edges = [edge[:4] for edge in self.entries.edges(nos, seqs) if edge[4]]
        lifts = _lifts(edges, dict(zip(nos, best.scores.tolist(), strict=True)))
        if not lifts:
            return ranked
        rows = {row: lift for no, lift in lifts.items() for row in self.bank.rows_of([no])}
        ranked = self.with_rows(ranked, np.array([*rows], dtype=np.intp))
        target = np.array([rows.get(row, -np.inf) for row in ranked.rows.tolist()])
        return ranked.with_factor("linked", np.maximum(target * profile.link_share - ranked.scores, 0.0), 1.0)


Refine = Callable[[Ranked, SearchContext], Ranked]
"""Changes a ranking before it is corrected by what was learned, and cut."""


def view_of(bounds: Bounds, query: str, vector: Vector | None, check: Check | None = None) -> View:
    """Both arms over the bank, and its best rows as candidates; between the arms `check` may stop it."""
    bank, profile = bounds.bank, bounds.profile
    question = read_question(query)
    worded = "terms" in profile.weights or bounds.learns
    nothing = np.zeros(0 if worded and vector is not None else len(bank), dtype=np.float32)
    near = None if vector is None else _near(bounds, vector, worded=worded)
    if check is not None:
        check()
    if worded:
        lexical = words(bank, question, profile, bounds.live, bounds.eligible, vector, bounds.candidates)
    else:
        lexical = Lexical(score=nothing, plain=nothing, found=[])
    if near is not None:
        near = distinct(_allowed(near, bounds), *_worded_rows(bounds, lexical))
    similarity: Scores | LazyMeaning = nothing
    blended: Scores | LazyMeaning = nothing
    if vector is not None and near is None:
        similarity, blended = meaning(bank, vector, profile)
    elif vector is not None:
        similarity = blended = LazyMeaning(bank, vector, known=lexical.products)
        if bank.threaded:
            blended = LazyMeaning(bank, vector, profile.near_meaning)
    if near is None:
        rows = _best(_base(bounds, question, slice(None), lexical, blended, similarity), bounds)
    else:
        scores = _base(bounds, question, near, lexical, blended, similarity)
        rows = np.sort(near[highest(scores, min(bounds.candidates, len(near)))]) if len(near) else near
    newest = max(partition.newest for partition in bank.partitions)
    by_reader = bounds.reader and vector is not None and bool(vector.any())
    past, assistant = _asked_for(query, question, vector if by_reader else None)
    return View(
        bank=bank,
        rows=rows,
        question=question,
        profile=profile,
        lexical=lexical,
        meaning=blended,
        similarity=similarity,
        vector=vector,
        sentences=bounds.sentences.of(vector),
        reference=min(to_micros(bounds.moment), newest),
        by_reader=by_reader,
        asks_past=past,
        asks_assistant=assistant,
    )


def _asked_for(query: str, question: Question, vector: Vector | None) -> tuple[float, float]:
    """How likely a question asks for what was so before, and for what the assistant said: by the reader, or by its words."""
    if vector is None:
        return float(question.about_past), float(asks_assistant(query))
    of_kind = bundled().asks(vector)
    return float(of_kind[1]), float(of_kind[2])


def _base(
    bounds: Bounds,
    question: Question,
    rows: Rows | slice,
    lexical: Lexical,
    blended: Scores | LazyMeaning,
    similarity: Scores | LazyMeaning,
) -> Scores:
    """The sum of what every row has, of some rows or of all."""
    bank, weights = bounds.bank, bounds.profile.weights
    arms = (("terms", lexical.score), ("meaning", blended), ("similarity", similarity))
    parts = [np.float32(weights[name]) * arm[rows] for name, arm in arms if name in weights]
    base = sum(parts[1:], parts[0]) if parts else np.zeros(len(bank), dtype=np.float32)[rows]
    if question.dates and "date" in weights:
        of = None if isinstance(rows, slice) else rows
        base += (weights["date"] * dated(question, bank, of)).astype(np.float32)
    return base


def _near(bounds: Bounds, vector: Vector, *, worded: bool) -> Rows | None:
    """The rows nearest in meaning, where a partition has signs or an engine, and those beside them; if it is `worded`, not
    those of a store, which tells them with its words.

    None: look at all of them.
    """
    bank, found, eligible = bounds.bank, [np.empty(0, dtype=np.intp)], bounds.eligible
    if not bank.inexact:
        return None
    for partition, start in bank.filled:
        if worded and not partition.words_held:
            continue
        passing = partition.alive if eligible is None else eligible[start : start + len(partition)]
        rows = partition.likely(vector, bounds.candidates, passing=passing)
        if rows is None:
            cosines = np.where(passing, partition.vectors @ vector, np.float32(-2))
            rows = highest(cosines, min(max(NEAR_ROWS, bounds.candidates), len(partition)))
        found.append(rows + start)
    near = np.concatenate(found)
    return _with_beside(bank, near) if bank.threaded else near


def _with_beside(bank: Bank, rows: Rows) -> Rows:
    """These rows and those around them: a turn is also found by what is said around it."""
    around = [bank.beside(name, rows) for name in ("before", "after", "before2", "after2")]
    return distinct(rows, *(them[them >= 0] for them in around))


def _worded_rows(bounds: Bounds, lexical: Lexical) -> Iterator[Rows]:
    """The rows with the highest scores of words; and those of which a store has told words and cosine, the best of them
    where a vector is needed for more."""
    fetched = any(partition.fetch for partition, _ in bounds.bank.filled)
    scores = lexical.score.rarer if isinstance(lexical.score, LazyWords) else lexical.score
    several, eligible, of = [rows for _, rows in lexical.found], bounds.eligible, None
    if isinstance(scores, FewScores):
        of, scores = scores.rows, scores.scores
        several = [of.searchsorted(rows) for rows in several]
        eligible = None if eligible is None else eligible[of]
    if eligible is not None:
        scores = np.where(eligible, scores, np.float32(0))
    best = _worded(scores, several, FETCHED_ROWS if fetched else WORDED_ROWS)
    yield _allowed(best if of is None else of[best], bounds)
    if (cosines := lexical.products) is not None:
        told, weights = _allowed(cosines.rows, bounds), bounds.profile.weights
        if bounds.bank.threaded and len(told):
            both = weights.get("terms", 0.0) * scores[told] + weights.get("meaning", 0.0) * cosines[told]
            near = highest(cosines[told], min(len(told), max(bounds.candidates, FETCHED_ROWS)))
            yield _allowed(_with_beside(bounds.bank, told[near]), bounds)
            told = told[highest(both, min(len(told), FETCHED_ROWS))]
        yield told


def _worded(scores: Scores, of_terms: Sequence[Rows], count: int) -> Rows:
    """The rows with the highest scores of words; of many that are equal any."""
    least = np.finfo(np.float32).tiny
    enough = [rows for rows in of_terms if len(rows) >= count]
    if enough:  # so many rows of the rarest reach the score that its last of them has
        of_rarest = scores[min(enough, key=len)]
        least = max(least, np.partition(of_rarest, -count)[-count])
    rows = np.flatnonzero(scores >= least)
    return rows[scores[rows].argpartition(-count)[-count:]] if len(rows) > count else rows


def _allowed(rows: Rows, bounds: Bounds) -> Rows:
    """Those that the recall may return."""
    if bounds.eligible is not None:
        return rows[bounds.eligible[rows]]
    return rows[~np.isin(rows, bounds.bank.dead)] if len(bounds.bank.dead) else rows


def _best(base: Scores, bounds: Bounds) -> Rows:
    """Rows of the highest base scores, in row order. Overwrites the scores of rows that may not be returned."""
    count = min(bounds.candidates, bounds.searched)
    if count == len(base):
        return np.arange(len(base))
    if bounds.eligible is not None:
        np.putmask(base, ~bounds.eligible, -np.inf)
    elif len(bounds.bank.dead):
        base[bounds.bank.dead] = -np.inf
    rows = highest(base, count)
    rows.sort()
    return rows


def highest(base: Scores, count: int) -> Rows:
    """Places of the highest scores, in no order."""
    return base.argpartition(-count)[-count:]


def _lifts(edges: Sequence[tuple[int, int, str, float]], scores: dict[int, float]) -> dict[int, float]:
    """Row number → the best (score × link confidence) it is linked to; `contradicts` and `supersedes` lift nothing."""
    lifts: dict[int, float] = {}
    for source, target, type_, confidence in edges:
        if type_ in ("contradicts", "supersedes"):
            continue
        for known, other in ((source, target), (target, source)):
            if scores.get(known, 0.0) > 0:  # a source that misses the question lifts nothing
                lifts[other] = max(lifts.get(other, 0.0), scores[known] * confidence)
    return lifts


def told_of(bounds: Bounds) -> Ranked:
    """What was told and holds, the newest first, whatever its words."""
    rows = bounds.bank.newest(bounds.moment)
    rows = rows if bounds.eligible is None else rows[bounds.eligible[rows]]
    rows = rows[np.isin(bounds.bank.kind[rows], _TOLD)]
    none = none_of(bounds.profile)
    nothing = np.zeros((len(rows), len(none.names)))
    told = replace(none, rows=rows, values=nothing, weights=nothing)
    return told.with_factor(ALL, np.ones(len(rows)), 1.0)
