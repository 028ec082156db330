"""The parts of an open memory that a framework's own interface is built from: the one place that takes it apart."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.embeddings.base import Embedder
from recollect.errors import InvalidInput
from recollect.items.keep import Items
from recollect.memory import Memory
from recollect.retrieval.pipeline import Searcher
from recollect.stores.base import Store


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
    store, searcher, embedder = memory._store, memory._searcher, memory._embedder
    return Engine(
        store=store, embedder=embedder, searcher=searcher,
        items=Items(store, searcher, memory._writer, embedder, source=source),
    )  # fmt: skip
