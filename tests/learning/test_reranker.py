"""The optional low-rank matrices: they serve only when they help, and move no row far."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellworn.core.values import Partition
from wellworn.learning.guard import Evidence, Guard
from wellworn.learning.policy import Person
from wellworn.learning.ranker import Ranker
from wellworn.learning.records import LoggedRecall
from wellworn.learning.reranker import MAX_RESIDUAL, PersonMatrices
from wellworn.learning.residual import FROM_ZERO, Factors, Residual

D, ROWS, SHOWN = 12, 12, 5
HOME = Partition(tenant="acme", layer="user", layer_id="ada")
TRUSTED = Person(own=Ranker.fresh(0), guard=Guard(trusted=True))


def fresh() -> PersonMatrices:
    return PersonMatrices(residual=Residual.fresh(D, seed=FROM_ZERO), paper=False)


def unit(rows: np.ndarray) -> np.ndarray:
    found: np.ndarray = rows / np.linalg.norm(rows, axis=-1, keepdims=True)
    return found.astype(np.float32)


def recall(dice: np.random.Generator) -> LoggedRecall:
    return LoggedRecall(
        id="r",
        partition=HOME,
        at=datetime(2026, 1, 1, tzinfo=UTC),
        query="q",
        profile="lowrank",
        level="person",
        nos=[*range(ROWS)],
        shown=SHOWN,
        base=(0.3 * dice.normal(size=ROWS)).astype(np.float32),
        names=[],
        features=np.zeros((ROWS, 0), dtype=np.float32),
    )


def taught(
    state: PersonMatrices, dice: np.random.Generator, turn: np.ndarray, *, honest: bool = True
) -> PersonMatrices:
    """One outcome in a world where the answer lies where `turn` takes the query, which no cosine sees."""
    query, rows = unit(dice.normal(size=D)), unit(dice.normal(size=(ROWS, D)))
    wanted = rows[:SHOWN] @ (turn @ query)
    cited = int(np.argmax(wanted)) if honest else int(dice.integers(SHOWN))
    return state.learned(recall(dice), query, {cited}, dict(enumerate(rows)), TRUSTED)


@pytest.mark.parametrize("honest", [True, False])
def test_it_serves_people_it_helps_and_nobody_who_cites_at_random(honest: bool) -> None:
    dice, turn = np.random.default_rng(2), np.zeros((D, D))
    turn[0, 1] = turn[2, 3] = 2.0
    state = fresh()
    for _ in range(1200):
        state = taught(state, dice, turn, honest=honest)
    assert state.proven == honest


def test_one_that_predicts_worse_starts_over() -> None:
    dice = np.random.default_rng(3)
    state = fresh()
    for _ in range(8):
        state = taught(state, dice, np.eye(D))
    assert len(state.residual.query.left)
    after = taught(replace(state, gain=Evidence(n=100, total=-30, squares=12)), dice, np.eye(D))
    assert (len(after.residual.query.left), after.gain, after.proven) == (0, Evidence(), False)


def test_distrusted_feedback_teaches_nothing() -> None:
    state, dice = fresh(), np.random.default_rng(1)
    rows = dict(enumerate(unit(dice.normal(size=(ROWS, D)))))
    distrusted = Person(own=Ranker.fresh(0))
    assert state.learned(recall(dice), unit(dice.normal(size=D)), {0}, rows, distrusted) is state


@given(seed=st.integers(0, 1000), size=st.floats(0, 1e30))
def test_no_row_is_moved_further_than_the_clip(seed: int, size: float) -> None:
    dice = np.random.default_rng(seed)
    factors = Factors(*(size * dice.normal(size=(2, 6, D))).astype(np.float32))
    state = replace(fresh(), residual=replace(fresh().residual, query=factors, memory=factors))
    with np.errstate(all="ignore"):
        ((_, moves, _),) = state.factors(unit(dice.normal(size=D)), unit(dice.normal(size=(9, D))), "r")
    assert np.all(np.abs(moves) <= MAX_RESIDUAL)
