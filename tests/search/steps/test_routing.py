"""From which score on questions are recursive: moved by evidence alone, band by band, and never far."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellworn import Memory, Recursion
from wellworn.core.errors import InvalidInput
from wellworn.ingest.hashing import hash64
from wellworn.search.steps.router import route
from wellworn.search.steps.routing import REACH, Routing, band_of, plain_routing, routing_of
from wellworn.search.steps.searches import Searches, within
from wellworn.search.steps.trainer import PROFILE, Policy, dumps, loads

from .world import PASSAGES, QUESTION, SCOPE, filled

HOME = SCOPE.home()
NEAR = (
    "Tell me about small towns near a coast with paper mills, rivers, schools with champions and rye bread, mild "
    "parking rules on Sundays and short meetings held since spring"
)
"""Plain, but long, and it names a time: a little less than 0.3."""


def taught(routing: Routing, score: float, recursive: float, plain: float, times: int = 20) -> Routing:
    for _ in range(times):
        routing = routing.learned("plain", score, recursive, recursive=True, seconds=0.0)
        routing = routing.learned("plain", score, plain, recursive=False, seconds=0.0)
    return routing


def test_the_near_question_is_near() -> None:
    found = route(NEAR)
    assert found.shape == "plain"
    assert 0.2 <= found.score < 0.3, found


def test_a_band_in_which_recursion_is_worth_more_becomes_recursive() -> None:
    routing = taught(Routing(), 0.25, 0.9, 0.5)
    assert routing.starts("plain", 0.3) == 0.2
    assert routing.starts("bridge", 0.3) == 0.3
    assert routing.near("plain", 0.15, 0.3)  # the next band may now be tried
    assert not Routing().near("plain", 0.15, 0.3)


def test_a_band_in_which_plain_search_is_worth_more_becomes_plain() -> None:
    routing = taught(Routing(), 0.35, 0.5, 0.9)
    assert routing.starts("plain", 0.3) == 0.4
    assert routing.near("plain", 0.35, 0.3)  # and may be tried again
    assert taught(Routing(), 0.55, 0.5, 0.9).starts("plain", 0.3) == 0.3  # not from the inside


def test_a_gain_that_its_time_eats_up_moves_nothing() -> None:
    assert taught(Routing(), 0.25, 0.51, 0.5, times=200).starts("plain", 0.3) == 0.3
    slow = Routing()
    for _ in range(50):
        slow = slow.learned("plain", 0.25, 0.9, recursive=True, seconds=9.4)
        slow = slow.learned("plain", 0.25, 0.5, recursive=False, seconds=0.0)
    assert slow.starts("plain", 0.3) == 0.3


def test_too_few_outcomes_move_nothing() -> None:
    assert taught(Routing(), 0.25, 1.0, -0.5, times=7).starts("plain", 0.3) == 0.3
    assert taught(Routing(), 0.25, 1.0, -0.5, times=8).starts("plain", 0.3) == 0.2


def test_what_a_bound_put_in_place_the_mean_takes_back() -> None:
    routing = taught(Routing(), 0.25, 0.9, 0.5)
    for _ in range(40):
        routing = routing.learned("plain", 0.25, 0.1, recursive=True, seconds=0.0)
    assert routing.starts("plain", 0.3) == 0.3


def test_it_never_moves_further_than_its_reach_and_not_past_what_is_not_proven() -> None:
    routing = Routing()
    for score in (0.25, 0.15, 0.05):
        routing = taught(routing, score, 0.9, 0.5)
    assert routing.starts("plain", 0.3) == pytest.approx(0.3 - REACH)
    assert not routing.near("plain", 0.05, 0.3)
    assert taught(Routing(), 0.15, 0.9, 0.5).starts("plain", 0.3) == 0.3
    assert routing.starts("plain", 1.1) == 1.1  # above 1 is never


def test_where_both_are_worth_the_same_it_hardly_ever_moves() -> None:
    moved = 0
    for seed in range(200):
        dice, routing = random.Random(seed), Routing()
        for _ in range(100):
            routing = routing.learned("plain", 0.25, dice.choice((0.8, 1.0, -0.2)), recursive=True, seconds=0.0)
            routing = routing.learned("plain", 0.25, dice.choice((0.8, 1.0, -0.2)), recursive=False, seconds=0.0)
        moved += routing.starts("plain", 0.3) < 0.3
    assert moved <= 20  # of 200 lives with 100 looks each: of those that moved, half are taken back by the mean


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(-1, 1), st.booleans()), max_size=60), st.floats(0, 1.2))
def test_whatever_is_told_it_stays_within_reach_and_is_kept_as_it_is(
    told: list[tuple[float, float, bool]], threshold: float
) -> None:
    routing = Routing()
    for score, reward, recursive in told:
        routing = routing.learned("gather", score, reward, recursive=recursive, seconds=0.0)
    assert abs(routing.starts("gather", threshold) - threshold) <= REACH + 1e-6
    assert routing_of(plain_routing(routing)) == routing
    assert all(0 <= band_of(score) < 10 for score, _, _ in told)


# -- on a memory --------------------------------------------------------------------------------------------------


def books(memory: Memory) -> Searches:
    assert memory.engine.searches is not None
    return memory.engine.searches


def put(memory: Memory, routing: Routing) -> None:
    with memory.engine.store.transact() as tx:
        tx.put_policy(HOME.tenant, None, dumps(Policy(seed=1, routing=routing)), profile=PROFILE)


def kept(memory: Memory) -> list[str]:
    memory.engine.learner.log.flush()
    return [one.query for one in books(memory).kept(HOME, limit=1000)]


def test_what_was_learned_routes_and_a_reset_or_the_flag_undoes_it_at_once() -> None:
    with filled() as memory:
        assert memory.recall(NEAR, scope=SCOPE).route == "hybrid"
        put(memory, taught(Routing(), route(NEAR).score, 0.9, 0.5))
        assert memory.recall(NEAR, scope=SCOPE).route == "recursive"
        assert memory.recall(NEAR, scope=SCOPE, recursion="off").route == "hybrid"
        (found,) = memory.learning.status(scope=SCOPE).searches
        assert (found.shape, found.starts) == ("plain", 0.2)
        state = memory.learning.export(scope=SCOPE)
        memory.learning.reset(scope=SCOPE)
        assert memory.recall(NEAR, scope=SCOPE).route == "hybrid"
        memory.learning.load(state, scope=SCOPE)
        assert memory.recall(NEAR, scope=SCOPE).route == "recursive"


def test_where_nothing_may_be_learned_the_settings_route() -> None:
    for options in ({"learning": "observe"}, {"recursion": Recursion(learns=False)}, {"recursion": "off"}):
        with filled(**options) as memory:
            put(memory, taught(Routing(), route(NEAR).score, 0.9, 0.5))
            assert memory.recall(NEAR, scope=SCOPE).route == "hybrid"


def test_plain_questions_near_the_threshold_are_noted_and_tried_only_with_who_tells_outcomes() -> None:
    with filled(recursion=Recursion(explore=0.1)) as memory:
        for number in range(40):
            assert memory.recall(f"{NEAR} {number}", scope=SCOPE).route == "hybrid"
        assert kept(memory) == []
        memory.outcome(memory.recall("bakery bread", scope=SCOPE).id, cited=[0])
        routes = [memory.recall(f"{NEAR} {number}", scope=SCOPE).route for number in range(40)]
        assert 4 <= routes.count("recursive") <= 30  # four in ten while young
        assert len(kept(memory)) == 40
        assert memory.recall("bakery bread", scope=SCOPE).id not in {one.id for one in books(memory).kept(HOME)}


def test_what_becomes_of_them_teaches_routing_and_no_family() -> None:
    with filled(recursion=Recursion(explore=0.0)) as memory:
        memory.outcome(memory.recall(PASSAGES[7][1], scope=SCOPE).id, cited=[0])
    with filled(recursion=Recursion(explore=0.1), explore=0.0) as memory:
        for number in range(50):
            found = memory.recall(f"{NEAR} {number}", scope=SCOPE)
            memory.outcome(found.id, cited=[0])
        policy = books(memory).policy(HOME)
        assert memory.learning.status(scope=SCOPE).trusted
        assert policy.families == {}
        band = policy.routing.band("plain", route(NEAR).score)
        assert band.plain.n > 10
        assert band.recursive.n > 2


def test_a_switch_of_routing_is_an_event_with_its_evidence() -> None:
    with filled(recursion=Recursion(explore=0.1), explore=0.0) as memory:
        number = 0
        while books(memory).policy(HOME).routing.starts("plain", 0.3) == 0.3:
            found = memory.recall(f"{NEAR} {number}", scope=SCOPE)
            memory.outcome(found.id, cited=[0, 1] if found.route == "recursive" else [0])
            number += 1
            assert number < 400
        event = next(
            one for one in memory.admin.events(scope=SCOPE) if one.action == "learn" and "score" in str(one.detail)
        )
        assert (event.detail["from"], event.detail["to"]) == ("as set", "recursive")
        assert "questions of shape plain that score 0.2 to 0.3: recursive" in str(event.detail["why"])
        routes = [memory.recall(f"{NEAR} {more}", scope=SCOPE).route for more in ("a", "b", "c", "d", "e", "f")]
        assert routes.count("recursive") >= 2  # but for tries, of which plain search is the first


# -- stages ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_a_share_of_questions_may_be_recursive_and_always_the_same(share: float) -> None:
    with filled(recursion=Recursion(share=share, explore=0.0)) as memory:
        routes = [memory.recall(f"{QUESTION} {number}", scope=SCOPE).route for number in range(200)]
        again = [memory.recall(f"{QUESTION} {number}", scope=SCOPE).route for number in range(200)]
    assert routes == again
    assert abs(routes.count("recursive") / 200 - share) <= 0.1
    assert share not in (0.0, 1.0) or routes.count("recursive") == 200 * share


def test_the_rest_is_what_the_others_are_compared_with() -> None:
    with filled(recursion=Recursion(share=0.5, explore=0.0)) as memory:
        for number in range(20):
            memory.recall(f"{QUESTION} {number}", scope=SCOPE)
        memory.engine.learner.log.flush()
        choices = {one.choice for one in books(memory).kept(HOME)}
        assert choices == {"planner", "plain"}
        assert memory.recall(QUESTION, scope=SCOPE, recursion="always").route == "recursive"


def test_a_share_holds_without_learning_too() -> None:
    with filled(recursion=Recursion(share=0.0, learns=False)) as memory:
        assert memory.recall(QUESTION, scope=SCOPE).route == "hybrid"
    with filled(recursion=Recursion(share=0.0), learning="observe") as memory:
        assert memory.recall(QUESTION, scope=SCOPE).route == "hybrid"


def test_a_share_is_a_share() -> None:
    with pytest.raises(InvalidInput, match="share"):
        Recursion(share=1.5)
    assert within(1.0, HOME, "x")
    assert not within(0.0, HOME, "x")


def test_states_of_before_are_read_as_they_were() -> None:
    old = '{"format":1,"kind":"searches","seed":3,"bootstrapped":0,"families":{}}'
    assert loads(old, seed=hash64("x")) == Policy(seed=3)
