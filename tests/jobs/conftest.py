"""A store, a clock that stands still, and a queue on them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.world import Clock, make_queue
from wellworn.jobs import Queue
from wellworn.store.port import Store
from wellworn.store.sqlite import SqliteStore


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = SqliteStore(tmp_path / "jobs.db", durability="normal")
    yield opened
    opened.close()


@pytest.fixture
def queue(store: Store, clock: Clock) -> Queue:
    return make_queue(store, clock)
