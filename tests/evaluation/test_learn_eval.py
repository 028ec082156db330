"""The simulated person of `evals.learn`: which hits they cite, and how often they err."""

from __future__ import annotations

import random

import pytest
from evals.learn import Citing

SHOWN = [True, False, True, False, False]


@pytest.mark.parametrize(
    ("feedback", "places"), [("honest", [0, 2]), ("inverted", [1, 3, 4]), ("first", [0]), ("last", [4])]
)
def test_citations_without_noise(feedback: str, places: list[int]) -> None:
    assert Citing(feedback=feedback).cited(SHOWN, random.Random(1)) == places


@pytest.mark.parametrize(("feedback", "on_evidence", "elsewhere"), [("honest", 0.7, 0.15), ("random", 0.3, 0.3)])
def test_error_rates_are_met(feedback: str, on_evidence: float, elsewhere: float) -> None:
    rng, citing = random.Random(2), Citing(feedback=feedback, miss=0.3, false=0.15)
    runs = [citing.cited(SHOWN, rng) for _ in range(4000)]
    assert sum(0 in run for run in runs) / 4000 == pytest.approx(on_evidence, abs=0.03)
    assert sum(1 in run for run in runs) / 4000 == pytest.approx(elsewhere, abs=0.03)
