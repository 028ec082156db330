"""Learning which decomposition serves: it learns in a world with a known answer, and bad feedback teaches nothing."""

from __future__ import annotations

import pytest

from wellworn.learning.guard import Evidence
from wellworn.learning.outcome import outcome_input
from wellworn.search.steps.choices import Choice
from wellworn.search.steps.reward import Became, became, reward_of
from wellworn.search.steps.trainer import MOST_WEIGHT, Policy, Practice, dumps, loads

from .search_world import BEST, PLAIN, SHAPES, Life, value

SEEDS = range(12)
RULES = sum(value(shape, "planner") for shape in SHAPES) / len(SHAPES)


def test_nine_tenths_of_the_best_within_300_outcomes_and_never_below_plain_search() -> None:
    ends = []
    for seed in range(20):
        life = Life(seed=seed)
        for _ in range(12):
            life.live(25)
            assert life.served() >= PLAIN, seed
        assert sum(life.earned) > sum(life.plain)  # tries included
        ends.append(life.served() / BEST)
    assert sum(end >= 0.9 for end in ends) >= 19
    assert min(ends) >= 0.85
    assert RULES < 0.8 * BEST  # so that dead learning fails


@pytest.mark.parametrize("feedback", ["random", "inverted"])
@pytest.mark.parametrize("seed", SEEDS)
def test_bad_feedback_does_not_drag_it_below_plain_search(feedback: str, seed: int) -> None:
    life = Life(seed=seed, feedback=feedback)
    for _ in range(12):
        life.live(25)
        assert life.served() >= PLAIN
    assert sum(life.earned) > sum(life.plain)


def test_honest_feedback_that_turns_does_not_drag_it_below_plain_search() -> None:
    for seed in range(6):
        life = Life(seed=seed).live(300)
        life.feedback = "inverted"
        for _ in range(8):
            life.live(25)
            assert life.served() >= PLAIN, seed


def test_a_family_in_which_plain_search_is_best_is_routed_plain() -> None:
    served = [Life(seed=seed).live(300).policy.family("plain").serves for seed in SEEDS]
    assert served.count("plain") >= 10


def test_the_same_seed_gives_the_same_life() -> None:
    one, two = Life(seed=7).live(120), Life(seed=7).live(120)
    assert dumps(one.policy) == dumps(two.policy)
    assert dumps(one.policy) != dumps(Life(seed=8).live(120).policy)


def test_a_state_is_read_back_as_it_was_and_a_broken_one_begins_afresh() -> None:
    policy = Life(seed=3).live(150).policy
    assert loads(dumps(policy), seed=0) == policy
    for broken in (None, "", "[]", "{}", '{"format":1}', '{"format":2}'):
        assert loads(broken, seed=5) == Policy(seed=5)


def test_weights_are_clamped_and_what_does_not_count_changes_nothing_that_serves() -> None:
    policy = Policy(seed=1)
    for number in range(400):
        policy = policy.learned("bridge", ("parts", "planner")[number % 2], (1.0, -1.0)[number % 2], counts=False)
    known = policy.family("bridge")
    assert known.of("parts").weight == MOST_WEIGHT
    assert known.of("planner").weight == -MOST_WEIGHT
    assert known.serves == "planner"


def test_nothing_is_tried_without_exploration() -> None:
    policy = Policy(seed=1)
    assert not any(policy.choose("bridge", ("planner", "plain"), query=f"q{n}", explore=0.0)[1] for n in range(200))
    tries = sum(policy.choose("bridge", ("planner", "plain"), query=f"q{n}", explore=0.1)[1] for n in range(1000))
    assert 330 < tries < 470  # four in ten while young


def test_practice_says_where_to_look_first_but_decides_nothing() -> None:
    rewards: dict[Choice, float] = {"planner": 0.0, "parts": 1.0, "plain": 0.2}
    seen = {choice: Evidence(n=20, total=20 * one, squares=20 * one * one) for choice, one in rewards.items()}
    found: Practice = {"compare": seen}
    policy = Policy(seed=1).begun(found, 20)
    assert policy.family("compare").serves == "planner"
    assert (
        policy.family("compare").to_try(("planner", "plain", "parts"), 1) == "plain"
    )  # the floor is to be known first
    floor = policy.learned("compare", "plain", 0.2).learned("compare", "plain", 0.2)
    assert floor.family("compare").to_try(("planner", "plain", "parts"), 1) == "parts"
    assert policy.begun(found, 20) is policy
    assert loads(dumps(policy), seed=0) == policy
    for _ in range(3):
        policy = policy.learned("compare", "parts", 1.0).learned("compare", "planner", 0.0)
    assert policy.family("compare").serves == "parts"


@pytest.mark.parametrize(
    ("outcome", "tokens", "reward"),
    [
        (Became(kind="used", quality=1.0), 0, 1.0),
        (Became(kind="used", quality=0.5), 50_000, 0.65),
        (Became(kind="refined"), 100_000, 0.3),
        (Became(kind="refined"), 0, 0.6),
        (Became(kind="ignored"), 200_000, -0.5),
        (Became(kind="none"), 0, 0.3),
    ],
)
def test_the_reward_is_that_of_the_design(outcome: Became, tokens: int, reward: float) -> None:
    assert reward_of(outcome, tokens) == pytest.approx(reward)


def test_every_kind_of_outcome_has_its_meaning() -> None:
    nothing = {"cited": None, "used": None, "ignored": False, "refined": None, "success": None}
    for given, kind, quality in [
        ({"cited": [0]}, "used", 0.5),
        ({"cited": [0, 2, 3]}, "used", 1.0),
        ({"cited": []}, "ignored", 0.0),
        ({"used": 0.7}, "used", 0.7),
        ({"ignored": True}, "ignored", 0.0),
        ({"refined": "x"}, "refined", 0.0),
        ({"success": True}, "used", 1.0),
        ({"success": False}, "ignored", 0.0),
    ]:
        found = became(outcome_input(**{**nothing, **given}))  # type: ignore[arg-type, dict-item]
        assert (found.kind, found.quality, found.by) == (kind, quality, "told")
