"""The deadline holds inside of actions, and against code that does not come back."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from contract.few import few
from wellworn import Aggregate, DrillDown, Limits, Memory, Recursion, SearchLayer
from wellworn.search.filters import Filters
from wellworn.search.steps.actions import FilterByRelevance, Plan, RecursiveCall, RulePlanner
from wellworn.search.steps.limits import LimitMet, Usage
from wellworn.search.steps.search import Executor

from .world import PASSAGES, QUESTION, SCOPE, filled

LONG_S = 60.0
"""What hangs, hangs this long unless it is woken, which happens after the recall: nobody waits for it."""


class Ticks:
    """A clock that goes on by one with every look at it: so many looks, so much time."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> float:
        self.now += 1
        return float(self.now)


class Hanging:
    """A planner that never comes back, at once or in a sub-question."""

    def __init__(self, depth: int) -> None:
        self.depth, self.woken = depth, threading.Event()

    def plan(self, query: str, shape: str, *, layers: Sequence[str], depth: int) -> Plan:
        if depth >= self.depth:
            self.woken.wait(LONG_S)
        return (RecursiveCall(sub_query="Who directed the film that was shot in Leland?"), Aggregate())


@pytest.mark.parametrize("depth", few([0, 1], 1))
def test_a_planner_that_hangs_is_left_behind(depth: int) -> None:
    planner = Hanging(depth)
    with filled(recursion=Recursion(planner=planner, limits=Limits(timeout_s=0.1 if depth == 0 else 2.0))) as memory:
        plain = memory.recall(QUESTION, scope=SCOPE, recursion="off")
        found = memory.recall(QUESTION, scope=SCOPE)
        assert [hit.entry.id for hit in found] == [hit.entry.id for hit in plain]
        assert found.route == ("hybrid" if depth == 0 else "recursive")
        assert depth == 0 or "limit" in found.trace[0].problem
        planner.woken.set()


def test_an_embedder_that_hangs_on_a_part_of_the_question_is_left_behind() -> None:
    woken = threading.Event()

    def embed(texts: Sequence[str]) -> npt.NDArray[np.float32]:
        if any("Kestrel" in text for text in texts):  # only in the second query
            woken.wait(LONG_S)
        return np.ones((len(texts), 4), dtype=np.float32)

    class Part:
        def plan(self, query: str, shape: str, *, layers: Sequence[str], depth: int) -> Plan:
            return SearchLayer(query="Kestrel"), DrillDown(), Aggregate()

    recursion = Recursion(planner=Part(), limits=Limits(timeout_s=0.2))
    with Memory.open(":memory:", embedder=embed, recursion=recursion) as memory:
        memory.remember_many([text for _, text in PASSAGES], scope=SCOPE)
        found = memory.recall(QUESTION, scope=SCOPE)
        assert "limit of 0.2 s" in found.trace[0].problem
        assert len(found) == 5
        woken.set()


PLANS: list[Plan] = [
    (FilterByRelevance(top=3), DrillDown(turns=True), Aggregate(strategy="combine")),
    (SearchLayer(query="Stefan Kingsley film"), Aggregate()),
    (RecursiveCall(sub_query="Who directed the film that was shot in Leland?"), Aggregate(strategy="compare")),
]


@pytest.mark.parametrize("plan", PLANS)
def test_an_action_may_be_stopped_at_every_look_at_the_clock_and_leaves_a_whole_ranking(plan: Plan) -> None:
    """Looks are frequent inside of actions, and wherever one says stop the answer is that of an action before."""
    with filled(recursion="off") as memory:
        plain = [hit.entry.id for hit in memory.recall(QUESTION, scope=SCOPE, k=9)]
        stops = set()
        for allowed in range(60):
            executor = Executor(plan, RulePlanner(), Usage(Limits(timeout_s=allowed), now=Ticks()))
            found = memory.engine.searcher.recall(QUESTION, scope=SCOPE, k=9, filters=Filters(), refine=executor)
            assert {hit.entry.id for hit in found} == set(plain)
            last = executor.steps[-1]
            if not last.problem:
                break
            stops.add((len(executor.steps), last.action))
            if len(executor.steps) == 1 and last.action != "drill_down":
                assert [hit.entry.id for hit in found] == plain
        assert not executor.steps[-1].problem  # in the end it gets through
        assert allowed > 2 * len(plan)  # more looks than one before each action
        assert len(stops) >= len(plan)


def test_what_comes_in_time_is_taken_and_what_fails_fails() -> None:
    usage = Usage(Limits(timeout_s=5.0))
    assert usage.within(lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        usage.within(lambda: 1 // 0)
    with pytest.raises(LimitMet):
        Usage(Limits(timeout_s=0.05)).within(lambda: time.sleep(0.5))
    with pytest.raises(LimitMet):
        Usage(Limits(timeout_s=0.0)).within(lambda: 3)
