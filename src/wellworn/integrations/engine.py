"""The parts of an open memory that a framework's own interface is built from: the one place that takes it apart."""

from __future__ import annotations

from dataclasses import dataclass

from wellworn.core.errors import InvalidInput
from wellworn.integrations.items.keep import Items
from wellworn.memory import Memory
from wellworn.models.port import Embedder
from wellworn.search.pipeline import Searcher
from wellworn.store.port import Store


@dataclass(frozen=True, kw_only=True)
class Engine:
    """They share the memory's caches and its life: closing the memory closes them."""

    store: Store
    embedder: Embedder | None
    searcher: Searcher
    items: Items


def engine_of(memory: object, *, source: str) -> Engine:
    """The parts of a memory; `source` is what entries written through them say they come from."""
    if not isinstance(memory, Memory):
        raise InvalidInput("memory", f"must be a Memory, not {type(memory).__name__}", "use Memory.open(…)")
    store, searcher, embedder = memory.engine.store, memory.engine.searcher, memory.engine.embedder
    return Engine(
        store=store,
        embedder=embedder,
        searcher=searcher,
        items=Items(store, searcher, memory.engine.writer, embedder, source=source),
    )
