"""Async tests of this folder run in an event loop of their own. Imports no framework: each of them may be missing."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator

import pytest

from wellworn import Memory


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return None
    wanted = inspect.signature(test).parameters
    asyncio.run(test(**{name: pyfuncitem.funcargs[name] for name in wanted}))
    return True


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory(":memory:", background=False) as opened:
        yield opened
