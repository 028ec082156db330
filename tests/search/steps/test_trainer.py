"""Which way of searching serves is learned from outcomes, and never from people whose feedback is not trusted."""

from __future__ import annotations

from typing import Any

import pytest

from wellworn import Memory, Recursion
from wellworn.learning.records import outcome_input
from wellworn.search.steps.actions import Choice
from wellworn.search.steps.trainer import BEGUN, KIND, CombinedMemoryTrainer, SearchPolicy, SearchTrajectory, success_of
from wellworn.store.port import RecordFilter

from .world import QUESTION, SCOPE, filled

HOME = SCOPE.home()
LEARNS = Recursion(learns=True, explore=0.0)


def proven(choice: Choice, *, worth: float = 1.0, planner: float = 0.0) -> SearchPolicy:
    policy = SearchPolicy()
    for _ in range(20):
        policy = policy.plus(choice, worth).plus("planner", planner)
    return policy


# -- rewards and the policy --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "success"),
    [
        ({"cited": [0]}, 0.5),
        ({"cited": [0, 2, 3]}, 1.0),
        ({"cited": []}, -0.5),
        ({"used": 0.7}, 0.7),
        ({"ignored": True}, -0.5),
        ({"refined": "x"}, 0.3),
        ({"success": True}, 1.0),
        ({"success": False}, -0.5),
    ],
)
def test_every_kind_of_outcome_has_its_meaning(given: dict[str, Any], success: float) -> None:
    assert success_of(outcome_input(**given)) == success


def test_nothing_serves_that_does_worse_than_plain_search() -> None:
    policy = proven("turns", worth=0.5)
    for _ in range(10):
        policy = policy.plus("plain", 0.6)
    assert policy.serves() == "plain"


# -- through a memory ----------------------------------------------------------------------------------------------


def trainer(memory: Memory) -> CombinedMemoryTrainer:
    assert memory.engine.searches is not None
    return memory.engine.searches


def searches(memory: Memory) -> list[SearchTrajectory]:
    return [*trainer(memory).trajectories(HOME).values()]


def test_by_default_nothing_is_recorded_at_recall_or_outcome() -> None:
    with filled() as memory:
        memory.outcome(memory.recall(QUESTION, scope=SCOPE).id, cited=[0])
        assert memory.engine.searches is None
        assert memory.engine.store.records(RecordFilter(tenant="acme", kinds=[KIND, BEGUN])) == []


def test_a_search_in_several_steps_is_recorded_and_ends_with_its_outcome() -> None:
    with filled(recursion=LEARNS) as memory:
        memory.recall("bakery", scope=SCOPE)
        found = memory.recall(QUESTION, scope=SCOPE)
        (search,) = searches(memory)
        assert (search.query, search.choice) == (QUESTION, "planner")
        assert search.steps == found.trace
        assert search.tokens > 0
        assert search.reward is None
        assert memory.outcome(found.id, cited=[0, 1])
        (search,) = searches(memory)
        assert (search.success, search.reward) == (1.0, 1.0)
        assert memory.outcome(found.id, success=False)
        assert searches(memory) == [search], "the first that is reported counts"


def test_a_search_is_forgotten_with_any_entry_that_it_showed() -> None:
    with filled(recursion=LEARNS) as memory:
        found = memory.recall(QUESTION, scope=SCOPE)
        assert memory.forget(ids=[found.hits[0].entry.id], scope=SCOPE).records == 1
        assert searches(memory) == []


def test_a_proven_way_serves_until_learning_is_reset() -> None:
    with filled(recursion=LEARNS) as memory:
        trainer(memory).begin(HOME, proven("plain"))
        assert memory.recall(QUESTION, scope=SCOPE).route == "hybrid"
        assert memory.recall(QUESTION, scope=SCOPE, recursion="always").route == "recursive"
        trainer(memory).begin(HOME, proven("turns"))
        assert memory.recall(QUESTION, scope=SCOPE).trace[1].detail == "turns=True"
        memory.learning.reset(scope=SCOPE)
        assert len(memory.recall(QUESTION, scope=SCOPE).trace) == 3


def test_only_trusted_feedback_counts_and_what_was_reported_before_counts_then() -> None:
    with filled(recursion=LEARNS) as memory:
        for number in range(45):
            found = memory.recall(f"{QUESTION} {number % 7}", scope=SCOPE)
            memory.outcome(found.id, cited=[0] if number % 5 else [0, 1])  # not always the same places
            if not memory.learning.status(scope=SCOPE).trusted:
                assert trainer(memory).policy(HOME) == SearchPolicy()
        assert memory.learning.status(scope=SCOPE).trusted
        assert trainer(memory).policy(HOME).seen("planner").n == 45


def test_practice_needs_no_outcome_logs_nothing_and_happens_once() -> None:
    with filled(recursion=LEARNS) as memory:
        count = memory.learning.practise(scope=SCOPE)
        assert count >= 1
        policy = trainer(memory).policy(HOME)
        assert policy.rewards
        assert policy.serves() == "planner"
        assert searches(memory) == []
        assert memory.learning.practise(scope=SCOPE) == 0
    with Memory.open(":memory:", embedder="hash", recursion=LEARNS) as empty:
        assert empty.learning.practise(scope=SCOPE) == 0
