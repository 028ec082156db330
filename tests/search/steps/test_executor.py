"""Plans are run within limits, and whatever fails leaves the plain answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import pytest

from wellworn import (
    Aggregate,
    DrillDown,
    FilterByRecency,
    FilterByRelevance,
    InvalidInput,
    Limits,
    Memory,
    Planner,
    Recursion,
    RecursiveCall,
    SearchLayer,
)
from wellworn.core.values import Layer
from wellworn.search.steps.actions import Plan

from .world import QUESTION, SCOPE, filled, titles


class Fixed:
    """A planner with one plan for everything."""

    def __init__(self, *plan: object) -> None:
        self.given = plan

    def plan(self, query: str, shape: str, *, layers: Sequence[Layer], depth: int) -> Plan:
        return self.given  # type: ignore[return-value]  # broken plans are part of the tests


def planned(*plan: object, limits: Limits | None = None) -> Memory:
    return filled(recursion=Recursion(planner=Fixed(*plan), limits=limits or Limits()))


def test_a_recall_tells_its_route_and_its_steps() -> None:
    with filled() as memory:
        found = memory.recall(QUESTION, scope=SCOPE)
        assert found.route == "recursive"
        assert [step.action for step in found.trace] == ["filter_by_relevance", "drill_down", "aggregate"]
        assert all(step.seconds >= 0 and not step.problem for step in found.trace)
        plain = memory.recall("When does the bakery open?", scope=SCOPE)
        assert (plain.route, plain.trace) == ("hybrid", ())


def test_off_turns_it_off_at_once_for_a_memory_and_for_a_call() -> None:
    with filled(recursion="off") as memory:
        assert memory.recall(QUESTION, scope=SCOPE).route == "hybrid"
        assert memory.recall(QUESTION, scope=SCOPE, recursion="always").route == "hybrid", "off is off"
    with filled() as memory:
        assert memory.recall(QUESTION, scope=SCOPE, recursion="off").route == "hybrid"
        assert memory.recall("rye bread", scope=SCOPE, recursion="always").route == "recursive"
        with pytest.raises(InvalidInput, match="maybe"):
            memory.recall(QUESTION, scope=SCOPE, recursion="maybe")  # type: ignore[arg-type]


def test_a_careful_threshold_leaves_most_questions_plain() -> None:
    with filled(recursion=Recursion(threshold=0.5)) as memory:
        assert memory.recall(QUESTION, scope=SCOPE).route == "hybrid"
        compared = "Compare the history of the mill that was closed in Leland with that of the school"
        assert memory.recall(compared, scope=SCOPE).route == "recursive"


@pytest.mark.parametrize("limits", [Limits(timeout_s=0), Limits(actions=0), Limits(tokens=0)], ids=str)
def test_a_limit_leaves_the_plain_answer_and_says_so(limits: Limits) -> None:
    with filled(recursion=Recursion(limits=limits)) as memory:
        found = memory.recall(QUESTION, scope=SCOPE, k=3)
        assert [hit.entry.title for hit in found.hits] == titles(memory, recursion="off")
        assert "limit" in found.trace[-1].problem


def test_what_was_found_before_a_limit_is_kept() -> None:
    plan = (SearchLayer(query="rye bread"), Aggregate(), DrillDown(), Aggregate())
    with planned(*plan, limits=Limits(actions=2)) as memory:
        found = memory.recall(QUESTION, scope=SCOPE, k=9)
        assert [step.problem != "" for step in found.trace] == [False, False, True]
        assert any(hit.factors["found"] > 0 for hit in found.hits)


def test_a_broken_plan_or_planner_costs_nothing_but_the_gain() -> None:
    class Raises:
        def plan(self, query: str, shape: str, *, layers: Sequence[Layer], depth: int) -> Plan:
            raise RuntimeError("no plan")

    class Returns:
        def __init__(self, given: object) -> None:
            self.given = given

        def plan(self, query: str, shape: str, *, layers: Sequence[Layer], depth: int) -> Plan:
            return self.given  # type: ignore[return-value]  # wrong on purpose

    def breaks() -> Iterator[object]:
        yield FilterByRelevance()
        raise RuntimeError("no more of it")

    broken = (None, 7, "nonsense", [None], [DrillDown(), "nonsense"], breaks())
    planners: list[Planner] = [Raises(), Fixed(), *map(Returns, broken)]
    for planner in planners:
        with filled(recursion=Recursion(planner=planner)) as memory:
            found = memory.recall(QUESTION, scope=SCOPE, k=3)
            assert [hit.entry.title for hit in found.hits] == titles(memory, recursion="off")
            assert found.route == "hybrid" or not found.trace


def test_calls_go_no_deeper_than_the_limit() -> None:
    with planned(RecursiveCall(sub_query=QUESTION), Aggregate(), limits=Limits(depth=3)) as memory:
        trace = memory.recall(QUESTION, scope=SCOPE).trace
        assert max(step.depth for step in trace) == 2
        assert any("depth 3" in step.problem for step in trace)


def test_a_layer_can_be_searched_on_its_own() -> None:
    with planned(SearchLayer(query="rye bread", layer="team"), Aggregate()) as memory:
        memory.remember("The team shares rye bread on Fridays.", scope=SCOPE, layer="team", title="Team bread")
        hits = memory.recall(QUESTION, scope=SCOPE, k=20).hits
        assert [hit.entry.title for hit in hits if hit.factors["found"] > 0] == ["Team bread"]


def test_old_entries_are_left_out_unless_nothing_would_be_left() -> None:
    with planned(FilterByRecency(max_age_days=10)) as memory:
        old = datetime(2020, 1, 1, tzinfo=UTC)
        memory.remember("A very old film was shot in Leland.", scope=SCOPE, at=old, title="Old")
        assert "Old" not in titles(memory, k=20)
        assert titles(memory, k=20, until=datetime(2021, 1, 1, tzinfo=UTC)) == ["Old"]


def test_a_profile_of_another_scale_stays_plain() -> None:
    with filled(profile="reasoningbank") as memory:
        assert memory.recall(QUESTION, scope=SCOPE, recursion="always").route == "hybrid"


@pytest.mark.parametrize("wrong", [{"depth": 4}, {"actions": -1}, {"timeout_s": float("nan")}, {"tokens": True}])
def test_wrong_limits_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidInput):
        Limits(**wrong)  # type: ignore[arg-type]  # wrong on purpose
