from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from models.service import Service, serving
from wellworn.models import remote

_PREFIXES = ("OPENAI_", "ANTHROPIC_", "OLLAMA_", "WELLWORN_")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody's keys and addresses."""
    for name in list(os.environ):
        if name.startswith(_PREFIXES) or name.upper() in _PROXIES:
            monkeypatch.delenv(name)


@pytest.fixture
def service() -> Iterator[Service]:
    with serving(Service()) as server:
        yield server


@pytest.fixture(autouse=True)
def naps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long retries would have waited; chance shortens nothing."""
    waited: list[float] = []
    monkeypatch.setattr(remote, "sleep", waited.append)
    monkeypatch.setattr(remote, "random", lambda: 0.0)
    return waited
