from __future__ import annotations

from collections.abc import Iterator

import pytest

from wellworn import Memory


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory.open(":memory:", background=False, explore=0.0) as opened:
        yield opened
