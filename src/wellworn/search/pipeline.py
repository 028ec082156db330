"""The main road of recall: arms over every row → candidates → factors → links → what was learned → order → top k.

`Searcher.recall` is the road, `_rank` its core; the other methods are side roads that use parts of it. Deterministic:
equal inputs give equal hits in equal order. Only the hits' texts are read.
"""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import field
from datetime import datetime
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from wellworn.core.cache import forget_texts
from wellworn.core.clock import Clock, NewId, aware, to_micros
from wellworn.core.dataclass import dataclass, filled_each
from wellworn.core.errors import EmbeddingFailed, InvalidInput
from wellworn.core.locks import deadline, take_time
from wellworn.core.values import KINDS, Cost, Entry, Hit, Partition, Recall, Scope, altered, filled
from wellworn.ingest.scrub import NO_SCRUBBING, Scrubbing
from wellworn.ingest.terms import place_in_text, read_question
from wellworn.ingest.utterance import asks_assistant, asks_for_all, plainly
from wellworn.ingest.validate import checked_k, checked_query
from wellworn.language.parts import reader_of
from wellworn.language.reader import NAME as BUNDLED
from wellworn.language.sentences import in_other_script
from wellworn.learning.learner import Learner, Serving
from wellworn.learning.ranker import MAX_CORRECTION
from wellworn.learning.records import LoggedRecall
from wellworn.models.port import Embedder
from wellworn.search.bank import Bank, Rows, Vector
from wellworn.search.context import ALL, Bounds, Refine, SearchContext, told_of, view_of
from wellworn.search.filters import NO_FILTERS, Filters
from wellworn.search.profiles import PROFILES, Profile
from wellworn.search.ram import RAM_MB, Ram
from wellworn.search.score import (
    FACTORS,
    FEATURES,
    Ranked,
    Reasons,
    Values,
    confidence_of,
    diversify,
    factors,
    features,
    none_of,
    reasons_of,
)
from wellworn.search.sentences import Sentences
from wellworn.search.together import read_together
from wellworn.search.truth import moment_asked, settle, weighed
from wellworn.store.port import Store

if TYPE_CHECKING:
    from wellworn.search.engines import VectorEngine

ROUTE, WORDS_ROUTE = "hybrid", "words"
"""By words and meaning; and by words alone, while the embedder fails or the vectors are renewed."""
FOLD_DEPTH = 3
"""How many times k are looked at for memories and turns that share a place."""
TIE_DECIMALS = 3
"""Scores that agree to this many decimals are a tie, which the more specific layer wins."""
LOGGED_ROWS = 30
"""Best rows by base score that are logged besides the shown ones: without labels, they correct selection bias."""
HIT_BYTES = 4_000
"""What a kept hit takes besides its text: its factors, and itself as JSON."""
_FROM = "derived_from"
_EPISODE, _SUMMARY = KINDS.index("episode"), KINDS.index("summary")
_log = logging.getLogger("wellworn.search")
_NOTHING: frozenset[int] = frozenset()


def checked_profile(profile: str | Profile) -> Profile:
    """A profile by name or as given; every weight must be of a factor there is."""
    if not isinstance(profile, Profile) and (not isinstance(profile, str) or profile not in PROFILES):
        raise InvalidInput("profile", f"{profile!r} is unknown", f"use one of {', '.join(PROFILES)} or a Profile")
    chosen = PROFILES[profile] if isinstance(profile, str) else profile
    unknown = sorted(set(chosen.weights) - set(FACTORS))
    if unknown or not chosen.weights:
        problem = f"{chosen.name!r} weighs {', '.join(unknown) or 'nothing'}"
        raise InvalidInput("profile", problem, f"factors are {', '.join(FACTORS)}")
    return chosen


@dataclass(frozen=True, kw_only=True, eq=False)
class _Ask:
    """One question, checked and scrubbed."""

    query: str
    vector: Vector | None
    sentences: Sentences = field(default_factory=Sentences)
    k: int
    filters: Filters
    home: Partition | None = None
    """Whose recall it is; None: it is outside the log, and nothing learned applies."""
    recall_id: str = ""
    moment: Hashable = None
    """The store's when it was asked; see `Store.moment`."""


@dataclass(kw_only=True, eq=False)
class _Found:
    """What a recall found, and what that rests on: while it stands, the same recall would find the same."""

    nos: list[int]
    seqs: list[int]
    reasons: list[Reasons]
    searched: int
    confidence: float | None
    route: str
    logged: LoggedRecall
    state: list[object]
    """See `_state`."""
    since: datetime
    until: int
    """In microseconds: then an entry begins or ceases to be valid."""
    size: int
    """About the bytes that it takes."""
    json: list[msgspec.Raw] | None
    """Its hits, once they were sent on."""


class _Order(NamedTuple):
    """The top k of one recall."""

    ranked: Ranked
    searched: int
    """How many rows were eligible."""
    seen: _Seen | None = None
    """What learning saw of them."""
    odds: float | None = None
    """See `Together`."""


class _Seen(NamedTuple):
    """The candidates of one recall as learning sees them."""

    rows: Rows
    base: Values
    features: Values
    serving: Serving


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
        ram_bytes: int = RAM_MB * 1_000_000,
        engine: VectorEngine | None = None,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self.bundled = embedder is not None and embedder.name == BUNDLED
        """Whether the store has the bundled vectors."""
        self._read_parts = None if reader_of(embedder) is None else store.parts
        self._profile = profile
        self._clock = aware(clock)
        self._new_id = new_id
        self._learner = learner
        self._scrubbing = scrubbing
        self.ram = Ram(
            store,
            embedder,
            neighbour_weights=profile.near_meaning,
            forget=partial(_forget_removed, learner, embedder),
            max_bytes=ram_bytes,
            engine=engine,
        )

    def under(self, profile: Profile, learner: Learner | None, scrubbing: Scrubbing) -> Searcher:
        """A searcher that ranks and scrubs otherwise, over the same indexes and cache: forgotten is gone in both.

        A neighbour's share in `meaning` stays as these indexes have it; `similarity` has none.
        """
        other = copy.copy(self)
        other._profile, other._learner, other._scrubbing = profile, learner, scrubbing
        return other

    # -- the road ------------------------------------------------------------------------------------------------

    def recall(self, query: str, *, scope: Scope, k: int, filters: Filters, refine: Refine | None = None) -> Recall:
        """The k best entries for a query; `refine` may change the untrained ranking among those that pass."""
        started = time.perf_counter()
        query, home, same = self._same(query, scope, k, filters)
        until, recall_id, embedded, keep = deadline(), self._new_id(), 0, False
        found = self._found_before(same, scope, recall_id) if refine is None else None
        if found is None:
            asked, now = plainly(query), self.ram.now(scope.partitions())
            embed = partial(self._embed_if_it_works, asked)
            vector = embed() if until is None else until.wait_for(embed)
            ask = self._with_vector(asked, vector, k, filters, home=home, recall_id=recall_id, moment=now.moment)
            embedded = int(vector is not None)
            with self.ram.bank(scope.partitions(), now) as (bank, partitions):
                found = self._found(ask, bank, partitions, refine)
                if self._learner is not None and (until is None or until.left_s(whole=True) > 0):  # else nobody sees it
                    self._learner.log.add(
                        found.logged, new=home not in partitions and (until is None or not until.missed)
                    )
            keep = refine is None and until is None and found.route == ROUTE
        hits = self._hits(found.nos, found.seqs, found.reasons, filters.as_of or found.since)
        if keep:
            found.size += sum(len(hit.text) for hit in hits)
            self.ram.answers.put(same, found)
        return _recall_of(found, recall_id, query, hits, time.perf_counter() - started, embedded)

    def again(self, query: str, *, scope: Scope, k: int, filters: Filters) -> dict[str, Any] | None:
        """The fields of the same recall as lately, its hits as JSON, for whoever sends them on; None: it has to be
        computed."""
        started = time.perf_counter()
        query, _, same = self._same(query, scope, k, filters)
        found = self._found_before(same, scope, recall_id := self._new_id())
        if found is None:
            return None
        if found.json is None:
            hits = self._hits(found.nos, found.seqs, found.reasons, filters.as_of or found.since)
            found.json = [msgspec.Raw(msgspec.json.encode(hit)) for hit in hits]
        return {**vars(_recall_of(found, recall_id, query, [], time.perf_counter() - started)), "hits": found.json}

    def _same(self, query: str, scope: Scope, k: int, filters: Filters) -> tuple[str, Partition, Hashable]:
        """The query, checked and scrubbed, whose recall it is, and what the same recall has in common with it."""
        query, k = checked_query(query), checked_k(k)
        home = scope.home()  # a scope without a layer sees nothing: better an error than silence
        query = self.scrubbed(query, home)
        how = "" if filters is NO_FILTERS else repr(filters)
        return query, home, (query, tuple(scope.partitions()), k, how, self._profile.name, id(self._learner))

    def _found(self, ask: _Ask, bank: Bank, partitions: Sequence[Partition], refine: Refine | None) -> _Found:
        now, filters = self._clock(), ask.filters
        ranked, searched, seen, odds = self._rank(ask, bank, partitions, now, refine)
        by_words = self.bundled and in_other_script(ask.query)
        sure = confidence_of(
            ranked, self._profile, embeds=ask.vector is not None, by_reader=self.bundled, by_words=by_words, odds=odds
        )
        sure = 1.0 if ALL in ranked.names else sure
        if filters.min_confidence is not None and sure is not None and sure < filters.min_confidence:
            ranked = ranked.take([])
        nos, seqs = bank.named(ranked.rows)
        return _Found(
            nos=nos,
            seqs=seqs,
            reasons=reasons_of(ranked, ask.sentences.best(nos)),
            searched=searched,
            confidence=sure,
            logged=self._logged(ask, ranked, seen, bank, now),
            route=ROUTE if ask.vector is not None or self._embedder is None else WORDS_ROUTE,
            state=_state(bank, None if seen is None else seen.serving),
            since=now,
            until=bank.next_change(now),
            size=HIT_BYTES * (1 + len(nos)),
            json=None,
        )

    def _found_before(self, same: Hashable, scope: Scope, recall_id: str) -> _Found | None:
        """What the same recall found lately, if nothing has changed since. It is logged as another recall."""
        found: _Found | None = self.ram.answers.get(same)
        if found is None:
            return None
        now = self._clock()
        if found.state != self._state_now(scope) or now < found.since or to_micros(now) >= found.until:
            self.ram.answers.pop(same)
            return None
        if self._learner is not None:
            self._learner.log.add(altered(found.logged, id=recall_id, at=now))
        return found

    def _state_now(self, scope: Scope) -> list[object]:
        """What an answer would rest on now; as it was last time, while nobody has written anything."""
        now, learner = self.ram.now(scope.partitions()), self._learner
        seen = (scope, id(learner))
        known = self.ram.asked.get(seen)
        if known is not None and known[0] == now.moment:
            return known[1]  # type: ignore[no-any-return]
        take_time()
        with self.ram.bank(scope.partitions(), now) as (bank, _):
            state = _state(bank, None if learner is None else learner.serving(scope.home(), now.moment))
        self.ram.asked.put(seen, (now.moment, state))
        return state

    def unanswered(self, query: str, *, scope: Scope, seconds: float) -> Recall:
        """A recall that found nothing before its deadline. It is in the log, so that its outcome can be reported."""
        home = scope.home()
        ask = _Ask(
            query=self.scrubbed(query, home), vector=None, k=1, filters=NO_FILTERS, home=home, recall_id=self._new_id()
        )
        if self._learner is not None:
            self._learner.log.add(self._logged(ask, none_of(self._profile), None, Bank([]), self._clock()))
        return Recall(id=ask.recall_id, query=ask.query, hits=[], route=ROUTE, cost=Cost(seconds=seconds), cut=True)

    def _rank(
        self, ask: _Ask, bank: Bank, partitions: Sequence[Partition], now: datetime, refine: Refine | None = None
    ) -> _Order:
        bounds = self._bounds(ask, bank, partitions, now)
        if not (searched := bounds.searched):
            return _Order(none_of(self._profile), 0)
        if asks_for_all(ask.query) and len((told := told_of(bounds)).rows):
            return _Order(told.take(range(ask.k)[: len(told.rows)]), len(told.rows))
        context = self._context(ask, bounds, partitions)
        ranked = context.with_linked(factors(context.view))
        if refine is not None:
            ranked = refine(ranked, context)
        odds = None
        if self._profile.reads and ask.home is not None and deadline() is None:
            ranked, odds = read_together(ranked, context)
        ranked = weighed(ranked, context)
        seen = None
        if self._learner is not None and ask.home is not None:
            ranked, seen = self._corrected(self._learner, ranked, context, ask, ask.home)
            if seen.serving.ranker is not None:
                ranked = settle(ranked, context)  # what was learned cannot put what was replaced first
        ranked = self._first(ranked, bank, ask)
        if ask.filters.min_score is not None:
            ranked = ranked.take(np.flatnonzero(ranked.scores >= ask.filters.min_score))
        return _Order(ranked, searched, seen, odds)

    def _bounds(self, ask: _Ask, bank: Bank, partitions: Sequence[Partition], now: datetime) -> Bounds:
        moment = now = ask.filters.as_of or now
        if ask.filters.as_of is None and (then := moment_asked(ask.query)) is not None:
            moment = min(then, now)
        live = bank.live(now, outdated=moment < now or read_question(ask.query).about_past)
        wanted = bank.wanted(ask.filters, self._store, [partition.layer for partition in partitions])
        stating = bank.stating(asks_assistant=asks_assistant(ask.query))
        masks = [mask for mask in (live, wanted, stating) if mask is not None]
        return Bounds(
            bank=bank,
            profile=self._profile,
            live=live,
            eligible=reduce(np.logical_and, masks) if masks else None,
            moment=moment,
            candidates=max(self._profile.candidates, 2 * ask.k),
            sentences=ask.sentences,
            reader=self.bundled and ask.vector is not None and self.ram.fits(),
            learns=self._learner is not None,
        )

    def _context(self, ask: _Ask, bounds: Bounds, partitions: Sequence[Partition]) -> SearchContext:
        def scrub(query: str) -> str:
            return self.scrubbed(query, ask.home)

        began = time.perf_counter()
        view = view_of(bounds, ask.query, ask.vector)
        return SearchContext(
            bounds=bounds,
            bank=bounds.bank,
            query=ask.query,
            view=view,
            layers=[partition.layer for partition in partitions],
            seconds=time.perf_counter() - began,
            store=self._store,
            entries=self.ram.entries,
            scrub=scrub,
            embed=None if self._embedder is None else lambda query: self._embed(scrub(query)),
        )

    def _corrected(
        self, learner: Learner, ranked: Ranked, context: SearchContext, ask: _Ask, home: Partition
    ) -> tuple[Ranked, _Seen]:
        """The ranking with what was learned, when that serves."""
        base, serving, view = ranked.scores, learner.serving(home, ask.moment), context.view
        past = serving.past
        repeated, in_vain = ({}, {}) if past is None else past.values(view.question.terms)
        found = features(view, ranked, base, past, repeated)
        seen = _Seen(rows=ranked.rows, base=base, features=found, serving=serving)
        if serving.ranker is not None:
            ranked = ranked.with_factor("learned", serving.ranker.correction(base, found), 1.0)
        if in_vain and serving.outcomes:  # nothing helped when this was asked before: make room for others
            vain = [in_vain.get(no, 0.0) for no in context.bank.named(ranked.rows)[0]]
            ranked = ranked.with_factor("in_vain", np.array(vain), -MAX_CORRECTION)
        if serving.matrices is not None and view.vector is not None:
            from wellworn.learning.residual import paper_factors

            vectors = context.bank.vectors(ranked.rows)
            for name, values, weight in paper_factors(serving.matrices, view.vector, vectors, ask.recall_id):
                ranked = ranked.with_factor(name, values, weight)
        return ranked, seen

    def _first(self, ranked: Ranked, bank: Bank, ask: _Ask) -> Ranked:
        """The best k, in order. Of a memory and the turns it was derived from only the better is kept."""
        k, kinds = ask.k, ask.filters.kinds
        turns = kinds is None or "episode" in kinds
        if ask.home is not None and turns and (bank.kind[ranked.rows] == _EPISODE).any():
            return self._folded(self._ordered(ranked, bank, FOLD_DEPTH * k), bank, k)
        return self._ordered(ranked, bank, k)

    def _ordered(self, ranked: Ranked, bank: Bank, k: int) -> Ranked:
        """The best k: by score, then the more specific layer, then the newer entry, then the row stored first."""
        scores = np.rint(ranked.scores * 10**TIE_DECIMALS)
        newer, owner = -bank.at[ranked.rows], bank.owner(ranked.rows)
        order = np.lexsort((bank.no[ranked.rows], newer, owner, -scores))
        weight = self._profile.diversity
        if not weight or self._embedder is None:
            return ranked.take(order[:k])
        pool = ranked.take(order)
        places, redundancy = diversify(pool.scores, bank.vectors(pool.rows), k, lambda_=1 / (1 + weight))
        return pool.take(places).with_factor("diversity", -np.array(redundancy), weight)

    def _folded(self, ranked: Ranked, bank: Bank, k: int) -> Ranked:
        """The best k, of a memory and the turns it was derived from only the better: they say the same."""
        kinds = bank.kind[ranked.rows]
        turns = kinds == _EPISODE
        if turns.all() or not turns.any():
            return ranked.take(np.arange(min(k, len(turns))))
        nos = bank.no[ranked.rows].tolist()
        memories, beside = ranked.rows[~np.isin(kinds, (_EPISODE, _SUMMARY))], dict[int, set[int]]()
        for memory, turn in (edge[:2] for edge in self.ram.entries.edges(*bank.named(memories)) if edge[2] == _FROM):
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

    def _logged(self, ask: _Ask, ranked: Ranked, seen: _Seen | None, bank: Bank, now: datetime) -> LoggedRecall:
        """What was shown, and the best that was not; nothing of either when there were no candidates."""
        rows = ranked.rows if seen is None else seen.rows
        places = rows.tolist()
        shown = [places.index(row) for row in ranked.rows.tolist()]
        base = ranked.scores if seen is None else seen.base
        best = np.argsort(-base, kind="stable")[:LOGGED_ROWS].tolist()
        kept = np.array([*dict.fromkeys(shown + best)], dtype=np.intp)
        found = np.zeros((len(rows), len(FEATURES))) if seen is None else seen.features
        return filled(
            LoggedRecall,
            id=ask.recall_id,
            partition=ask.home,
            at=now,
            query=ask.query,
            profile=self._profile.name,
            level="base" if seen is None else seen.serving.level,
            nos=bank.named(rows.take(kept))[0],
            shown=len(shown),
            base=base.take(kept).astype(np.float32),
            names=list(FEATURES),
            features=found.take(kept, axis=0).astype(np.float32),
        )

    def _hits(self, nos: Sequence[int], seqs: Sequence[int], reasons: Sequence[Reasons], moment: datetime) -> list[Hit]:
        """The rows as entries, each with the reasons for its place; rows just removed are left out."""
        entries = self.ram.entries.read(nos, seqs)
        hits: list[dict[str, Any]] = []
        for no, (score, parts, place) in zip(nos, reasons, strict=True):
            if no in entries:
                entry = entries[no]
                outdated = entry.valid_to is not None and entry.valid_to <= moment
                sentence = None if place is None else place_in_text(entry, *place)
                about = {"explanation": parts, "outdated": outdated, "sentence": sentence}
                hits.append({"entry": entry, "score": score, **about})
        return filled_each(Hit, hits)

    # -- side roads ----------------------------------------------------------------------------------------------

    def search(self, query: str, *, partitions: Sequence[Partition], k: int, page: int) -> Iterator[list[Hit]]:
        """The k best entries of these partitions by the untrained ranking, outside the log that learning reads.

        Ranked at once and read page by page, so that a caller who picks among them may go far down.
        """
        ask, now = self._ask(query, partitions[0] if partitions else None, k), self._clock()
        with self.ram.bank(partitions) as (bank, there):
            ranked = self._rank(ask, bank, there, now).ranked
            nos, seqs = bank.named(ranked.rows)
        reasons = reasons_of(ranked)
        for start in range(0, len(nos), page):
            part = slice(start, start + page)
            yield self._hits(nos[part], seqs[part], reasons[part], now)

    def newest(self, *, partitions: Sequence[Partition], page: int) -> Iterator[list[Entry]]:
        """Entries of these partitions that begin a thread or have none, newest first, in any state, page by page."""
        with self.ram.bank(partitions) as (bank, _):
            nos, seqs = bank.named(bank.newest(self._clock()))
        for start in range(0, len(nos), page):
            part = slice(start, start + page)
            entries = self.ram.entries.read(nos[part], seqs[part])
            yield [entries[no] for no in nos[part] if no in entries]

    def similar(
        self, text: str, *, partition: Partition, k: int, kinds: Sequence[str]
    ) -> list[tuple[Entry, float | None]]:
        """The k entries of one partition that are most like a text, with their cosine (None without an embedder).

        Ranked without what was learned, and not logged.
        """
        ask = self._ask(text, partition, k, Filters(kinds=[*kinds]))
        with self.ram.bank([partition]) as (bank, partitions):
            ranked = self._rank(ask, bank, partitions, self._clock()).ranked
            nos, seqs = bank.named(ranked.rows)
            cosines: list[float | None] = [None] * len(nos)
            if ask.vector is not None and nos:
                cosines = (bank.vectors(ranked.rows) @ ask.vector).tolist()
        entries = self.ram.entries.read(nos, seqs)
        return [(entries[no], cosine) for no, cosine in zip(nos, cosines, strict=True) if no in entries]

    def examine(self, query: str, *, scope: Scope, k: int = 5) -> LoggedRecall | None:
        """What learning would see of a recall, without logging it; None when there is nothing to see."""
        home = scope.home()
        query = plainly(self.scrubbed(query, home))
        vector, recall_id = self._embed(query), self._new_id()
        ask = self._with_vector(query, vector, k, NO_FILTERS, home=home, recall_id=recall_id)
        with self.ram.bank(scope.partitions()) as (bank, partitions):
            now = self._clock()
            ranked, _, seen, _ = self._rank(ask, bank, partitions, now)
            return None if seen is None or not len(ranked.rows) else self._logged(ask, ranked, seen, bank, now)

    def scrubbed(self, query: str, partition: Partition | None) -> str:
        """The query as it may be embedded elsewhere and logged: also as what it asks for is stored."""
        return self._scrubbing.asked(partition)(query) if self._scrubbing.on else query

    def _ask(self, query: str, partition: Partition | None, k: int, filters: Filters = NO_FILTERS) -> _Ask:
        """A question outside the log."""
        query = self.scrubbed(query, partition)
        return self._with_vector(query, self._embed_if_it_works(query), k, filters)

    def _with_vector(self, query: str, vector: Vector | None, k: int, filters: Filters, **about: Any) -> _Ask:
        sentences = Sentences(self._read_parts, vector)
        return _Ask(query=query, vector=vector, sentences=sentences, k=k, filters=filters, **about)

    def _embed(self, query: str) -> Vector | None:
        if self._embedder is None or not self.ram.fits():
            return None
        vector = self._embedder.embed_query(query)
        if vector.shape != (self._embedder.width,) or not np.isfinite(vector).all():
            raise EmbeddingFailed(f"embedder {self._embedder.name!r} gave no usable vector for the query")
        return vector

    def _embed_if_it_works(self, query: str) -> Vector | None:
        """The query's vector, or None while the embedder fails: then the words are searched."""
        try:
            return self._embed(query)
        except EmbeddingFailed as error:
            _log.warning("searching by words alone: %s", error)
            return None

    def forget(self, partitions: Sequence[Partition]) -> int:
        """Drop what memory holds of what was removed from these partitions, words and vectors of texts included."""
        return self.ram.forget(partitions) + _forget_texts(self._embedder)


def _forget_removed(learner: Learner | None, embedder: Embedder | None, nos: Sequence[int]) -> None:
    """Rows are gone from the store, perhaps by another process."""
    if learner is not None:
        learner.forget(nos)
    _forget_texts(embedder)


def _forget_texts(embedder: Embedder | None) -> int:
    forget_texts()
    clear = getattr(embedder, "clear", None)
    return int(clear()) if callable(clear) else 0


def _recall_of(found: _Found, recall_id: str, query: str, hits: list[Hit], seconds: float, embedded: int = 0) -> Recall:
    return filled(
        Recall,
        id=recall_id,
        query=query,
        hits=hits,
        route=found.route,
        cost=Cost(seconds=seconds, embedded_texts=embedded),
        searched=found.searched,
        trace=(),
        confidence=found.confidence,
        digest="",
        cut=False,
    )


def _state(bank: Bank, serving: Serving | None) -> list[object]:
    """What the answer to a question rests on, besides the time."""
    past = None if serving is None or serving.past is None else len(serving.past)
    return [*((one.partition_no, one.known_seq) for one in bank.partitions), serving, past]
