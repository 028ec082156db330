"""Plans by a model: one model plans the question, another its parts, at the same time; rules step in where they fail.

All plans are made when the question itself is planned, before the search is opened, so that no index is held while a
model thinks. One object serves one recall. What a model writes is checked: whatever is an action stays, the rest is left
out.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from wellworn.core.errors import InvalidInput, ReplyUnreadable
from wellworn.core.fence import escape
from wellworn.core.plain import from_plain
from wellworn.core.values import Layer, SearchStep
from wellworn.ingest.terms import words
from wellworn.ingest.validate import checked_query
from wellworn.models.ledger import Meter as MeteredModel
from wellworn.models.port import Request
from wellworn.models.structured import read_json
from wellworn.search.steps.actions import NAMES, Action, Aggregate, Plan, Planner, RecursiveCall, SearchLayer
from wellworn.search.steps.limits import Answer, Calls, LimitMet, prompt
from wellworn.search.steps.router import READ_CHARS, Limits, Shape, shape_of

MAX_OUTPUT_TOKENS = 800
_KINDS = {name: kind for kind, name in NAMES.items()}
_LAYERS = ("layer", "source", "target")


class ModelPlanner:
    """Asks models for plans; `rules` plan what they cannot."""

    def __init__(self, root: MeteredModel, sub: MeteredModel, calls: Calls, *, rules: Planner, limits: Limits) -> None:
        self._root = root
        self._sub = sub
        self._calls = calls
        self._rules = rules
        self._limits = limits
        self._made: dict[tuple[int, str], Plan] = {}
        self.steps: list[SearchStep] = []
        """What was planned by whom; the first steps of the recall's trace."""

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
            parts: list[str] = []
            for one, answer in zip(wanted, answers, strict=True):
                plan, problem = self._read(answer, layers)
                if not problem:
                    self._made[depth, one] = plan
                by, found = "" if problem else model.name, len(plan)
                self.steps.append(
                    SearchStep(action="plan", detail=by, found=found, seconds=seconds, depth=depth, problem=problem)
                )
                parts += [action.sub_query for action in plan if isinstance(action, RecursiveCall)]
            wanted = [part for part in dict.fromkeys(parts) if shape_of(part) != "plain"]  # one search is enough there
            model = self._sub
            if not wanted:
                return

    def _read(self, answer: Answer, layers: Sequence[Layer]) -> tuple[Plan, str]:
        """The plan in an answer, or why there is none."""
        try:
            if isinstance(answer, Exception):
                raise answer
            return plan_in(answer, layers, most=self._limits.actions), ""
        except LimitMet as limit:
            return (), f"stopped at the limit of {limit}; planned by rules"
        except Exception as error:  # a model may raise anything
            return (), f"failed: {type(error).__name__}; planned by rules"


def request_for(query: str, layers: Sequence[Layer]) -> Request:
    """What a planning model is sent."""
    told = f"<layers>{', '.join(dict.fromkeys(layers))}</layers>\n<question>{escape(query[:READ_CHARS])}</question>"
    return Request.of(prompt("plan"), told, purpose="plan", max_output_tokens=MAX_OUTPUT_TOKENS, json=True)


def plan_in(text: str, layers: Sequence[Layer], *, most: int) -> Plan:
    """The plan in a model's answer: at most so many actions, with an `Aggregate` at its end.

    `ReplyUnreadable` if it holds no action.
    """
    value = read_json(text, wants=["actions"])
    items = value.get("actions", [value]) if isinstance(value, dict) else value
    items = items if isinstance(items, list) else [items]
    actions = [action for item in items if (action := _action(item, layers)) is not None]
    doing = [action for action in actions if not isinstance(action, Aggregate)]
    if not actions or (not doing and len(actions) < len(items)):  # what is left of it does nothing
        raise ReplyUnreadable(f"the model's answer of {len(text)} characters holds no action of a plan")
    last = next((action for action in reversed(actions) if isinstance(action, Aggregate)), Aggregate())
    return (*dict.fromkeys(doing[: max(most - 1, 0)]), last)


def _action(item: Any, layers: Sequence[Layer]) -> Action | None:  # Any: as a model wrote it
    """What a model wrote as an action; None if it is none. Layers that the scope does not name are left out."""
    kind = _KINDS.get(str(item.get("action"))) if isinstance(item, dict) else None
    if kind is None:
        return None
    given = {name: value for name, value in item.items() if name not in _LAYERS or value in layers}
    try:
        action = from_plain(kind, given, strict=False)
        if isinstance(action, SearchLayer | RecursiveCall):
            asked = checked_query(action.query if isinstance(action, SearchLayer) else action.sub_query)
            return action if words(asked) else None  # small models copy the dots of the prompt's example
        return action
    except (ValueError, InvalidInput):
        return None
