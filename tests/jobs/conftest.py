"""Both stores, a clock that stands still, and a queue on them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.world import ENGINES, Clock, make_queue, open_store
from wellworn.jobs import Queue
from wellworn.store.port import Store


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=ENGINES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    opened = open_store(request.param, tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def queue(store: Store, clock: Clock) -> Queue:
    return make_queue(store, clock)
