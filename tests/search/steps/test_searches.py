"""Searches are written down, end with what became of them, and teach what serves: through `Memory` alone."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from wellworn import Memory, Recursion, Scope
from wellworn.search.steps.searches import MOST_KEPT, Searches
from wellworn.search.steps.trainer import PROFILE, Policy, dumps
from wellworn.search.steps.trajectory import Trajectory
from wellworn.store.port import Record

from .world import QUESTION, SCOPE, Time, filled

HOME = SCOPE.home()
PLAIN_QUESTION = "bakery"


def books(memory: Memory) -> Searches:
    assert memory.engine.searches is not None
    return memory.engine.searches


def kept(memory: Memory) -> list[Trajectory]:
    memory.engine.learner.log.flush()
    return books(memory).kept(HOME, limit=1000)


def serve(memory: Memory, shape: str, choice: str) -> None:
    """Put a state in place in which this choice is proven."""
    policy = Policy(seed=1)
    for _ in range(20):
        policy = policy.learned(shape, choice, 1.0).learned(shape, "planner", 0.0)  # type: ignore[arg-type]
    with memory.engine.store.transact() as tx:
        tx.put_policy(HOME.tenant, None, dumps(policy), profile=PROFILE)


def test_a_recursive_search_is_written_down_and_a_plain_one_is_not() -> None:
    with filled() as memory:
        memory.recall(PLAIN_QUESTION, scope=SCOPE)
        found = memory.recall(QUESTION, scope=SCOPE)
        (search,) = kept(memory)
        assert (search.id, search.query, search.shape, search.choice) == (found.id, QUESTION, "bridge", "planner")
        assert [action["action"] for action in search.actions] == [step.action for step in found.trace]
        assert search.actions[-1]["ended"] >= search.actions[0]["ended"] > 0
        assert search.shown == tuple(hit.entry.id for hit in found.hits)
        assert search.tokens > 0
        assert search.outcome is None
        assert search.reward is None


def test_nothing_is_written_while_a_recall_is_answered(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m.db", embedder="hash") as memory:
        memory.remember("Leland is a town. Overdrive Maximus was shot in Leland.", scope=SCOPE)
        memory.engine.learner.log.close()  # no background
        memory.recall(QUESTION, scope=SCOPE)
        assert books(memory).waits
        assert memory.engine.store.records(partition=HOME) == []


def test_an_outcome_ends_its_search_in_the_same_transaction() -> None:
    with filled() as memory:
        found = memory.recall(QUESTION, scope=SCOPE)
        assert memory.outcome(found.id, cited=[0, 1])
        (search,) = books(memory).kept(HOME)
        assert search.outcome is not None
        assert (search.outcome.kind, search.outcome.quality, search.state) == ("used", 1.0, "told")
        assert search.reward == 1.0
        assert memory.outcome(found.id, success=False)
        assert books(memory).kept(HOME) == [search]  # the first that is told counts


def test_asking_anew_says_that_the_first_search_was_not_enough() -> None:
    clock = Time()
    with filled(clock=clock) as memory:
        memory.recall(QUESTION, scope=SCOPE)
        memory.recall("Leland 1986 film director", scope=SCOPE)  # on the plain route
        (search,) = kept(memory)
        assert search.outcome is not None
        assert (search.outcome.kind, search.outcome.by, search.query) == ("refined", "session", QUESTION)
        assert search.reward == pytest.approx(0.6, abs=0.01)


@pytest.mark.parametrize("again", [QUESTION, "rye bread opening hours"])
def test_another_question_or_the_very_same_says_nothing(again: str) -> None:
    with filled(clock=Time()) as memory:
        memory.recall(QUESTION, scope=SCOPE)
        memory.recall(again, scope=SCOPE)
        assert all(search.outcome is None for search in kept(memory))


def test_who_tells_outcomes_and_leaves_a_search_alone_ignored_it() -> None:
    clock = Time()
    with filled(clock=clock) as memory:
        memory.outcome(memory.recall(PLAIN_QUESTION, scope=SCOPE).id, cited=[0])
        found = memory.recall(QUESTION, scope=SCOPE)
        memory.engine.learner.log.flush()
        clock.now += timedelta(hours=1)
        memory.recall(PLAIN_QUESTION, scope=SCOPE)
        (search,) = kept(memory)
        assert search.outcome is not None
        assert (search.id, search.outcome.kind, search.query) == (found.id, "ignored", QUESTION)
        assert memory.outcome(found.id, cited=[0])  # told after all: that counts
        (search,) = kept(memory)
        assert search.outcome is not None
        assert search.outcome.by == "told"


def test_a_search_goes_with_any_entry_that_it_showed_and_with_its_partition() -> None:
    with filled() as memory:
        found = memory.recall(QUESTION, scope=SCOPE)
        receipt = memory.forget(ids=[found.hits[0].entry.id], scope=SCOPE)  # still on its way to the store
        assert receipt.records == 1
        assert kept(memory) == []
        memory.recall(QUESTION, scope=SCOPE)
        memory.forget(everything=True, scope=SCOPE)
        assert kept(memory) == []
        assert not books(memory).waits


def test_searches_are_bounded_in_number() -> None:
    with filled() as memory:
        for number in range(MOST_KEPT + 60):
            memory.recall(f"{QUESTION} {number}", scope=SCOPE)
            if number % 20 == 0:
                memory.engine.learner.log.flush()
        searches = kept(memory)
        assert len(searches) <= MOST_KEPT
        assert searches[0].query.endswith(str(MOST_KEPT + 59))


def test_a_proven_choice_serves_and_the_flag_turns_it_off_at_once() -> None:
    with filled() as memory:
        assert memory.recall(QUESTION, scope=SCOPE).route == "recursive"
        serve(memory, "bridge", "plain")
        assert memory.recall(QUESTION, scope=SCOPE).route == "hybrid"
        assert kept(memory)[0].choice == "plain"  # still in the books: its outcomes count for plain search
        assert memory.recall(QUESTION, scope=SCOPE, recursion="always").route == "recursive"
        serve(memory, "bridge", "gather")
        found = memory.recall(QUESTION, scope=SCOPE)
        assert [step.action for step in found.trace] == ["aggregate"]
        assert memory.recall(QUESTION, scope=SCOPE, recursion="off").route == "hybrid"
        memory.learning.reset(scope=SCOPE)
        assert len(memory.recall(QUESTION, scope=SCOPE).trace) == 3


@pytest.mark.parametrize(
    "options",
    [{"learning": "observe"}, {"learning": "off"}, {"recursion": Recursion(learns=False)}, {"recursion": "off"}],
)
def test_where_nothing_is_to_be_learned_or_served_the_planner_serves(options: dict[str, object]) -> None:
    with filled(**options) as memory:
        serve(memory, "bridge", "gather")
        assert len(memory.recall(QUESTION, scope=SCOPE).trace) == (0 if options.get("recursion") == "off" else 3)


def test_only_trusted_feedback_is_evidence_and_it_brings_what_was_told_before() -> None:
    with filled(recursion=Recursion(explore=0.0), explore=0.0) as memory:
        for number in range(45):
            found = memory.recall(f"{QUESTION} {number % 7}", scope=SCOPE)
            memory.outcome(found.id, cited=[0])
            if not memory.learning.status(scope=SCOPE).trusted:
                assert books(memory).policy(HOME).outcomes == 0
        assert memory.learning.status(scope=SCOPE).trusted
        assert books(memory).policy(HOME).family("bridge").outcomes == 45
        assert {search.state for search in kept(memory)} == {"taught"}


def test_feedback_that_agrees_with_nothing_teaches_nothing() -> None:
    with filled() as memory:
        for number in range(60):
            found = memory.recall(f"{QUESTION} {number}", scope=SCOPE)
            memory.outcome(found.id, cited=[len(found.hits) - 1])
        assert books(memory).policy(HOME).outcomes == 0


def test_people_who_do_not_share_learn_alone() -> None:
    with filled(recursion=Recursion(explore=0.0), explore=0.0) as memory:
        memory.learning.share(False, scope=SCOPE)
        for number in range(40):
            memory.outcome(memory.recall(f"{QUESTION} {number % 7}", scope=SCOPE).id, cited=[0])
        assert books(memory).policy(HOME).outcomes == 40
        assert books(memory).policy(Scope(tenant="acme", user="bob").home()).outcomes == 0
        assert memory.engine.store.policy("acme", None, profile=PROFILE) is None


def test_what_was_learned_is_saved_and_loaded_as_one_state() -> None:
    with filled() as memory, filled() as other:
        serve(memory, "bridge", "gather")
        memory.outcome(memory.recall("bakery bread", scope=SCOPE).id, cited=[0])
        state = memory.learning.export(scope=SCOPE)
        assert state["person"] is not None
        status = other.learning.load(state, scope=SCOPE)
        assert status.outcomes == 1
        assert len(other.recall(QUESTION, scope=SCOPE).trace) == 1
        assert other.learning.export(scope=SCOPE) == state
        with pytest.raises(ValueError, match="export_learning"):
            other.learning.load({"searches": {"format": 99}}, scope=SCOPE)


def test_practice_needs_no_outcome_and_logs_nothing() -> None:
    with filled() as memory:
        entries = {entry.title: entry.id for entry in memory.entries(scope=SCOPE)}
        memory.edit(entries["Bakery"], scope=SCOPE, tags=["town"])
        memory.edit(entries["Parking"], scope=SCOPE, tags=["town"])
        count = memory.learning.practise(scope=SCOPE)
        assert count >= 3
        policy = books(memory).policy(HOME)
        assert policy.bootstrapped == count
        assert {"bridge", "compare", "gather"} <= set(policy.families)
        assert all(family.serves == "planner" for family in policy.families.values())
        means = [{round(known.seen.mean, 2) for known in of.tried.values()} for of in policy.families.values()]
        assert max(map(len, means)) > 1  # it tells choices apart
        assert kept(memory) == []
        assert memory.engine.store.logged_recall("") is None
        assert memory.learning.practise(scope=SCOPE) == 0  # once


def test_practice_on_an_empty_memory_is_nothing() -> None:
    with Memory.open(":memory:", embedder="hash") as memory:
        assert memory.learning.practise(scope=SCOPE) == 0
        assert books(memory).policy(HOME) == Policy(seed=books(memory).policy(HOME).seed)


def test_a_record_gives_back_the_search_that_was_put_into_it() -> None:
    with filled() as memory:
        memory.recall(QUESTION, scope=SCOPE)
        (search,) = kept(memory)
        record = search.record(search.at)
        assert isinstance(record, Record)
        assert memory.engine.store.record(HOME, "search", search.id) is not None
