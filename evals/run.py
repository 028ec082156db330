"""What every evaluation shares: its settings, a fresh memory for each conversation, timed recalls, scoring.

Uses the public facade only, so that what is measured is what a user gets.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from evals import metrics
from wellworn.core.errors import InvalidInput
from wellworn.core.values import Hit, Progress, Scope
from wellworn.memory import Memory

# Sessions and passages are ranked by their best hit, and one session fills many places: ask for this many times k.
WIDER = 10
LARGEST_K = 1000


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How to run: the cut-offs, and what `Memory.open` is given."""

    ks: tuple[int, ...] = (5, 10, 20)
    embedder: str = "static"
    profile: str = "default"
    recursion: str = "on"

    def open(self) -> Memory:
        """An empty memory, gone when closed."""
        return Memory.open(":memory:", embedder=self.embedder, profile=self.profile, recursion=self.recursion)


@dataclass(kw_only=True)
class Steps:
    """Counts work done against work planned and tells the progress callback."""

    total: int
    progress: Progress | None
    done: int = 0

    def advance(self) -> None:
        self.done += 1
        if self.progress is not None:
            self.progress(self.done, self.total)


def parse_ks(text: str) -> tuple[int, ...]:
    """Cut-offs from text such as `5,10,20`, ascending and without repeats."""
    try:
        ks = sorted({int(part) for part in text.split(",")})
    except ValueError:
        ks = []
    if not ks or ks[0] < 1 or ks[-1] > LARGEST_K:
        raise InvalidInput("--k", f"{text!r} is not a list of cut-offs", f"as in 5,10,20, each 1 to {LARGEST_K}")
    return tuple(ks)


def scope_for(name: str) -> Scope:
    """The scope of one conversation."""
    return Scope(tenant="eval", user=name)


def timed_recall(memory: Memory, query: str, *, scope: Scope, k: int) -> tuple[list[Hit], float]:
    """The hits and the seconds they took."""
    start = time.perf_counter()
    hits = memory.recall(query, scope=scope, k=k).hits
    return hits, time.perf_counter() - start


def turns_of(hits: Iterable[Hit]) -> list[tuple[str, int]]:
    """(session id, turn number) of each hit, best first."""
    return [(hit.entry.session_id, n) for hit in hits if hit.entry.session_id for n in hit.entry.turn_refs]


def sessions_of(hits: Iterable[Hit]) -> list[str]:
    """Session ids in the order of their best hit."""
    return metrics.distinct(hit.entry.session_id for hit in hits if hit.entry.session_id)


def score(
    ranked: Sequence[metrics.Name], relevant: Collection[metrics.Name], ks: Sequence[int], *, with_all: bool = False
) -> dict[str, float]:
    """Every metric at every cut-off; `with_all` adds all@k, for questions that need all of their evidence."""
    functions = {"recall": metrics.recall_at_k, "hit": metrics.hit_at_k, "ndcg": metrics.ndcg_at_k}
    if with_all:
        functions["all"] = metrics.all_at_k
    return {f"{name}@{k}": function(ranked, relevant, k) for name, function in functions.items() for k in ks}
