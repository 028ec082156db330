"""The parts of an open memory that the bank is built from: the one place here that takes it apart."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.clock import Clock, aware
from recollect.errors import InvalidInput
from recollect.ingest.remember import Writer
from recollect.learning.learner import Learner
from recollect.memory import Memory
from recollect.retrieval.evidence import EVIDENCE
from recollect.retrieval.learned import Learned
from recollect.retrieval.pipeline import Searcher
from recollect.retrieval.profiles import PROFILES
from recollect.stores.base import Store

PROFILE = "reasoningbank"


@dataclass(frozen=True, kw_only=True, eq=False)
class Engine:
    """They share the memory's caches, its log and its life: closing the memory closes them."""

    store: Store
    writer: Writer
    searcher: Searcher
    """Ranks by the four factors, whatever the memory itself ranks by."""
    learner: Learner
    """Learns what that ranking lacks, from what the bank's recalls led to."""
    clock: Clock


def engine_of(memory: object) -> Engine:
    """The parts of a memory."""
    if not isinstance(memory, Memory):
        raise InvalidInput("memory", f"must be a Memory, not {type(memory).__name__}", "use Memory.open(…)")
    clock, own = aware(memory._clock), memory._learner
    learner = Learner(memory._store, mode=own.mode, names=EVIDENCE, clock=clock, profile=PROFILE, log=own.log)
    learned = None if own.mode == "off" else Learned(learner, explore=0.0, clock=clock)
    return Engine(
        store=memory._store, writer=memory._writer, searcher=memory._searcher.under(PROFILES[PROFILE], learned),
        learner=learner, clock=clock,
    )  # fmt: skip
