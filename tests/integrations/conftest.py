"""Async tests of this folder run in an event loop of their own; the rest of the suite has none."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator

import pytest

from integrations.world import HandClock
from wellworn import Memory


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "vcr: on tests of chat models in langchain-tests; none of them runs here")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return None
    wanted = inspect.signature(test).parameters
    asyncio.run(test(**{name: pyfuncitem.funcargs[name] for name in wanted}))
    return True


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory(":memory:", background=False) as opened:
        yield opened
