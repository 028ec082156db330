"""Plans by a model: one model plans the question, another its parts, at the same time; rules step in where they fail.

All plans are made when the question itself is planned, before the search is opened, so that no index is held while a
model thinks. One object serves one recall. What a model writes is read leniently: whatever can be read as an action is
one, the rest is left out.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from wellworn.core.errors import InvalidInput, ReplyUnreadable
from wellworn.core.fence import escape
from wellworn.core.values import Layer, SearchStep
from wellworn.ingest.terms import words
from wellworn.ingest.validate import checked_query
from wellworn.models.ledger import Meter as MeteredModel
from wellworn.models.port import Request
from wellworn.models.structured import read_json
from wellworn.search.steps.actions import (
    Action,
    Aggregate,
    DrillDown,
    FilterByRecency,
    FilterByRelevance,
    Plan,
    Planner,
    RecursiveCall,
    SearchLayer,
    Strategy,
)
from wellworn.search.steps.limits import Answer, Calls, LimitMet, messages_of, request
from wellworn.search.steps.router import READ_CHARS, Limits, Shape, shape_of

MAX_OUTPUT_TOKENS = 800
_NO_LETTER = re.compile(r"[^a-z]")
_LISTS, _NAMES = ("actions", "plan", "steps"), ("action", "type", "name", "op")
_MOST_SOURCES, _MOST_DAYS = 10, 36_500.0


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
    return request("plan", messages_of("plan", told), MAX_OUTPUT_TOKENS, json=True)


def plan_in(text: str, layers: Sequence[Layer], *, most: int) -> Plan:
    """The plan in a model's answer: at most so many actions, with an `Aggregate` at its end.

    `ReplyUnreadable` if it holds no action.
    """
    value = read_json(text, wants=["actions"])
    found = value if isinstance(value, list) else next((value[key] for key in _LISTS if key in value), [value])
    items = found if isinstance(found, list) else [found]
    actions = [action for item in items if (action := _action(item, layers)) is not None]
    doing = [action for action in actions if not isinstance(action, Aggregate)]
    if not actions or (not doing and len(actions) < len(items)):  # what is left of it does nothing
        raise ReplyUnreadable(f"the model's answer of {len(text)} characters holds no action of a plan")
    last = next((action for action in reversed(actions) if isinstance(action, Aggregate)), Aggregate())
    return (*dict.fromkeys(doing[: max(most - 1, 0)]), last)


def _action(item: Any, layers: Sequence[Layer]) -> Action | None:  # Any: as a model wrote it
    if not isinstance(item, dict) or not item:
        return None
    name = next((item[key] for key in _NAMES if isinstance(item.get(key), str)), None)
    given: Any = item
    if name is None and len(item) == 1:  # {"search_layer": {"query": …}}
        ((name, given),) = item.items()
    if not isinstance(given, dict):
        return None
    try:
        return _read_as(_NO_LETTER.sub("", str(name).lower()), given, layers)
    except InvalidInput:
        return None


def _read_as(name: str, given: Mapping[str, Any], layers: Sequence[Layer]) -> Action | None:
    def layer(*keys: str) -> Layer | None:  # one that the scope names; any other would find nothing
        return next((one for one in layers if one in [given.get(key) for key in keys]), None)

    match name:
        case "searchlayer" | "search":
            return SearchLayer(query=_question(given), layer=layer("layer"))
        case "recursivecall":
            return RecursiveCall(sub_query=_question(given))
        case "drilldown":
            words_ = given.get("filter")
            return DrillDown(
                source=layer("source", "from"),
                target=layer("target", "to"),
                filter=words_ if isinstance(words_, str) else "",
                turns=given.get("turns") is True,
            )
        case "filterbyrelevance":
            top = int(_number(given.get("top"), 3, least=1, most=_MOST_SOURCES))
            return FilterByRelevance(top=top, min_share=_number(given.get("min_share"), 0.0, least=0.0, most=1.0))
        case "filterbyrecency":
            days = _number(given.get("max_age_days", given.get("days")), 0.0, least=0.0, most=_MOST_DAYS)
            return FilterByRecency(max_age_days=days) if days > 0 else None
        case "aggregate":
            wanted = str(given.get("strategy", "")).lower().replace("summarise", "summarize")
            return Aggregate(strategy=next((one for one in get_args(Strategy) if one == wanted), "combine"))
    return None


def _question(given: Mapping[str, Any]) -> str:
    """A query with a word in it: small models copy the dots of the prompt's example."""
    keys = ("query", "sub_query", "question", "subquery", "text")
    text = next((value for key in keys if isinstance(value := given.get(key), str)), "")
    if not words(text):
        raise InvalidInput("query", f"{text!r:.40} has no word", "a query names what is looked for")
    return checked_query(text)


def _number(value: object, otherwise: float, *, least: float, most: float) -> float:
    try:
        number = otherwise if isinstance(value, bool) or value is None else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return otherwise
    return min(max(number, least), most) if number == number else otherwise
