"""What the parts of the bank share: the parts of an open memory, the scope of calls, and the ranking of items."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from wellworn.core.clock import Clock, NewId, to_micros
from wellworn.core.errors import InvalidInput, ScopeError
from wellworn.core.values import KINDS, Entry, Partition, Scope
from wellworn.ingest.remember import Writer
from wellworn.ingest.scrub import ScrubberSpec, Scrubbing, choose_scrubbing
from wellworn.ingest.terms import terms
from wellworn.ingest.validate import checked_scope
from wellworn.jobs.queue import Queue
from wellworn.learning.learner import Learner
from wellworn.memory import Memory
from wellworn.models.port import Model
from wellworn.search.context import SearchContext
from wellworn.search.pipeline import Searcher
from wellworn.search.profiles import PROFILES
from wellworn.search.score import FEATURES, MICROS_PER_DAY, Ranked
from wellworn.store.port import Store
from wellworn.tasks.items import Pattern, bank_partition, pattern_of

PROFILE = "reasoningbank"
GUARDRAIL_SHARE = 0.1
"""Taken off a guardrail's score where a strategy fits about as well."""
ALIKE = 0.9
"""Of a guardrail's similarity: a strategy that fits at least so well comes first."""
WORDS_SHARE = 0.6
SHARES = {"similarity": 0.65, "words": WORDS_SHARE}
RARE = 1
FITS = 0.6
"""Of the best item's similarity: what fits less is about something else."""
Floats = npt.NDArray[np.float64]
_GUARDRAIL = KINDS.index("guardrail")


@dataclass(frozen=True, kw_only=True, eq=False)
class Parts:
    """They share the memory's caches and its log. Closing the memory closes them."""

    memory: Memory
    store: Store
    writer: Writer
    searcher: Searcher
    """Ranks by the four factors, whatever the memory itself ranks by."""
    learner: Learner
    """Learns what that ranking lacks, from the outcomes of the bank's recalls."""
    scrubbing: Scrubbing
    queue: Queue
    wake: Callable[[], None]
    """Tells the worker that a job was queued."""
    model: Callable[[Partition, str | None], Model | None]
    clock: Clock
    new_id: NewId
    default: Scope | None
    """The scope of calls that name none."""

    def scope(self, scope: Scope | None) -> Scope:
        wanted = self.default if scope is None else checked_scope(scope)
        if wanted is None:
            raise ScopeError("scope", "is missing", "give it to the call, or to ReasoningBank(memory, scope=…)")
        return wanted

    def partition(self, scope: Scope | None, layer: str | None = None) -> Partition:
        """The partition that is meant: of a layer of the scope, or where the bank writes."""
        wanted = self.scope(scope)
        return bank_partition(wanted) if layer is None else wanted.home(layer)


def parts_of(memory: object, scope: Scope | None, scrubber: ScrubberSpec) -> Parts:
    """The parts of a memory. Where the memory scrubs, the bank scrubs the same way, else by `scrubber`."""
    if not isinstance(memory, Memory):
        raise InvalidInput("memory", f"must be a Memory, not {type(memory).__name__}", "use Memory.open(…)")
    engine = memory.engine
    scope = scope or memory.scope
    scrubbing = engine.scrubbing
    if not scrubbing.on:
        scrubbing = choose_scrubbing(scrubber, engine.store, clock=engine.clock)
    own = engine.learner
    learner = Learner(own.log, mode=own.mode, names=FEATURES, clock=engine.clock, profile=PROFILE)
    learned = None if own.mode == "off" else learner
    return Parts(
        memory=memory,
        store=engine.store,
        writer=engine.writer.under(scrubbing),
        searcher=engine.searcher.under(PROFILES[PROFILE], learned, scrubbing),
        learner=learner,
        scrubbing=scrubbing,
        queue=engine.background.queue,
        wake=engine.background.wake,
        model=engine.background.model,
        clock=engine.clock,
        new_id=engine.new_id,
        default=None if scope is None else checked_scope(scope),
    )


# -- ranking ---------------------------------------------------------------------------------------------------------


def ranked_items(ranked: Ranked, context: SearchContext) -> Ranked:
    """The four factors for items: recency counts from now, the words of the task count beside its meaning, and a
    guardrail comes a little lower where a strategy fits about as well.

    There are more ways to fail than to succeed, so guardrails gather where strategies are few. With one item a task
    they would take the place of the only strategy.
    """
    if not len(ranked.rows):
        return ranked
    entries = context.read(ranked.rows)
    ranked, words = _recent(ranked, context), _words(ranked, context.query, entries)
    ranked = ranked.with_factor("words", words, WORDS_SHARE) if words.any() else ranked
    guardrails = context.view.bank.column("kind", ranked.rows) == _GUARDRAIL
    if np.count_nonzero(guardrails) in (0, len(guardrails)):
        return ranked
    similarity = _fit(ranked)
    matched = guardrails & (ALIKE * similarity <= similarity[~guardrails].max())
    return ranked.with_factor("guardrail", matched, -GUARDRAIL_SHARE) if np.count_nonzero(matched) else ranked


def fitting(ranked: Ranked, context: SearchContext) -> Ranked:
    """What an agent is given: nothing that fits much less than the best, and the same calls only once.

    Items about other tasks use up the tries of an agent that follows whatever it is given.
    """
    ranked = ranked_items(ranked, context)
    if not len(ranked.rows):
        return ranked
    fit, entries = _fit(ranked), context.read(ranked.rows)
    surest: dict[str, Entry] = {}
    best: dict[str, int] = {}
    for place in np.argsort(-ranked.scores, kind="stable").tolist():
        row = int(ranked.rows[place])
        entry = entries.get(row)
        if entry is not None and fit[place] >= FITS * max(float(fit.max()), 0.0):
            key = pattern_of(entry).key(entry.kind) or entry.id
            known = surest.setdefault(key, entry)
            if known.kind != entry.kind and entry.confidence > known.confidence:  # to do it, or not: the surer says
                surest[key] = entry
                best.pop(key)
            if surest[key].kind == entry.kind:
                best.setdefault(key, place)
    return ranked.take(sorted(best.values()))


def _fit(ranked: Ranked) -> Floats:
    """How well each item fits the task, by meaning and by words."""
    names = [name for name in ("similarity", "words") if name in ranked.names]
    return np.asarray(sum(ranked.values[:, ranked.names.index(n)] * SHARES[n] for n in names), dtype=np.float64)


def _recent(ranked: Ranked, context: SearchContext) -> Ranked:
    if "recency" not in ranked.names:
        return ranked
    now, values = to_micros(context.bounds.moment), ranked.values.copy()
    days = np.maximum(now - context.bank.column("at", ranked.rows), 0) / MICROS_PER_DAY
    values[:, ranked.names.index("recency")] = np.exp(-days / context.bounds.profile.recency_days)
    return replace(ranked, values=values)


def _words(ranked: Ranked, query: str, entries: Mapping[int, Entry]) -> Floats:
    """How far the words of the task are those of each item's task, or stand in what was done at it: from 0 to 1.

    A word weighs more the fewer items have it, and the fewer different things these are about: a name occurs with
    all of them, "invoice" or "nightly" with one.
    """
    found = [entries.get(row) for row in ranked.rows.tolist()]
    patterns = [Pattern() if entry is None else pattern_of(entry) for entry in found]
    asked = set(terms(query))
    told = [set(terms(" ".join(one.conditions))) for one in patterns]
    done = [
        asked & set(terms(f"{entry.text} {entry.evidence}")) if entry is not None and pattern.tasks else set()
        for entry, pattern in zip(found, patterns, strict=True)
    ]
    about: defaultdict[int, set[str]] = defaultdict(set)
    for pattern, words in zip(patterns, done, strict=True):
        for term in words:
            about[term].add(pattern.shape)
    told = [a | {term for term in b if len(about[term]) <= RARE} for a, b in zip(told, done, strict=True)]
    subjects: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for pattern, words in zip(patterns, told, strict=True):
        last = next(reversed(pattern.calls or pattern.failed), None)
        for term in words:
            subjects[term]["" if last is None else last.tool] += 1
    weight = {
        term: (math.log1p(len(found) / one.total()) * max(one.values()) / one.total()) ** 2
        for term, one in subjects.items()
    }

    def total(words: set[int]) -> float:
        return sum(weight.get(term, 0.0) for term in words)

    fits = [total(asked & words) / math.sqrt(max(total(asked) * total(words), 1e-12)) for words in told]
    return np.array(fits, dtype=np.float64)
