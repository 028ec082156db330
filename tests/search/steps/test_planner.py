"""Plans by models: read leniently, bounded in every way, replaced by rules where they fail."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellworn import (
    Aggregate,
    Budget,
    DrillDown,
    FilterByRecency,
    FilterByRelevance,
    InvalidInput,
    Limits,
    Memory,
    ModelFailed,
    Models,
    Recursion,
    RecursiveCall,
    ReplyUnreadable,
    SearchLayer,
)
from wellworn.models import Request, ScriptedModel
from wellworn.search.steps.actions import NAMES
from wellworn.search.steps.planner import plan_in

from .world import QUESTION, SCOPE, filled, titles

BREAD = {"action": "search_layer", "query": "rye bread"}
END = {"action": "aggregate", "strategy": "combine"}


def answering(*actions: Any) -> str:  # whatever a model writes
    return json.dumps({"actions": actions})


def modelled(
    root: Any, sub: Any = None, *, limits: Limits | None = None, budget: Budget | None = None, **models: Any
) -> Memory:
    chosen = Models(root=root, sub=sub, **models)
    return filled(recursion=Recursion(models=chosen, limits=limits or Limits()), budget=budget)


def actions_of(memory: Memory) -> list[str]:
    return [step.action for step in memory.recall(QUESTION, scope=SCOPE).trace]


WAIT_S = 300.0
RULES = ["filter_by_relevance", "drill_down", "aggregate"]


def test_the_models_plan_is_run_and_the_trace_and_the_ledger_know_whose_it_is() -> None:
    with modelled(ScriptedModel(answering(BREAD, END), name="planner")) as memory:
        found = memory.recall(QUESTION, scope=SCOPE, k=9)
        assert [step.action for step in found.trace] == ["plan", "search_layer", "aggregate"]
        assert (found.trace[0].detail, found.trace[0].found) == ("planner", 2)
        assert "Bakery" in [hit.entry.title for hit in found.hits if hit.factors["found"] > 0]
        assert found.cost.model_calls == 1
        assert found.cost.input_tokens > 0
        (spent,) = memory.admin.costs(scope=SCOPE, by=["purpose"])
        assert (spent.key, spent.calls) == (("plan",), 1)


def test_parts_are_planned_by_the_other_model_side_by_side_and_no_deeper_than_the_limit() -> None:
    parts = [f"Who directed the film that was shot in place {n}?" for n in range(4)]
    together = threading.Barrier(4)

    def sub(request: Request) -> str:
        if "place" in request.messages[-1].text:
            together.wait(WAIT_S)  # fails unless all four are asked at the same time
        return answering({"action": "recursive_call", "sub_query": "Who owns the mill that was sold in Leland?"})

    calls = [{"action": "recursive_call", "sub_query": part} for part in parts]
    root, below = ScriptedModel(answering(*calls)), ScriptedModel(sub, name="cheaper")
    with modelled(root, below) as memory:
        trace = memory.recall(QUESTION, scope=SCOPE).trace
        planned = [(step.depth, step.detail) for step in trace if step.action == "plan"]
        assert planned == [(0, "scripted"), *[(1, "cheaper")] * 4, (2, "cheaper")]
        assert max(step.depth for step in trace) == 2
        assert len(root.requests) == 1


@pytest.mark.parametrize(
    "reply",
    [
        "I would search for it.",
        "",
        "{}",
        '{"actions": []}',
        '{"actions": [{"action": "drop_table"}]}',
        "[1, 2]",
        '{"actions": [{"action": "recursive_call", "sub_query": "…"}, {"action": "aggregate", "strategy": "compare"}]}',
        ModelFailed("no service"),
        RuntimeError("anything"),
    ],
    ids=repr,
)
def test_where_a_model_fails_rules_plan(reply: Any) -> None:
    with modelled(ScriptedModel(reply)) as memory, filled() as ruled:
        found = memory.recall(QUESTION, scope=SCOPE)
        assert [step.action for step in found.trace] == ["plan", *RULES]
        assert "planned by rules" in found.trace[0].problem
        assert titles(memory) == titles(ruled)


@pytest.mark.slow
def test_a_slow_part_costs_only_itself() -> None:
    woken = threading.Event()

    def sub(request: Request) -> str:
        if "slow" in request.messages[-1].text:
            woken.wait(WAIT_S)
        return answering(BREAD)

    ask = [f"Who directed the film that was shot in {place}?" for place in ("slow town", "Leland")]
    root = ScriptedModel(answering(*[{"action": "recursive_call", "sub_query": one} for one in ask]))
    with modelled(root, ScriptedModel(sub), timeout_s=2.0) as memory:
        plans = [step for step in memory.recall(QUESTION, scope=SCOPE).trace if step.action == "plan"]
        assert [bool(step.problem) for step in plans] == [False, True, False]
        woken.set()


@pytest.mark.parametrize(
    "bounds",
    [{"limits": Limits(tokens=300)}, {"calls": 0}, {"timeout_s": 0}, {"budget": Budget(per_call_tokens=10)}],
    ids=str,
)
def test_over_a_limit_no_call_is_made(bounds: dict[str, Any]) -> None:
    model = ScriptedModel(answering(BREAD))
    with modelled(model, **bounds) as memory:
        found = memory.recall(QUESTION, scope=SCOPE)
        assert not model.requests
        assert found.trace[0].problem
        assert found.hits


def test_dollars_are_limited_too(tmp_path: Any) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text('usd_per_million_tokens:\n  "planner": {input: 1000.0, output: 1000.0}\n', encoding="utf-8")
    model = ScriptedModel(answering(BREAD), name="planner")
    recursion = Recursion(models=Models(root=model), limits=Limits(usd=0.01))
    with filled(recursion=recursion, prices=prices) as memory:
        assert "0.01 USD" in memory.recall(QUESTION, scope=SCOPE).trace[0].problem
        assert not model.requests


def test_personal_data_does_not_reach_the_model() -> None:
    model = ScriptedModel(answering(BREAD))
    with filled(recursion=Recursion(models=Models(root=model)), scrubber="mask") as memory:
        memory.recall("Who directed the film that ada@example.org shot in Leland?", scope=SCOPE)
        assert "ada@example.org" not in model.requests[0].messages[-1].text
        assert "EMAIL" in model.requests[0].messages[-1].text


def test_whatever_is_an_action_is_read_and_the_rest_left_out() -> None:
    text = """Here is my plan:
    ```json
    {"actions": [
      {"action": "search_layer", "query": "a", "layer": "team"}, {"action": "search_layer", "query": "b", "layer": "moon"},
      {"action": "recursive_call", "sub_query": "c"}, {"action": "recursive_call"}, {"action": "fly"},
      {"action": "drill_down", "source": "team", "target": "user", "filter": "d"},
      {"action": "filter_by_relevance", "top": "4"}, {"action": "filter_by_recency", "max_age_days": 30},
      {"action": "filter_by_recency", "max_age_days": "soon"}, {"action": "search_layer", "query": "  "}, 7,
      {"action": "aggregate", "strategy": "compare"},
    ]}"""
    assert plan_in(text, ["user", "team"], most=16) == (
        SearchLayer(query="a", layer="team"),
        SearchLayer(query="b"),
        RecursiveCall(sub_query="c"),
        DrillDown(source="team", target="user", filter="d"),
        FilterByRelevance(top=4),
        FilterByRecency(max_age_days=30),
        Aggregate(strategy="compare"),
    )


def test_a_plan_is_no_longer_than_it_may_be_and_always_ends() -> None:
    many = answering(*[{"action": "search_layer", "query": f"q{n}"} for n in range(40)], END)
    plan = plan_in(many, [], most=5)
    assert len(plan) == 5
    assert isinstance(plan[-1], Aggregate)
    assert plan_in(answering(BREAD, BREAD), [], most=16) == (SearchLayer(query="rye bread"), Aggregate())


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=20) | st.sampled_from([*NAMES.values()]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["action", "query", "layer", "top", "actions", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(value=json_values)
def test_whatever_a_model_writes_is_a_plan_or_unreadable(value: Any) -> None:
    try:
        plan = plan_in(json.dumps(value), ["user"], most=6)
    except ReplyUnreadable:
        return
    assert 1 <= len(plan) <= 6
    assert all(type(action) in NAMES for action in plan)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"root": None}, "root"),
        ({"root": "rules"}, "root"),
        ({"root": "nonsense:x"}, "nonsense"),
        ({"root": ScriptedModel("x"), "calls": -1}, "calls"),
    ],
    ids=["none", "rules", "nonsense", "calls"],
)
def test_wrong_settings_are_told_at_once(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        Models(**settings)
