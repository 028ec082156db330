"""Evidence, trust and the switch."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.learning.guard import LEAST, MEMORY, Evidence, Guard, auc, compare

YES, NO = Evidence(n=100, total=20, squares=8), Evidence(n=100, total=-20, squares=8)
HONEST = Evidence(n=100, total=25, squares=12)


def flags(*cited: int) -> np.ndarray:
    return np.array(cited, dtype=np.bool_)


def evidence(values: list[float]) -> Evidence:
    found = Evidence()
    for value in values:
        found = found.add(value)
    return found


def test_auc_counts_pairs_in_the_right_order() -> None:
    scores = np.array([3.0, 2.0, 1.0])
    assert auc(scores, flags(1, 0, 0)) == 0.5
    assert auc(scores, flags(0, 0, 1)) == -0.5
    assert auc(scores, flags(0, 1, 0)) == 0.0
    assert auc(np.zeros(3), flags(0, 1, 0)) == 0.0


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=30))
def test_evidence_is_a_mean_with_its_error(values: list[float]) -> None:
    found = evidence(values)
    fade = np.array([(1 - 1 / MEMORY) ** age for age in range(len(values))][::-1])
    assert found.n == pytest.approx(fade.sum())
    assert found.mean == pytest.approx(float((fade * values).sum() / fade.sum()), abs=1e-12)
    assert found.bound(-1) <= found.mean == found.bound(0) <= found.bound(1)


def test_too_little_evidence_bounds_nothing() -> None:
    assert Evidence().bound(1) == math.inf
    assert Evidence().add(1.0).bound(-1) == -math.inf
    assert Evidence().mean == Evidence().bound(0) == 0.0


def test_evidence_fades() -> None:
    assert evidence([0.0] * 10_000).n == pytest.approx(MEMORY, rel=1e-3)
    assert evidence([1.0] * 3000 + [-1.0] * 3000).mean < -0.9


def test_pooled_evidence_counts_as_no_more_than_it_may() -> None:
    pooled = Evidence(n=50, total=5, squares=1).plus(Evidence(n=400, total=80, squares=40), 100)
    assert (pooled.n, pooled.total, pooled.squares) == (150.0, 25.0, 11.0)
    assert Evidence().plus(YES) == YES
    assert YES.plus(Evidence(), 100) == YES


def test_an_outcome_with_all_or_nothing_cited_is_no_evidence() -> None:
    scores, guard = np.array([2.0, 1.0]), Guard()
    assert compare(scores, -scores, flags(1, 1)) is None
    assert guard.see(scores, -scores, flags(0, 0)) is guard
    seen = guard.see(scores, -scores, flags(1, 0))
    assert (seen.agree.total, seen.gain.total) == (0.5, -1.0)


def test_serving_has_hysteresis() -> None:
    weak = Evidence(n=100, total=0.5, squares=25)
    assert weak.bound(-1) < 0 < weak.bound(1)
    off, on = Guard(agree=HONEST, gain=weak), Guard(agree=HONEST, gain=weak, beats=True)
    assert not off.serve(Evidence())
    assert on.serve(Evidence())
    assert Guard(agree=HONEST, gain=YES).serve(Evidence())
    assert not Guard(agree=HONEST, gain=NO, beats=True).serve(Evidence())


def test_an_untrusted_person_neither_earns_nor_keeps_it() -> None:
    distrusted = Guard(agree=Evidence(n=100, total=0, squares=10), gain=YES, beats=True)
    assert not distrusted.serve(Evidence())
    assert distrusted.serve(YES)
    assert not distrusted.serve(NO)
    assert not Guard(gain=YES).serve(Evidence(n=LEAST - 1, total=20, squares=20))


def test_distrust_says_why() -> None:
    chance = Guard(agree=Evidence(n=100, total=1, squares=10)).distrust()
    assert chance == (
        "feedback agrees with the untrained ranking no better than chance: agreement 0.01 ± 0.03 over 100 outcomes"
    )
    assert "contradicts" in Guard(agree=NO).distrust()
    assert Guard(agree=HONEST).distrust() == ""
    assert Guard(agree=Evidence(n=LEAST - 1, total=-9, squares=9)).distrust() == ""
