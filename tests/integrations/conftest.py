"""Async tests of this folder run in an event loop of their own; the rest of the suite has none."""

from __future__ import annotations

import pytest

from frameworks.conftest import memory as memory
from frameworks.conftest import pytest_pyfunc_call as pytest_pyfunc_call
from integrations.world import HandClock


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "vcr: on tests of chat models in langchain-tests; none of them runs here")


@pytest.fixture
def clock() -> HandClock:
    return HandClock()
