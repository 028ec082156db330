"""What `make test` leaves to `make test-all`: most cases of a long list, most examples of a property that is slow to try."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings

_USUAL = settings().max_examples
FEWER = settings(max_examples=_USUAL if _USUAL > 50 else _USUAL // 3)
"""A third of the examples; all of them in the heavy profile."""


def few(cases: Iterable[Any], number: int = 3) -> list[Any]:
    """All cases, for `parametrize`. About `number` of them, evenly apart, stand for all; the others are slow."""
    found = [case if isinstance(case, tuple) else (case,) for case in cases]
    step = -(-len(found) // number)
    return [pytest.param(*case, marks=pytest.mark.slow if n % step else ()) for n, case in enumerate(found)]
