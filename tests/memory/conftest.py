"""A memory in a temporary store, and a clock that stands still."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memory.world import Clock, OpenMemory
from wellworn import Memory


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def location() -> str:
    return ":memory:"


@pytest.fixture
def opened(clock: Clock) -> Iterator[OpenMemory]:
    """Opens memories with the hash embedder and the still clock, and closes them all in the end."""
    memories: list[Memory] = []

    def open_(location: str | Path = ":memory:", **options: Any) -> Memory:  # the keywords of Memory.open
        memories.append(Memory.open(location, **{"embedder": "hash", "clock": clock, **options}))
        return memories[-1]

    yield open_
    for memory in memories:
        memory.close()


@pytest.fixture
def mem(location: str, opened: OpenMemory) -> Memory:
    return opened(location)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"
