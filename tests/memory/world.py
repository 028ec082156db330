"""People, a clock that stands still until told, and pictures of a whole store to compare before and after."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import numpy as np

from wellworn import Memory, Scope
from wellworn.core.values import Partition
from wellworn.store.events import events
from wellworn.store.port import Selection

NOON = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
ADA = Scope(tenant="acme", user="ada")
BEN = Scope(tenant="acme", user="ben")
FOREIGN_ADA = Scope(tenant="rival", user="ada")

OpenMemory = Callable[..., Memory]


class Clock:
    """Stands still until it is moved."""

    def __init__(self, now: datetime = NOON) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def forward(self, **by: float) -> datetime:
        self.now += timedelta(**by)
        return self.now


def partition_picture(
    mem: Memory, partition: Partition
) -> dict[str, Any]:  # a comparable value, whatever is on the partition
    """Everything a store holds of a partition: entries, index, vectors, links, versions, turns."""
    store = mem.engine.store
    rows = store.select([partition], Selection(), limit=1_000_000)
    stored = store.index_of([no for no, _ in rows])
    return {
        "entries": [(no, entry) for no, entry in rows],
        "index": [
            (
                no,
                index
                and (
                    index.terms.tobytes(),
                    index.counts.tobytes(),
                    index.near,
                    index.length,
                    index.chars,
                    index.traits,
                    index.speaker,
                ),
                None if vector is None else np.asarray(vector).tobytes(),
            )
            for no, (index, vector) in stored.items()
        ],
        "links": store.links([entry.id for _, entry in rows]),
        "versions": [store.replaced(entry.id) for _, entry in rows],
        "turns": {
            session: store.turns(partition, session) for session in (head.id for head in store.sessions(partition))
        },
    }


def picture(mem: Memory) -> dict[Any, Any]:  # partition → its picture, tenant → its log
    """Everything a store holds."""
    partitions = mem.engine.store.partitions()
    logs = {partition.tenant: events(mem.engine.store, partition.tenant, limit=1_000_000) for partition in partitions}
    return {**{partition: partition_picture(mem, partition) for partition in partitions}, **logs}


def file_bytes(path: Path) -> bytes:
    """The database file and whatever lies beside it: log, shared memory, journal."""
    return b"\0".join(file.read_bytes() for file in sorted(path.parent.glob(path.name + "*")) if file.is_file())


_NOT_DATA = (ModuleType, type, FunctionType, BuiltinFunctionType, CodeType, FrameType)


def reachable(root: object) -> Iterator[object]:
    """Every object that hangs on another one, code left aside."""
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, _NOT_DATA):
            continue
        seen.add(id(one))
        yield one
        waiting.extend(gc.get_referents(one))


def holds_text(root: object, marker: str) -> list[str]:
    """Texts with the marker in them that hang on an object."""
    return [
        repr(one)[:200]
        for one in reachable(root)
        if (isinstance(one, str) and marker in one) or (isinstance(one, bytes) and marker.encode() in one)
    ]


def texts(mem: Memory, query: str, scope: Scope, **options: Any) -> list[str]:  # the keywords of recall
    return [hit.entry.text for hit in mem.recall(query, scope=scope, **options).hits]
