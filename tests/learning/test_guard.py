"""Evidence, trust and the switch."""

from __future__ import annotations

from itertools import accumulate, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellworn.learning.guard import AGREEMENT_BAR, LEAST, MEMORY, Evidence, Guard, auc, earned, proven

YES, NO = Evidence(n=100, total=20, squares=8), Evidence(n=100, total=-20, squares=8)
HONEST = Evidence(n=100, total=25, squares=12)


@pytest.mark.parametrize(
    ("scores", "cited", "value"),
    [([3, 2, 1], [1, 0, 0], 0.5), ([3, 2, 1], [0, 0, 1], -0.5), ([3, 2, 1], [0, 1, 0], 0), ([0, 0, 0], [0, 1, 0], 0)],
)
def test_auc_counts_pairs_in_the_right_order(scores: list[float], cited: list[bool], value: float) -> None:
    assert auc(scores, cited) == value


@given(st.lists(st.floats(-1, 1), max_size=30))
def test_evidence_is_a_fading_mean_with_its_error(values: list[float]) -> None:
    *_, found = accumulate(values, Evidence.add, initial=Evidence())
    fade = np.array([(1 - 1 / MEMORY) ** age for age in range(len(values))][::-1])
    assert found.n == pytest.approx(fade.sum())
    assert found.mean == pytest.approx(float((fade * values).sum() / (fade.sum() or 1)), abs=1e-12)
    assert found.bound(-1) <= found.mean <= found.bound(1)
    assert np.isfinite(found.bound(1)) == (len(values) > 2)


def test_pooled_evidence_counts_as_no_more_than_it_may() -> None:
    pooled = Evidence(n=50, total=5, squares=1).plus(Evidence(n=400, total=80, squares=40), 100)
    assert (pooled.n, pooled.total, pooled.squares) == (150.0, 25.0, 11.0)
    assert Evidence().plus(YES) == YES.plus(Evidence(), 100) == YES


def test_serving_has_hysteresis_and_needs_trust() -> None:
    weak = Evidence(n=100, total=0.5, squares=25)
    assert weak.bound(-1) < 0 < weak.bound(1)
    assert [proven(weak, before) for before in (False, True)] == [False, True]
    assert proven(YES)
    assert not proven(NO, before=True)
    assert not proven(Evidence(n=LEAST - 1, total=20, squares=20), before=True)
    distrusted = Guard(agree=Evidence(n=100, total=0, squares=10), gain=YES, beats=True)
    assert not distrusted.see((0.0, 0.5)).beats
    assert Guard(agree=HONEST, gain=YES, trusted=True).see((0.5, 0.0)).beats


def believing(agreements: list[float], guard: Guard | None = None) -> list[Guard]:
    """The guard after each of these outcomes, up to the one with which feedback turned."""
    found = [guard or Guard()]
    for agreement in agreements:
        found.append(found[-1].see((agreement, 0.0)))
        if found[-1].turned:
            break
    return found[1:]


def drawn(mean: float, count: int, seed: int, *, variance: float = 0.1) -> list[float]:
    """Agreements of 0.5, 0 and -0.5 with this mean and variance: those measured with five shown."""
    either = 4 * (variance + mean * mean)
    chances = [either / 2 + mean, 1 - either, either / 2 - mean]
    return [float(x) for x in np.random.default_rng(seed).choice([0.5, 0.0, -0.5], p=chances, size=count)]


def test_trust_does_not_flap_near_the_bar() -> None:
    """Feedback whose lower bound keeps crossing the bar: the bound alone would switch many times over."""

    def flaps(trusted: list[bool]) -> int:
        return sum(a != b for a, b in pairwise(trusted))

    lives = [drawn(0.13, 400, seed) for seed in range(20)]
    guards = [believing(life) for life in lives]
    assert (
        sum(flaps([earned(one) for one in accumulate(life, Evidence.add, initial=Evidence())]) for life in lives) > 60
    )
    assert sum(flaps([guard.trusted for guard in found]) for found in guards) <= 25
    assert sum(found[-1].trusted for found in guards) >= 15


def test_trust_is_lost_when_the_mean_falls_below_the_bar() -> None:
    guard = Guard(agree=Evidence(n=400, total=400 * (AGREEMENT_BAR + 0.0006), squares=100), trusted=True)
    (kept,), (lost,) = believing([0.5], guard), believing([-0.5], guard)
    assert (kept.trusted, kept.distrust(), lost.trusted) == (True, "", False)
    assert lost.agree.n > 300  # what is known of them stays
    assert "predicts this feedback better than chance: agreement 0.05 ± 0.02 over 400 outcomes" in lost.distrust()
    assert Guard(agree=Evidence(n=LEAST - 1, total=-9, squares=9)).distrust() == ""


@pytest.mark.parametrize(("turned", "within"), [(-0.38, 15), (-0.2, 25), (0.0, 80)])
def test_feedback_that_turns_is_seen_soon(turned: float, within: int) -> None:
    for seed in range(10):
        before = believing(drawn(0.3, 300, seed))[-1]
        assert before.trusted
        assert believing(drawn(turned, within, seed + 1000), before)[-1].turned


@pytest.mark.parametrize("mean", [0.29, 0.24, 0.15])
def test_steady_feedback_is_hardly_ever_taken_for_turned(mean: float) -> None:
    """The means of perfect, 9 / 5 and 30 / 15 citations: at most one false alarm in 20,000 outcomes."""
    guards = [believing(drawn(mean, 1000, seed))[-1] for seed in range(20)]
    assert sum(guard.turned for guard in guards) <= 1
    assert all(guard.trusted for guard in guards)
