"""What the parts of the bank share: the parts of an open memory, the scope of calls, and the ranking of items."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from wellworn.core.cache import LruCache
from wellworn.core.clock import to_micros
from wellworn.core.dataclass import dataclass
from wellworn.core.errors import InvalidInput, ScopeError
from wellworn.core.values import KINDS, Entry, Partition, Scope
from wellworn.ingest.scrub import ScrubberSpec, choose_scrubbing
from wellworn.ingest.terms import terms
from wellworn.ingest.validate import checked_scope
from wellworn.learning.learner import Learner
from wellworn.memory import Memory
from wellworn.search.context import SearchContext
from wellworn.search.profiles import PROFILES
from wellworn.search.score import FEATURES, MICROS_PER_DAY, Ranked
from wellworn.tasks.items import bank_partition, pattern_of
from wellworn.tasks.shell import programs
from wellworn.tasks.trajectory import Trajectory, scrubbed

if TYPE_CHECKING:
    from wellworn.background import Background

PROFILE = "reasoningbank"
GUARDRAIL_SHARE = 0.1
"""Taken off a guardrail's score where a strategy fits about as well."""
ALIKE = 0.9
"""Of a guardrail's similarity: a strategy that fits at least so well comes first."""
WORDS_SHARE = 0.6
SHARES = {"similarity": 0.65, "words": WORDS_SHARE}
MOST_READ, READ_CHARS = 4096, 4_000
"""Items whose words are kept at hand, and how much of their evidence is read."""
MIN_CONFIDENCE, LEAST_CONFIDENCE = 0.3, 0.1
"""How sure an item must be; and how sure for a task in the very words of its own, which may differ from those it failed at."""
FITS, LEAST_FIT = 0.6, 0.25
"""Of the best item's fit, and at all: what fits less is about something else. Set on the tasks of evals, tune words."""
Floats = npt.NDArray[np.float64]
_GUARDRAIL = KINDS.index("guardrail")


class Parts:
    """What the bank takes of a memory. It shares the memory's caches and its log; closing the memory closes it."""

    def __init__(self, memory: object, scope: Scope | None, scrubber: ScrubberSpec) -> None:
        """`scope` is for calls that name none. Where the memory scrubs, the bank scrubs alike, else by `scrubber`."""
        if not isinstance(memory, Memory):
            raise InvalidInput("memory", f"must be a Memory, not {type(memory).__name__}", "use Memory.open(…)")
        engine = memory.engine
        own, scope = engine.learner, scope or memory.scope
        self.memory, self.engine, self.ranking = memory, engine, ItemRanking()
        self.default = None if scope is None else checked_scope(scope)
        self.scrubbing = engine.scrubbing
        if not self.scrubbing.on:
            self.scrubbing = choose_scrubbing(scrubber, engine.store, clock=engine.clock)
        self.writer = engine.writer.under(self.scrubbing)
        self.learner = Learner(own.log, mode=own.mode, names=FEATURES, clock=engine.clock, profile=PROFILE)
        """Learns what the ranking lacks, from the outcomes of the bank's recalls."""
        learned = None if own.mode == "off" else self.learner
        self.searcher = engine.searcher.under(PROFILES[PROFILE], learned, self.scrubbing)
        """Ranks by the four factors, whatever the memory itself ranks by."""

    def scope(self, scope: Scope | None) -> Scope:
        wanted = self.default if scope is None else checked_scope(scope)
        if wanted is None:
            raise ScopeError("scope", "is missing", "give it to the call, or to ReasoningBank(memory, scope=…)")
        return wanted

    def partition(self, scope: Scope | None) -> Partition:
        """Where the bank writes."""
        return bank_partition(self.scope(scope))

    def scrubbed(self, trajectory: Trajectory, partition: Partition, *, asked: bool = False) -> Trajectory:
        """A trajectory as it is stored and sent to a model, or only `asked` about."""
        if not self.scrubbing.on:
            return trajectory
        scrub = self.scrubbing.asked(partition) if asked else self.scrubbing.sent(partition)
        return scrubbed(trajectory, scrub, self.scrubbing.asked(None))


class OfBank:
    """A part of the bank, with what of the memory most of them use."""

    def __init__(self, parts: Parts) -> None:
        engine = parts.engine
        self._parts, self._writer = parts, parts.writer
        self._store, self._clock, self._new_id = engine.store, engine.clock, engine.new_id

    @property
    def _background(self) -> Background:
        return self._parts.engine.background  # loaded on first use


# -- ranking ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ItemWords:
    """What ranking reads of one item, as hashes: reading texts again for every task would be slow."""

    key: str
    """Of its calls; its id where it has none."""
    task: frozenset[int]
    done: frozenset[int]
    """Words of its text and evidence."""
    shape: int
    subject: int
    """What its last call is about."""


_NONE = ItemWords(key="", task=frozenset(), done=frozenset(), shape=0, subject=0)


def words_of(entry: Entry) -> ItemWords:
    """What ranking reads of an item."""
    pattern = pattern_of(entry)
    last = next(reversed(pattern.calls or pattern.failed), None)
    command = "" if last is None else str(last.args.get("command", ""))
    return ItemWords(
        key=pattern.key(entry.kind) or entry.id,
        task=frozenset(terms(" ".join(pattern.conditions))),
        done=frozenset(terms(f"{entry.text} {entry.evidence[:READ_CHARS]}" if pattern.task else "")),
        shape=hash(pattern.shape),
        subject=hash((None if last is None else last.tool, programs(command)[-1:] if command else ())),
    )


class ItemRanking:
    """Ranks items for a task: the four factors, with recency counted from now, and the words of the task."""

    def __init__(self) -> None:
        self._read: LruCache[tuple[int, int], ItemWords] = LruCache(MOST_READ, of_texts=True)

    def items(self, ranked: Ranked, context: SearchContext) -> Ranked:
        """Every item; a guardrail a little lower where a strategy fits about as well.

        There are more ways to fail than to succeed, so guardrails gather where strategies are few. With one item a
        task they would take the place of the only strategy.
        """
        if not len(ranked.rows):
            return ranked
        ranked, words = _recent(ranked, context), _word_fit(self._words(ranked, context), context.query)
        ranked = ranked.with_factor("words", words, WORDS_SHARE) if words.any() else ranked
        guardrails = context.bank.column("kind", ranked.rows) == _GUARDRAIL
        if np.count_nonzero(guardrails) in (0, len(guardrails)):
            return ranked
        fit = _fit(ranked)
        matched = guardrails & (ALIKE * fit <= fit[~guardrails].max())
        return ranked.with_factor("guardrail", matched, -GUARDRAIL_SHARE) if np.count_nonzero(matched) else ranked

    def fitting(self, ranked: Ranked, context: SearchContext) -> Ranked:
        """What an agent is given: nothing that hardly fits or fits much less than the best, and the same calls only once.

        Items about other tasks use up the tries of an agent that follows whatever it is given. Where one item says to
        make some calls and another not to, the surer one is given.
        """
        asked, sure = frozenset(terms(context.query)), context.bank.column("confidence", ranked.rows)
        own = [bool(one.task) and one.task == asked for one in self._words(ranked, context)]
        ranked = self.items(ranked.take(np.flatnonzero((sure >= MIN_CONFIDENCE) | own)), context)
        if not len(ranked.rows):
            return ranked
        fit, words = _fit(ranked), self._words(ranked, context)
        kinds, sure = (context.bank.column(name, ranked.rows) for name in ("kind", "confidence"))
        surest: dict[str, int] = {}
        best: dict[str, int] = {}
        for place in np.argsort(-ranked.scores, kind="stable").tolist():
            if fit[place] < max(LEAST_FIT, FITS * float(fit.max())):
                continue
            key = words[place].key
            known = surest.setdefault(key, place)
            if kinds[known] != kinds[place] and sure[place] > sure[known]:
                surest[key] = best[key] = place
            elif kinds[known] == kinds[place]:
                best.setdefault(key, place)
        return ranked.take(sorted(best.values()))

    def _words(self, ranked: Ranked, context: SearchContext) -> list[ItemWords]:
        named = [*zip(*context.bank.named(ranked.rows), strict=True)]
        known = self._read.get_many(named)
        new = [place for place, name in enumerate(named) if name not in known]
        read = context.read(ranked.rows[new]) if new else {}
        for place in new:
            entry = read.get(int(ranked.rows[place]))
            known[named[place]] = _NONE if entry is None else words_of(entry)
            self._read.put(named[place], known[named[place]])
        return [known[name] for name in named]


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


def _word_fit(items: Sequence[ItemWords], query: str) -> Floats:
    """How far the words of the task are those of each item's task, or stand only in what was done at it: from 0 to 1.

    A word weighs more the fewer items have it, and the fewer different things these are about: a name occurs with
    all of them, "invoice" or "nightly" with one.
    """
    asked = set(terms(query))
    shapes: defaultdict[int, set[int]] = defaultdict(set)
    for item in items:
        for term in asked & item.done:
            shapes[term].add(item.shape)
    rare = {term for term, tasks in shapes.items() if len(tasks) == 1}
    told = [item.task | (rare & item.done) for item in items]
    subjects: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for item, words in zip(items, told, strict=True):
        for term in words:
            subjects[term][item.subject] += 1
    weight = {
        term: (math.log1p(len(items) / one.total()) * max(one.values()) / one.total()) ** 2
        for term, one in subjects.items()
    }

    def total(words: Iterable[int]) -> float:
        return sum(weight.get(term, 0.0) for term in words)

    own = total(asked)
    fits = [total(asked & words) / math.sqrt(max(own * total(words), 1e-12)) for words in told]
    return np.array(fits, dtype=np.float64)
