"""Equations 1 to 3 against a dense reference, finite differences and Plackett-Luce."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from wellworn.learning.residual import (
    BASELINE,
    BATCH,
    CANDIDATES,
    ETA,
    MAX_NORM,
    RANK,
    SHOWN,
    SIGMA,
    TAU,
    Factors,
    Residual,
    chances,
    sample,
)
from wellworn.learning.residual import _start as start

D = 24


class Dense:
    """The paper with whole matrices in float64."""

    def __init__(self, width: int, seed: int) -> None:
        self.wq, self.wm = (whole(factors) for factors in start(width, seed))
        self.gq, self.gm, self.steps = np.zeros_like(self.wq), np.zeros_like(self.wm), 0

    def scores(self, q: np.ndarray, m: np.ndarray) -> np.ndarray:
        return np.array([(q + self.wq @ q) @ (row + self.wm @ row) for row in m])

    def log_p(self, q: np.ndarray, m: np.ndarray) -> np.ndarray:
        s = self.scores(q, m) / TAU
        found: np.ndarray = s - np.log(np.exp(s).sum())
        return found

    def update(self, q: np.ndarray, m: np.ndarray, shown: list[int], cited: np.ndarray) -> None:
        p = np.exp(self.log_p(q, m))
        for place, useful in zip(shown, cited, strict=True):
            for i, row in enumerate(m):
                slope = ((1.0 if useful else -1.0) - BASELINE) * ((i == place) - p[i]) / TAU
                self.gq += slope * np.outer(row + self.wm @ row, q)
                self.gm += slope * np.outer(q + self.wq @ q, row)
        self.steps += 1
        if self.steps % BATCH == 0:
            self.wq, self.wm = self.wq + ETA * self.gq, self.wm + ETA * self.gm
            self.gq, self.gm = np.zeros_like(self.gq), np.zeros_like(self.gm)


def whole(factors: Factors) -> np.ndarray:
    found: np.ndarray = factors.left.T.astype(np.float64) @ factors.right.astype(np.float64)
    return found


def recall(dice: np.random.Generator, width: int = D) -> tuple[np.ndarray, np.ndarray, list[int], np.ndarray]:
    vectors = dice.normal(size=(CANDIDATES + 1, width))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors = vectors.astype(np.float32).astype(np.float64)
    shown = [int(place) for place in dice.choice(CANDIDATES, SHOWN, replace=False)]
    return vectors[0], vectors[1:], shown, dice.uniform(size=SHOWN) < 0.4


def learned(state: Residual, seed: int, count: int) -> Residual:
    dice = np.random.default_rng(seed)
    for _ in range(count):
        state = state.updated(*recall(dice, state.width))
    return state


def test_it_equals_the_dense_update_until_the_cap() -> None:
    dice, state, dense = np.random.default_rng(1), Residual.fresh(D, seed=5), Dense(D, 5)
    for _ in range(RANK):
        asked = recall(dice)
        np.testing.assert_allclose(state.scores(*asked[:2]), dense.scores(*asked[:2]), atol=1e-7)
        state = state.updated(*asked)
        dense.update(*asked)
    for factors, first, matrix in zip((state.query, state.memory), start(D, 5), (dense.wq, dense.wm), strict=True):
        moved = matrix - whole(first)
        np.testing.assert_allclose(whole(factors), moved, atol=1e-6 * np.abs(moved).max())


def test_beyond_the_cap_it_is_the_nearest_of_that_rank() -> None:
    dice = np.random.default_rng(2)
    left, right = 0.03 * dice.normal(size=(12, D)), dice.normal(size=(12, D))
    empty = np.zeros((0, D), dtype=np.float32)
    kept = Factors(empty, empty).grown(left, right)
    sizes = np.linalg.svd(left.T @ right, compute_uv=False)
    assert kept.left.shape == kept.right.shape == (RANK, D)
    assert np.linalg.norm(left.T @ right - whole(kept)) == pytest.approx(np.sqrt((sizes[RANK:] ** 2).sum()), rel=1e-4)


def test_the_gradient_is_that_of_log_p() -> None:
    asked = recall(np.random.default_rng(3))
    q, m, shown, cited = asked
    state = Residual.fresh(D, seed=6)
    for _ in range(BATCH):
        state = state.updated(*asked)
    advantage = np.where(cited, 1.0, -1.0) - BASELINE
    for name, factors in (("wq", state.query), ("wm", state.memory)):
        slope = whole(factors) / (ETA * BATCH)
        for i, j in np.random.default_rng(4).integers(0, D, size=(12, 2)):
            sides = []
            for h in (1e-5, -1e-5):
                dense = Dense(D, 6)
                getattr(dense, name)[i, j] += h
                sides.append(float(advantage @ dense.log_p(q, m)[shown]))
            assert slope[i, j] == pytest.approx((sides[0] - sides[1]) / 2e-5, rel=1e-3, abs=1e-6)


def test_gumbel_top_m_follows_plackett_luce() -> None:
    scores, dice, draws = np.array([0.3, 0.0, -0.4]), np.random.default_rng(0), 20_000
    p = np.exp(scores / TAU)
    counts = dict.fromkeys(permutations(range(3), 2), 0)
    for _ in range(draws):
        first, second = sample(scores, 2, dice)
        counts[first, second] += 1
    for (first, second), count in counts.items():
        expected = p[first] / p.sum() * p[second] / (p.sum() - p[first])
        assert count / draws == pytest.approx(expected, abs=4 * np.sqrt(expected / draws))
    np.testing.assert_allclose(chances(scores), p / p.sum())

    np.testing.assert_allclose(chances(scores, tau=50.0), 1 / 3, atol=0.01)  # τ matters
    assert sample(np.linspace(1, 0, CANDIDATES), SHOWN, dice, tau=1e-9) == list(range(SHOWN))


def test_the_start_comes_from_the_seed_alone() -> None:
    spread = [float(whole(factors).std()) for factors in start(400, 1)]
    assert spread == pytest.approx([SIGMA, SIGMA], rel=0.05)
    first = start(D, 7)[0].left.copy()
    start.cache_clear()
    assert start(D, 7)[0].left.tobytes() == first.tobytes()
    assert start(D, 8)[0].left.tobytes() != first.tobytes()
    a, b = (learned(Residual.fresh(D, seed=7), 1, 30) for _ in range(2))
    assert a.to_bytes() == b.to_bytes()


def test_a_restart_in_the_middle_of_a_batch_loses_nothing() -> None:
    dice, without, with_ = np.random.default_rng(9), Residual.fresh(D, seed=1), Residual.fresh(D, seed=1)
    for step in range(18):
        with_ = Residual.from_bytes(with_.to_bytes())
        assert len(with_.open) == step % BATCH
        asked = recall(dice)
        without, with_ = without.updated(*asked), with_.updated(*asked)
    assert len(without.to_bytes()) == len(with_.to_bytes())
    q, m, *_ = recall(np.random.default_rng(10))  # where arrays lie in memory may change the last bits of a sum
    np.testing.assert_allclose(without.scores(q, m), with_.scores(q, m), atol=1e-6)


def test_what_was_learned_stays_bounded_however_long_one_answer_is_cited() -> None:
    q, m, shown, _ = recall(np.random.default_rng(11))
    state = Residual.fresh(D, seed=3)
    for _ in range(1000):
        state = state.updated(q, 20.0 * m, shown, np.arange(SHOWN) == 0)
    for factors in (state.query, state.memory):
        assert np.linalg.norm(whole(factors)) <= MAX_NORM * 1.001
    assert np.isfinite(state.scores(q, 20.0 * m)).all()


def test_a_persons_state_is_small() -> None:
    sizes, state = [], Residual.fresh(1536, seed=1)
    for seed in range(2 * RANK + BATCH - 1):
        state = learned(state, seed, 1)
        sizes.append(len(state.to_bytes()))
    assert max(sizes) <= 229 * 1024
    assert state.steps == len(sizes)


def test_damaged_bytes_are_refused() -> None:
    data = learned(Residual.fresh(D, seed=1), 0, 6).to_bytes()
    for bad in (b"", b"RRL", data[:-1], data + b"\0", b"XXXX" + data[4:]):
        with pytest.raises(ValueError, match="not a residual state"):
            Residual.from_bytes(bad)


def test_the_papers_values_stand() -> None:
    assert (CANDIDATES, SHOWN, TAU, ETA, BASELINE, BATCH, SIGMA) == (20, 5, 0.5, 1e-3, 0.5, 4, 0.01)
