"""A bank to consolidate: an agent, entries put there with whatever numbers a test needs, vectors as a test says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from memory.world import NOON, Clock
from wellworn import Memory, Scope
from wellworn.core.values import Entry
from wellworn.store.port import Selection
from wellworn.tasks import ReasoningBank
from wellworn.tasks.items import domain_tags

AGENT = Scope(tenant="acme", agent="solver", team="ops")
PARTITION = AGENT.home("agent")

Matrix = npt.NDArray[np.float32]


class TableEmbedder:
    """Gives each text the vector that a table names, and any other text one of its own axes."""

    name = "test:table"

    def __init__(self, table: Mapping[str, Sequence[float]], width: int = 16) -> None:
        self.width = width
        self._table = table
        self._axes: dict[str, int] = {}

    def embed(self, texts: Sequence[str]) -> Matrix:
        return np.array([self._vector(text) for text in texts], dtype=np.float32)

    def embed_query(self, text: str) -> Matrix:
        return np.asarray(self.embed([text])[0])

    def _vector(self, text: str) -> Matrix:
        made = np.zeros(self.width, dtype=np.float32)
        if text in self._table:
            given = np.asarray(self._table[text], dtype=np.float32)
            made[: len(given)] = given / np.linalg.norm(given)
        else:
            axis = self._axes.setdefault(text, len(self._axes))
            made[self.width - 1 - axis % (self.width // 2)] = 1.0
        return made


def opened(path: Any = ":memory:", *, clock: Clock | None = None, **options: Any) -> Memory:  # keywords of Memory.open
    keywords = {"embedder": "reader", "clock": clock or Clock(), "background": False, **options}
    return Memory.open(path, **keywords)


def learn(
    mem: Memory,
    text: str,
    *,
    kind: str = "strategy",
    domain: str = "web",
    scope: Scope = AGENT,
    layer: str = "agent",
    **numbers: Any,
) -> str:  # any field of Entry
    """Keep an entry and give it these counts."""
    [id] = mem.remember(
        text,
        scope=scope,
        kind=kind,  # type: ignore[arg-type]
        tags=domain_tags(domain),
        layer=layer,  # type: ignore[arg-type]
        confidence=numbers.pop("confidence", 0.5),
        evidence=numbers.pop("evidence", None),
    )
    if numbers:
        entry = mem.get(id, scope=scope)
        with mem.engine.store.transact() as tx:
            tx.update(replace(entry, **numbers), change=None)
    return id


def live(mem: Memory, scope: Scope = AGENT) -> dict[str, Entry]:
    """Entries that hold, by text."""
    found = mem.entries(scope=scope, layer="agent", state=["active", "flagged"], limit=100_000)
    return {entry.text: entry for entry in found}


def standing(mem: Memory) -> tuple[list[Entry], list[tuple[str, str, str]]]:
    """Every entry of the agent but for when it was changed, and every link."""
    entries = [entry for _, entry in mem.engine.store.select([PARTITION], Selection(), limit=100_000)]
    links = mem.engine.store.links([entry.id for entry in entries])
    still = [replace(entry, updated_at=NOON) for entry in entries]
    return sorted(still, key=lambda e: e.id), sorted({(link.source, link.target, link.type) for link in links})


__all__ = [
    "AGENT",
    "NOON",
    "PARTITION",
    "Clock",
    "ReasoningBank",
    "TableEmbedder",
    "learn",
    "live",
    "opened",
    "standing",
]
