"""A small world that has one of everything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from wellworn.core.clock import TimeOrderedIds
from wellworn.core.values import Entry, Scope
from wellworn.memory import Memory
from wellworn.models.hashing import HashEmbedder
from wellworn.models.port import Embedder
from wellworn.ops.reembed import adopt_model
from wellworn.store.port import Selection, Store
from wellworn.store.sqlite import SqliteStore

ADA = Scope(tenant="acme", user="ada", team="core")
BOB = Scope(tenant="acme", user="bob")
EVE = Scope(tenant="other", user="eve")


@dataclass
class Ticking:
    """A clock that moves on by a minute whenever it is read."""

    now: datetime = field(default_factory=lambda: datetime(2026, 5, 1, 9, 0, tzinfo=UTC))

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now


def open_store(folder: Path, name: str = "memory") -> Store:
    return SqliteStore(folder / f"{name}.db", durability="normal")


def open_memory(store: Store, embedder: Embedder | None = None, *, clock: Ticking | None = None) -> Memory:
    """A memory on a store, with the small hash embedder unless another is given."""
    embedder = embedder or HashEmbedder(16)
    adopt_model(store, embedder)
    return Memory(store, embedder=embedder, clock=clock or Ticking(), new_id=TimeOrderedIds())


def fill(memory: Memory) -> dict[str, str]:
    """Entries of every sort; returns the ids that tests speak of."""
    ids = {}
    (ids["tokio"],) = memory.remember(
        "Ada prefers tokio over async-std.",
        scope=ADA,
        kind="preference",
        tags=["rust", "async"],
        title="Runtimes",
        confidence=0.0,
        metadata={"score": 0.1, "nested": {"list": [1, None, "--- ü"]}},
        valid_to="2030-01-01",
    )
    (ids["old"],) = memory.remember("The office is in Bern.", scope=ADA, layer="team", evidence="\n---\nBern, yes\r\n")
    (ids["new"],) = memory.remember("The office is in Basel.", scope=ADA, layer="team", trust="untrusted")
    memory.supersede(ids["old"], ids["new"], scope=ADA)
    memory.edit(ids["tokio"], scope=ADA, text="Ada prefers tokio.", confidence=1.0)
    memory.link(ids["tokio"], ids["new"], "supports", scope=ADA, confidence=0.5)
    session = memory.session(scope=ADA, session_id="2026-05-01")
    ids["race"] = session.add("user", "I ran the charity race on Saturday", at="2026-04-30T10:00:00")
    ids["well done"] = session.add("assistant", "Well done!")
    (ids["long"], *_) = memory.remember(" ".join(f"Sentence number {n} says little." for n in range(200)), scope=BOB)
    (ids["eve"],) = memory.remember("Eve keeps bees.", scope=EVE)
    return ids


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def other_store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path, "other")
    yield opened
    opened.close()


@pytest.fixture
def memory(store: Store) -> Memory:
    return open_memory(store)


@pytest.fixture
def other(other_store: Store) -> Memory:
    return open_memory(other_store)


def entries_of(store: Store) -> dict[str, Entry]:
    return {entry.id: entry for _, entry in store.select(store.partitions(), Selection(), limit=100_000)}


def everything_in(store: Store) -> dict[str, Any]:  # for comparing two stores
    """All that an export is about, in an order that does not depend on row numbers."""
    entries = entries_of(store)
    heads = [(partition, head.id) for partition in store.partitions() for head in store.sessions(partition)]
    return {
        "entries": entries,
        "links": sorted(store.links(list(entries)), key=lambda link: (link.source, link.target, link.type)),
        "versions": {entry_id: store.replaced(entry_id) for entry_id in entries},
        "turns": {head: store.turns(*head) for head in heads},
        "sessions": {head: store.session(*head) for head in heads},
    }
