"""The ranker: what a recall teaches, what it does not, and that it learns what decides."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from learning.world import NAMES, SHOWN, WIDTH, example, honest, inverted, question, recall_of, shown_by
from wellworn.core.values import Partition
from wellworn.learning.ranker import (
    MAX_BASE_WEIGHT,
    MAX_CORRECTION,
    MAX_WEIGHT,
    PERSON_START,
    Example,
    Ranker,
    example_of,
)
from wellworn.learning.records import LoggedRecall

anything = st.floats(allow_nan=True, allow_infinity=True)


def lesson(seed: int, *, cited: bool = True) -> Example:
    dice = np.random.default_rng(seed)
    asked = question(dice)
    flags = dice.uniform(size=SHOWN) < 0.4
    flags[0] = True
    return example(asked, shown_by(asked, None), flags & cited)


def taught(count: int, *, base_knows: float = 2.5) -> Ranker:
    dice = np.random.default_rng(0)
    ranker = Ranker.fresh(WIDTH)
    for _ in range(count):
        asked = question(dice, base_knows=base_knows)
        shown = shown_by(asked, ranker)
        ranker = ranker.updated(example(asked, shown, honest()(dice, asked.useful[shown])))
    return ranker


def test_a_planted_feature_is_learned_from_chance() -> None:
    assert recall_of(None, base_knows=0.0) < 0.2
    learned = taught(300, base_knows=0.0)
    assert recall_of(learned, base_knows=0.0) > 0.9
    assert np.argmax(np.abs(learned.weights)) == NAMES.index("decides")


def test_trained_and_untrained_rank_differently() -> None:
    asked = question(np.random.default_rng(5))
    assert shown_by(asked, taught(50)) != shown_by(asked, None)
    assert shown_by(asked, Ranker.fresh(WIDTH)) == shown_by(asked, None)


def test_one_step_is_newtons() -> None:
    """Against the loss written down plainly, differentiated numerically."""
    taught_by, ranker = next(one for one in map(lesson, range(99)) if one.wanted is not None), taught(20)

    def loss(theta: np.ndarray) -> float:
        z = taught_by.rows
        logits = z @ theta + np.where(np.arange(len(z)) < SHOWN, 0.0, np.log(0.3))
        return float(np.log(np.exp(logits).sum()) - logits[:SHOWN][taught_by.cited].mean())

    steps, h = 1e-4 * np.eye(WIDTH + 1), 1e-4
    at = ranker.theta

    def slope(theta: np.ndarray) -> np.ndarray:
        return np.array([loss(theta + step) - loss(theta - step) for step in steps]) / (2 * h)

    gradient, bend = slope(at), np.array([slope(at + step) - slope(at - step) for step in steps]) / (2 * h)
    after = ranker.updated(taught_by)
    np.testing.assert_allclose(after.precision - ranker.precision, bend, atol=1e-5)
    np.testing.assert_allclose(after.theta, at - np.linalg.solve(after.precision, gradient), atol=1e-7)


def test_no_citation_teaches_nothing() -> None:
    ranker = Ranker.fresh(WIDTH)
    assert ranker.updated(lesson(0, cited=False)) is ranker


@given(seed=st.integers(0, 10_000))
def test_the_order_of_unshown_candidates_does_not_matter(seed: int) -> None:
    given_ = lesson(seed)
    mixed = np.r_[np.arange(SHOWN), SHOWN + np.random.default_rng(seed).permutation(len(given_.base) - SHOWN)]
    other = Example(base=given_.base[mixed], features=given_.features[mixed], shown=SHOWN, cited=given_.cited)
    ranker = taught(3)
    a, b = ranker.updated(given_), ranker.updated(other)
    assert a.theta.tobytes() == b.theta.tobytes()
    assert a.precision.tobytes() == b.precision.tobytes()
    correction = a.correction(given_.base, given_.features)
    np.testing.assert_allclose(correction[mixed], a.correction(other.base, other.features), atol=1e-12)


@settings(deadline=None)
@given(data=st.data(), rows=st.integers(1, 40))
def test_clipping_holds_for_any_input(data: st.DataObject, rows: int) -> None:
    base = data.draw(hnp.arrays(np.float64, rows, elements=anything))
    features = data.draw(hnp.arrays(np.float64, (rows, 2), elements=anything))
    shown = data.draw(st.integers(1, rows))
    cited = data.draw(hnp.arrays(np.bool_, shown))
    ranker = Ranker.fresh(2)
    for _ in range(3):
        ranker = ranker.updated(Example(base=base, features=features, shown=shown, cited=cited))
        assert ranker.finite
        assert 0.0 <= ranker.theta[0] <= MAX_BASE_WEIGHT
        assert np.all(np.abs(ranker.theta[1:]) <= MAX_WEIGHT)
        assert np.all(np.abs(ranker.correction(base, features)) <= MAX_CORRECTION)
    broken = Ranker(theta=np.array([np.nan, np.inf, 1.0]), precision=np.eye(3), steps=0)
    assert np.all(np.abs(broken.correction(base, features)) <= MAX_CORRECTION)
    assert not broken.finite


def test_relentless_feedback_ends_at_the_clip() -> None:
    dice = np.random.default_rng(0)
    ranker = Ranker(theta=np.array([1.0, 0.0]), precision=0.01 * np.eye(2), steps=0)
    for _ in range(500):
        features = dice.uniform(size=(2, 1)) * 0.2
        cited = features[:, 0] == features[:, 0].max()
        ranker = ranker.updated(Example(base=np.zeros(2), features=features, shown=2, cited=cited))
    assert ranker.theta[1] == MAX_WEIGHT


def test_a_shift_of_all_rows_changes_nothing() -> None:
    asked, ranker = question(np.random.default_rng(2)), taught(50)
    shifted = ranker.correction(asked.base, asked.features + 100.0)
    np.testing.assert_allclose(shifted, ranker.correction(asked.base, asked.features), atol=1e-9)
    assert len(ranker.correction(np.zeros(0), np.zeros((0, WIDTH)))) == 0


def test_a_person_starts_at_the_prior_held_by_so_many_recalls() -> None:
    prior = taught(4 * PERSON_START)
    person = prior.person()
    assert person.theta.tolist() == prior.theta.tolist()
    assert person.steps == 0
    start = 10 * np.eye(WIDTH + 1)
    share = PERSON_START / prior.steps
    np.testing.assert_allclose(person.precision - start, (prior.precision - start) * share, atol=1e-12)
    new = taught(10)
    assert new.person().precision.tolist() == pytest.approx(new.precision)
    dice = np.random.default_rng(0)
    asked = question(dice)
    against = example(asked, shown_by(asked, None), inverted(dice, asked.useful[:SHOWN]))
    moved, barely = person.updated(against).theta - person.theta, prior.updated(against).theta - prior.theta
    assert np.abs(moved).max() > np.abs(barely).max()


def logged(nos: list[int], shown: int) -> LoggedRecall:
    base = np.linspace(1, 0, len(nos)).astype(np.float32)
    features = (np.arange(2 * len(nos)).reshape(-1, 2) / 3).astype(np.float32)
    return LoggedRecall(
        id="r",
        partition=Partition(tenant="t", layer="user", layer_id="u"),
        at=datetime(2026, 1, 1, tzinfo=UTC),
        query="q",
        profile="default",
        level="base",
        nos=nos,
        shown=shown,
        base=base,
        names=["a", "b"],
        features=features,
    )


def test_an_example_leaves_out_what_was_forgotten_and_what_is_no_number() -> None:
    recall = logged([7, 8, 9, 10], 3)
    found = example_of(recall, {9, 10}, {7, 9, 10})
    assert found is not None
    assert found.shown == 2
    assert found.cited.tolist() == [False, True]
    assert found.base.tolist() == [float(recall.base[n]) for n in (0, 2, 3)]
    assert found.features.dtype == np.float64
    assert example_of(recall, {9}, {10}) is None
    assert example_of(recall, set(), {7}) is not None
    recall = logged([7, 8], 2)
    recall.features[0, 1] = np.nan
    found = example_of(recall, {7, 8}, {7, 8})
    assert found is not None
    assert found.cited.tolist() == [True]
    recall.base[1] = np.inf
    assert example_of(recall, {7, 8}, {7, 8}) is None
