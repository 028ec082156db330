"""Plans by a model: the question goes to one, its parts, side by side, to another; rules step in where a model fails.

The whole tree of plans is made when the question itself is planned, before the search is opened, so that no index is
held while a model thinks. One object serves one recall.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from wellworn.core.errors import WellwornError
from wellworn.core.fence import escape
from wellworn.core.values import Layer, Step
from wellworn.models.ledger import Meter as Metered
from wellworn.models.port import Message, Request
from wellworn.search.steps.actions import Plan, RecursiveCall
from wellworn.search.steps.calls import Answer, Calls
from wellworn.search.steps.cues import READ_CHARS, Shape, shape_of
from wellworn.search.steps.limits import LimitMet, Limits
from wellworn.search.steps.plans import Planner
from wellworn.search.steps.prompts import prompt
from wellworn.search.steps.reading import plan_of

MAX_OUTPUT_TOKENS = 800
PURPOSE = "plan"


class ModelPlanner:
    """Asks models; what cannot be had from them is planned by `rules`."""

    def __init__(self, root: Metered, sub: Metered, calls: Calls, *, rules: Planner, limits: Limits) -> None:
        self._root = root
        self._sub = sub
        self._calls = calls
        self._rules = rules
        self._limits = limits
        self._made: dict[tuple[int, str], Plan] = {}
        self.steps: list[Step] = []
        """What was planned, by whom, how long it took; the first steps of the recall's trace."""

    def plan(self, query: str, shape: Shape, *, layers: Sequence[Layer], depth: int) -> Plan:
        """The model's plan for a question, else the rules'."""
        if depth == 0:
            self._prepare(query, layers)
        made = self._made.get((depth, query))
        return self._rules.plan(query, shape, layers=layers, depth=depth) if made is None else made

    def _prepare(self, query: str, layers: Sequence[Layer]) -> None:
        """Plan the question, then its parts, level by level."""
        model, wanted = self._root, [query]
        for depth in range(self._limits.depth):
            began = time.perf_counter()
            answers = self._calls.ask_all(model, [request_for(one, layers) for one in wanted])
            seconds = time.perf_counter() - began
            plans = [
                self._read(one, answer, layers, depth, model.name, seconds)
                for one, answer in zip(wanted, answers, strict=True)
            ]
            parts = [action.sub_query for plan in plans for action in plan if isinstance(action, RecursiveCall)]
            wanted = [part for part in dict.fromkeys(parts) if shape_of(part) != "plain"]  # one search suffices there
            model = self._sub
            if not wanted:
                return

    def _read(self, query: str, answer: Answer, layers: Sequence[Layer], depth: int, by: str, seconds: float) -> Plan:
        """A plan out of an answer, kept for when it is asked for; empty where there is none."""
        plan: Plan = ()
        problem = ""
        try:
            if isinstance(answer, Exception):
                raise answer
            plan = plan_of(answer, layers, most=self._limits.actions)
            self._made[depth, query] = plan
        except LimitMet as limit:
            problem = f"stopped at the limit of {limit}; planned by rules"
        except WellwornError as error:
            problem = f"failed: {type(error).__name__}; planned by rules"
        except Exception as error:  # a model is anybody's code
            problem = f"failed: {type(error).__name__}; planned by rules"
        self.steps.append(
            Step(
                action="plan",
                detail=by if not problem else "",
                found=len(plan),
                seconds=seconds,
                depth=depth,
                problem=problem,
            )
        )
        return plan


def request_for(query: str, layers: Sequence[Layer]) -> Request:
    """What a planning model is sent."""
    told = f"<layers>{', '.join(dict.fromkeys(layers))}</layers>\n<question>{escape(query[:READ_CHARS])}</question>"
    messages = (Message(role="system", text=prompt("plan")), Message(role="user", text=told))
    return Request(messages=messages, purpose=PURPOSE, max_output_tokens=MAX_OUTPUT_TOKENS, json=True)
