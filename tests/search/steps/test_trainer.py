"""Which way of searching serves is learned from outcomes, and never from people whose feedback is not trusted."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from wellworn import InvalidInput, Memory, Recursion
from wellworn.ingest.hashing import hash64
from wellworn.learning.outcome import outcome_input
from wellworn.search.steps.actions import Choice
from wellworn.search.steps.trainer import (
    BEGUN,
    CHOICES,
    KIND,
    MOST_KEPT,
    SearchOutcome,
    SearchPolicy,
    SearchTrainer,
    SearchTrajectory,
    outcome_of,
    reward_of,
)
from wellworn.store.port import RecordFilter

from .world import QUESTION, SCOPE, filled

HOME = SCOPE.home()
LEARNS = Recursion(learns=True, explore=0.0)


def proven(choice: Choice, *, worth: float = 1.0, planner: float = 0.0) -> SearchPolicy:
    policy = SearchPolicy()
    for _ in range(20):
        policy = policy.plus("bridge", choice, worth).plus("bridge", "planner", planner)
    return policy


# -- rewards and the policy --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "tokens", "reward"),
    [
        (SearchOutcome(kind="used", quality=1.0), 0, 1.0),
        (SearchOutcome(kind="used", quality=0.5), 50_000, 0.65),
        (SearchOutcome(kind="refined"), 100_000, 0.3),
        (SearchOutcome(kind="refined"), 0, 0.6),
        (SearchOutcome(kind="ignored"), 200_000, -0.5),
        (SearchOutcome(kind="none"), 0, 0.3),
    ],
)
def test_the_reward_is_that_of_the_design(outcome: SearchOutcome, tokens: int, reward: float) -> None:
    assert reward_of(outcome, tokens) == pytest.approx(reward)


@pytest.mark.parametrize(
    ("given", "kind", "quality"),
    [
        ({"cited": [0]}, "used", 0.5),
        ({"cited": [0, 2, 3]}, "used", 1.0),
        ({"cited": []}, "ignored", 0.0),
        ({"used": 0.7}, "used", 0.7),
        ({"ignored": True}, "ignored", 0.0),
        ({"refined": "x"}, "refined", 0.0),
        ({"success": True}, "used", 1.0),
        ({"success": False}, "ignored", 0.0),
    ],
)
def test_every_kind_of_outcome_has_its_meaning(given: dict[str, Any], kind: str, quality: float) -> None:
    nothing = {"cited": None, "used": None, "ignored": False, "refined": None, "success": None}
    found = outcome_of(outcome_input(**{**nothing, **given}))
    assert (found.kind, found.quality) == (kind, quality)


def test_the_planner_serves_until_another_way_is_proven() -> None:
    assert SearchPolicy().serves("bridge") == "planner"
    assert proven("turns", worth=0.4, planner=0.39).serves("bridge") == "planner"
    assert proven("turns").serves("bridge") == "turns"
    assert proven("turns").serves("plain") == "planner", "another shape"


def test_nothing_serves_that_does_worse_than_plain_search() -> None:
    policy = proven("turns", worth=0.5)
    for _ in range(10):
        policy = policy.plus("bridge", "plain", 0.6)
    assert policy.serves("bridge") == "plain"


@dataclass
class Life:
    """A person who asks, and reports honestly what each way found; each way finds support with its own chance."""

    seed: int
    finds: dict[Choice, float]
    policy: SearchPolicy = field(default_factory=SearchPolicy)

    def live(self, outcomes: int) -> Life:
        draw = random.Random(self.seed)
        for number in range(outcomes):
            dice = hash64(f"{self.seed}:{number}")
            choice, _ = self.policy.choose("bridge", CHOICES, dice=dice, explore=0.2)
            count = sum(draw.random() < self.finds[choice] for _ in range(2))
            outcome = SearchOutcome(kind="used", quality=count / 2) if count else SearchOutcome(kind="ignored")
            self.policy = self.policy.plus("bridge", choice, reward_of(outcome, 1_000))
        return self


def test_the_best_way_comes_to_serve_and_never_one_worse_than_plain_search() -> None:
    finds: dict[Choice, float] = {"planner": 0.5, "plain": 0.45, "bridge": 0.4, "turns": 0.95, "parts": 0.3}
    serves = [Life(seed=seed, finds=finds).live(150).policy.serves("bridge") for seed in range(20)]
    assert serves.count("turns") >= 17
    assert set(serves) <= {"turns", "planner", "plain"}


# -- through a memory ----------------------------------------------------------------------------------------------


def trainer(memory: Memory) -> SearchTrainer:
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
        assert (search.query, search.shape, search.choice) == (QUESTION, "bridge", "planner")
        assert search.steps == found.trace
        assert search.tokens > 0
        assert search.outcome is None
        assert memory.outcome(found.id, cited=[0, 1])
        (search,) = searches(memory)
        assert search.outcome == SearchOutcome(kind="used", quality=1.0)
        assert search.reward == 1.0
        assert memory.outcome(found.id, success=False)
        assert searches(memory) == [search], "the first that is reported counts"


def test_a_search_is_forgotten_with_any_entry_that_it_showed() -> None:
    with filled(recursion=LEARNS) as memory:
        found = memory.recall(QUESTION, scope=SCOPE)
        assert memory.forget(ids=[found.hits[0].entry.id], scope=SCOPE).records == 1
        assert searches(memory) == []


def test_searches_are_bounded_in_number() -> None:
    with filled(recursion=LEARNS, durability="normal") as memory:
        for number in range(MOST_KEPT + 60):
            memory.recall(f"{QUESTION} {number}", scope=SCOPE)
        assert len(memory.engine.store.records(RecordFilter(tenant="acme", kinds=[KIND]))) <= MOST_KEPT


def test_a_proven_way_serves_until_learning_is_reset() -> None:
    with filled(recursion=LEARNS) as memory:
        trainer(memory).begin(HOME, proven("plain"))
        assert memory.recall(QUESTION, scope=SCOPE).route == "hybrid"
        assert memory.recall(QUESTION, scope=SCOPE, recursion="always").route == "recursive"
        trainer(memory).begin(HOME, proven("parts"))
        assert "search_layer" in [step.action for step in memory.recall(QUESTION, scope=SCOPE).trace]
        assert memory.learning.status(scope=SCOPE).searches[0].serves == "parts"
        memory.learning.reset(scope=SCOPE)
        assert len(memory.recall(QUESTION, scope=SCOPE).trace) == 3


def test_only_trusted_feedback_counts_and_what_was_reported_before_counts_then() -> None:
    with filled(recursion=LEARNS, explore=0.0) as memory:
        for number in range(45):
            found = memory.recall(f"{QUESTION} {number % 7}", scope=SCOPE)
            memory.outcome(found.id, cited=[0] if number % 5 else [0, 1])  # not always the same places
            if not memory.learning.status(scope=SCOPE).trusted:
                assert trainer(memory).policy(HOME) == SearchPolicy()
        assert memory.learning.status(scope=SCOPE).trusted
        assert trainer(memory).policy(HOME).seen("bridge", "planner").n == 45


def test_feedback_that_agrees_with_nothing_teaches_nothing() -> None:
    with filled(recursion=LEARNS) as memory:
        for number in range(40):
            found = memory.recall(f"{QUESTION} {number}", scope=SCOPE)
            memory.outcome(found.id, cited=[len(found.hits) - 1])
        assert trainer(memory).policy(HOME) == SearchPolicy()


def test_what_was_learned_is_exported_and_loaded_as_one_state() -> None:
    with filled(recursion=LEARNS) as memory, filled(recursion=LEARNS) as other:
        trainer(memory).begin(HOME, proven("parts"))
        memory.outcome(memory.recall("bakery bread", scope=SCOPE).id, cited=[0])
        state = memory.learning.export(scope=SCOPE)
        status = other.learning.load(state, scope=SCOPE)
        assert status.outcomes == 1
        assert status.searches[0].serves == "parts"
        assert other.learning.export(scope=SCOPE) == state
        with pytest.raises(InvalidInput, match="searches"):
            other.learning.load({"searches": {"rewards": 7}}, scope=SCOPE)


def test_practice_needs_no_outcome_logs_nothing_and_happens_once() -> None:
    with filled(recursion=LEARNS) as memory:
        count = memory.learning.practise(scope=SCOPE)
        assert count >= 1
        policy = trainer(memory).policy(HOME)
        assert set(policy.rewards) == {"bridge"}
        assert all(policy.serves(shape) == "planner" for shape in policy.rewards)
        assert searches(memory) == []
        assert memory.learning.practise(scope=SCOPE) == 0
    with Memory.open(":memory:", embedder="hash", recursion=LEARNS) as empty:
        assert empty.learning.practise(scope=SCOPE) == 0
