"""The parts of an open memory that the bank is built from: the one place here that takes it apart."""

from __future__ import annotations

from dataclasses import dataclass

from wellworn.core.clock import Clock
from wellworn.core.errors import InvalidInput
from wellworn.ingest.remember import Writer
from wellworn.ingest.scrub import ScrubberSpec, Scrubbing, choose_scrubbing
from wellworn.learning.learner import Learner
from wellworn.memory import Memory
from wellworn.search.pipeline import Searcher
from wellworn.search.profiles import PROFILES
from wellworn.search.score import FEATURES
from wellworn.store.port import Store

PROFILE = "reasoningbank"


@dataclass(frozen=True, kw_only=True, eq=False)
class Engine:
    """They share the memory's caches, its log and its life: closing the memory closes them."""

    store: Store
    writer: Writer
    searcher: Searcher
    """Ranks by the four factors, whatever the memory itself ranks by."""
    scrubbing: Scrubbing
    """Takes personal data and secrets out of what the bank keeps, asks and tells a model."""
    learner: Learner
    """Learns what that ranking lacks, from what the bank's recalls led to."""
    clock: Clock


def engine_of(memory: object, scrubber: ScrubberSpec = "mask") -> Engine:
    """The parts of a memory, scrubbing as `scrubbing_of` says."""
    if not isinstance(memory, Memory):
        raise InvalidInput("memory", f"must be a Memory, not {type(memory).__name__}", "use Memory.open(…)")
    clock, own = memory.engine.clock, memory.engine.learner
    learner = Learner(own.log, mode=own.mode, names=FEATURES, clock=clock, profile=PROFILE)
    scrubbing = scrubbing_of(memory, scrubber)
    return Engine(
        store=memory.engine.store,
        writer=memory.engine.writer.under(scrubbing),
        scrubbing=scrubbing,
        searcher=memory.engine.searcher.under(PROFILES[PROFILE], None if own.mode == "off" else learner, scrubbing),
        learner=learner,
        clock=clock,
    )


def scrubbing_of(memory: Memory, scrubber: ScrubberSpec) -> Scrubbing:
    """Where the memory scrubs by itself the bank does as it does, else by `scrubber`."""
    own = memory.engine.writer.scrubbing
    return own if own.on else choose_scrubbing(scrubber, memory.engine.store, clock=memory.engine.clock)
