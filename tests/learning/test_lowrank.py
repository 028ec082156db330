"""The low-rank residual against whole matrices, and that it serves only when it foretells better."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wellworn.learning.guard import Evidence
from wellworn.learning.lowrank import CHUNK, MAX_RESIDUAL, RANK, ROWS, SCALE, STEP, LowRank, Pairs
from wellworn.learning.residual import Factors

D, SHOWN = 12, 5


def unit(rows: np.ndarray) -> np.ndarray:
    found: np.ndarray = rows / np.linalg.norm(rows, axis=-1, keepdims=True)
    return found.astype(np.float32).astype(np.float64)


def pairs(dice: np.random.Generator, width: int = D) -> Pairs:
    cited = dice.uniform(size=SHOWN) < 0.4
    cited[0] = True
    return Pairs(
        query=unit(dice.normal(size=width)),
        rows=unit(dice.normal(size=(ROWS, width))),
        ahead=dice.normal(size=ROWS),
        shown=SHOWN,
        cited=cited,
    )


def whole(factors: Factors) -> np.ndarray:
    found: np.ndarray = factors.left.T.astype(np.float64) @ factors.right.astype(np.float64)
    return found


def loss(given_: Pairs, wq: np.ndarray, wm: np.ndarray) -> float:
    """Of one recall, written down plainly."""
    q = given_.query + wq @ given_.query
    r = SCALE * np.array([q @ (row + wm @ row) - given_.query @ row for row in given_.rows])
    logits = given_.ahead + r + np.where(np.arange(ROWS) < SHOWN, 0.0, np.log(0.3))
    return float(np.log(np.exp(logits).sum()) - logits[:SHOWN][given_.cited].mean())


def test_a_chunk_is_the_dense_step_down_the_loss() -> None:
    dice = np.random.default_rng(0)
    state, wq, wm = LowRank.fresh(D), np.zeros((D, D)), np.zeros((D, D))
    for _ in range(2):  # twice three recalls: as many outer products as are kept
        chunk = [pairs(dice) for _ in range(RANK // 2)]
        dq, dm, h = np.zeros((D, D)), np.zeros((D, D)), 1e-5
        for one in chunk:
            for i in range(D):
                for j in range(D):
                    tip = np.zeros((D, D))
                    tip[i, j] = h
                    dq[i, j] -= STEP * (loss(one, wq + tip, wm) - loss(one, wq - tip, wm)) / (2 * h)
                    dm[i, j] -= STEP * (loss(one, wq, wm + tip) - loss(one, wq, wm - tip)) / (2 * h)
        state, wq, wm = state.seen(chunk, 1.0), wq + dq, wm + dm
        np.testing.assert_allclose(whole(state.query), wq, atol=2e-7)
        np.testing.assert_allclose(whole(state.memory), wm, atol=2e-7)
    one = pairs(dice)
    raw = SCALE * (((one.rows + one.rows @ wm.T) @ (one.query + wq @ one.query)) - one.rows @ one.query)
    np.testing.assert_allclose(state.moves(one.query, one.rows), raw - raw.mean(), atol=1e-5)
    assert np.abs(raw - raw.mean()).max() > 1e-3  # it does move


def test_beyond_the_rank_the_nearest_matrix_is_kept() -> None:
    dice = np.random.default_rng(1)
    state = LowRank.fresh(D)
    for _ in range(3):
        state = state.seen([pairs(dice) for _ in range(CHUNK)], 1.0)
        assert len(state.query.left) == len(state.memory.right) == RANK
    assert state.chunks == 3


def world(dice: np.random.Generator, turn: np.ndarray, *, honest: bool) -> Pairs:
    """What is wanted lies where `turn` takes the query, which no cosine sees; of the shown the best one is cited."""
    one = pairs(dice)
    wanted = one.rows @ (turn @ one.query)
    cited = np.zeros(SHOWN, dtype=np.bool_)
    cited[int(np.argmax(wanted[:SHOWN])) if honest else int(dice.integers(SHOWN))] = True
    return replace(one, ahead=one.ahead * 0.3, cited=cited)


@pytest.mark.parametrize("honest", [True, False])
def test_it_serves_who_has_a_sense_of_their_own_and_nobody_who_cites_at_random(honest: bool) -> None:
    dice = np.random.default_rng(2)
    turn = np.zeros((D, D))
    turn[0, 1] = turn[2, 3] = 2.0
    state = LowRank.fresh(D)
    for _ in range(40):
        state = state.seen([world(dice, turn, honest=honest) for _ in range(CHUNK)], 1.0)
    assert state.beats == honest
    if honest:
        assert state.gain.mean > 0.05


def test_what_foretells_worse_is_thrown_away() -> None:
    dice = np.random.default_rng(3)
    state = LowRank.fresh(D).seen([pairs(dice) for _ in range(CHUNK)], 1.0)
    bad = replace(state, gain=Evidence(n=100, total=-30, squares=12), beats=True)
    after = bad.seen([pairs(dice)], 1.0)
    assert (len(after.query.left), after.beats, after.gain.n, after.chunks) == (0, False, 0.0, 2)
    assert after.moves(pairs(dice).query, pairs(dice).rows).tolist() == [0.0] * ROWS


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 1000), size=st.floats(0, 1e30))
def test_no_row_is_moved_further_than_the_clip(seed: int, size: float) -> None:
    dice = np.random.default_rng(seed)
    factors = Factors(*(size * dice.normal(size=(2, RANK, D))).astype(np.float32))
    with np.errstate(all="ignore"):
        moves = LowRank(query=factors, memory=factors).moves(unit(dice.normal(size=D)), unit(dice.normal(size=(9, D))))
    assert np.all(np.abs(moves) <= MAX_RESIDUAL)


def test_a_state_is_small_and_comes_back_byte_for_byte() -> None:
    dice = np.random.default_rng(4)
    state = LowRank.fresh(1536)
    for _ in range(2):
        state = replace(state.seen([pairs(dice, 1536) for _ in range(CHUNK)], 1.0), last=31)
    text = state.dumps()
    assert len(text) <= 256 * 1024
    again = LowRank.loads(text, 1536)
    assert again.dumps() == text
    assert (again.chunks, again.last, again.gain) == (2, 31, state.gain)
    one = pairs(dice, 1536)
    assert again.moves(one.query, one.rows).tobytes() == state.moves(one.query, one.rows).tobytes()


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "{",
        "[]",
        '{"format": 1}',
        LowRank.fresh(8).dumps(),
        LowRank.fresh(D).dumps().replace("[0, 0]", "[1, 0]"),
    ],
)
def test_what_is_no_state_of_this_width_counts_as_none(text: str | None) -> None:
    assert LowRank.loads(text, D).dumps() == LowRank.fresh(D).dumps()
