"""A bank on a fresh memory with a clock that stands still."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from wellworn import Memory
from wellworn.tasks import ReasoningBank

from .world import AGENT, Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def open_bank(clock: Clock) -> Iterator[Callable[..., ReasoningBank]]:
    """Banks on memories of their own; options are those of `Memory.open`."""
    opened: list[Memory] = []

    def open_(location: Any = ":memory:", **options: Any) -> ReasoningBank:  # as `Memory.open` takes them
        options = {"embedder": "hash:64", "background": False, "clock": clock, **options}
        opened.append(Memory.open(location, **options))
        return ReasoningBank(opened[-1], scope=AGENT)

    yield open_
    for memory in opened:
        memory.close()


@pytest.fixture
def bank(open_bank: Callable[..., ReasoningBank]) -> ReasoningBank:
    return open_bank()
