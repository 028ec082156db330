"""What the parts of the bank share: the parts of an open memory, the scope of calls, and the ranking of items."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from wellworn.core.clock import Clock, NewId
from wellworn.core.errors import InvalidInput, ScopeError
from wellworn.core.values import KINDS, Partition, Scope
from wellworn.ingest.remember import Writer
from wellworn.ingest.scrub import ScrubberSpec, Scrubbing, choose_scrubbing
from wellworn.ingest.validate import checked_scope
from wellworn.jobs.queue import Queue
from wellworn.learning.learner import Learner
from wellworn.memory import Memory
from wellworn.models.port import Model
from wellworn.search.context import SearchContext
from wellworn.search.pipeline import Searcher
from wellworn.search.profiles import PROFILES
from wellworn.search.score import FEATURES, Ranked
from wellworn.store.port import Store
from wellworn.tasks.items import bank_partition

PROFILE = "reasoningbank"
GUARDRAIL_SHARE = 0.1
"""Taken off a guardrail's score where a strategy fits about as well."""
ALIKE = 0.9
"""Of a guardrail's similarity: a strategy that fits at least so well comes first."""
FITS = 0.6
"""Of the best item's similarity: what fits less is about something else."""
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


def fitting(ranked: Ranked, context: SearchContext) -> Ranked:
    """What an agent is given: nothing that fits much less than the best, guardrails a little lower.

    Items about other tasks use up the tries of an agent that follows whatever it is given.
    """
    if len(ranked.rows) and "similarity" in ranked.names:
        similarity = ranked.values[:, ranked.names.index("similarity")]
        ranked = ranked.take(np.flatnonzero(similarity >= FITS * max(float(similarity.max()), 0.0)))
    return strategies_first(ranked, context)


def strategies_first(ranked: Ranked, context: SearchContext) -> Ranked:
    """The ranking with guardrails a little lower, where a strategy fits about as well.

    There are more ways to fail than to succeed, so guardrails gather where strategies are few. With one item a task
    they would take the place of the only strategy.
    """
    guardrails = context.view.bank.column("kind", ranked.rows) == _GUARDRAIL
    if np.count_nonzero(guardrails) in (0, len(guardrails)) or "similarity" not in ranked.names:
        return ranked
    similarity = ranked.values[:, ranked.names.index("similarity")]
    matched = guardrails & (ALIKE * similarity <= similarity[~guardrails].max())
    return ranked.with_factor("guardrail", matched, -GUARDRAIL_SHARE) if np.count_nonzero(matched) else ranked
