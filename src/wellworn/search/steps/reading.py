"""A plan out of what a model wrote: whatever can be read as an action is one, the rest is left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wellworn.core.errors import InvalidInput, ReplyUnreadable
from wellworn.core.values import Layer
from wellworn.ingest.terms import words
from wellworn.ingest.validate import checked_query
from wellworn.models.structured import read_json
from wellworn.search.steps.actions import (
    Action,
    Aggregate,
    DrillDown,
    FilterByRecency,
    FilterByRelevance,
    Plan,
    RecursiveCall,
    SearchLayer,
    Strategy,
)

_NO_LETTER = re.compile(r"[^a-z]")
_LISTS, _NAMES = ("actions", "plan", "steps"), ("action", "type", "name", "op")
_STRATEGIES: tuple[Strategy, ...] = ("combine", "compare", "summarize", "infer")
_MOST_SOURCES = 10
"""Hits that one filter may let through: each is read."""
_MOST_DAYS = 36_500.0

Given = Mapping[str, Any]  # as a model wrote it
Layers = Sequence[Layer]


def plan_of(text: str, layers: Layers, *, most: int) -> Plan:
    """The plan in a model's answer, of at most so many actions and with an `Aggregate` at its end.

    `ReplyUnreadable` when there is no action in it.
    """
    value = read_json(text, wants=["actions"])
    found = value if isinstance(value, list) else next((value[key] for key in _LISTS if key in value), [value])
    items = found if isinstance(found, list) else [found]
    actions = [action for item in items if (action := _action(item, layers)) is not None]
    asks = any(not isinstance(action, Aggregate) for action in actions)
    if not actions or (not asks and len(actions) < len(items)):  # what is left of it does nothing
        raise ReplyUnreadable(f"the model's answer of {len(text)} characters holds no action of a plan")
    last = next((action for action in reversed(actions) if isinstance(action, Aggregate)), Aggregate())
    doing = [action for action in actions if not isinstance(action, Aggregate)]
    return (*dict.fromkeys(doing[: max(most - 1, 0)]), last)


def _action(item: Any, layers: Layers) -> Action | None:  # Any: as a model wrote it
    if not isinstance(item, dict) or not item:
        return None
    name = next((item[key] for key in _NAMES if isinstance(item.get(key), str)), None)
    given: Any = item
    if name is None and len(item) == 1:  # {"search_layer": {"query": …}}
        ((name, given),) = item.items()
    read = _READ.get(_NO_LETTER.sub("", str(name).lower()))
    if read is None or not isinstance(given, dict):
        return None
    try:
        return read(given, layers)
    except InvalidInput:
        return None


def _search(given: Given, layers: Layers) -> Action:
    query = _question(_text(given, "query", "sub_query", "text"))
    return SearchLayer(query=query, layer=_layer(given.get("layer"), layers))


def _call(given: Given, layers: Layers) -> Action:  # noqa: ARG001 - one shape for all
    return RecursiveCall(sub_query=_question(_text(given, "sub_query", "query", "question", "subquery")))


def _drill(given: Given, layers: Layers) -> Action:
    source = _layer(given.get("source", given.get("from")), layers)
    target = _layer(given.get("target", given.get("to")), layers)
    return DrillDown(source=source, target=target, filter=_text(given, "filter"), turns=given.get("turns") is True)


def _relevant(given: Given, layers: Layers) -> Action:  # noqa: ARG001
    top = int(_number(given.get("top"), 3, least=1, most=_MOST_SOURCES))
    return FilterByRelevance(top=top, min_share=_number(given.get("min_share"), 0.0, least=0.0, most=1.0))


def _recent(given: Given, layers: Layers) -> Action | None:  # noqa: ARG001
    days = _number(given.get("max_age_days", given.get("days")), 0.0, least=0.0, most=_MOST_DAYS)
    return FilterByRecency(max_age_days=days) if days > 0 else None


def _aggregate(given: Given, layers: Layers) -> Action:  # noqa: ARG001
    wanted = str(given.get("strategy", "")).lower().replace("summarise", "summarize")
    return Aggregate(strategy=next((one for one in _STRATEGIES if one == wanted), "combine"))


_READ: dict[str, Callable[[Given, Layers], Action | None]] = {
    "searchlayer": _search,
    "search": _search,
    "recursivecall": _call,
    "drilldown": _drill,
    "filterbyrelevance": _relevant,
    "filterbyrecency": _recent,
    "aggregate": _aggregate,
}


def _text(given: Given, *keys: str) -> str:
    return next((value for key in keys if isinstance(value := given.get(key), str)), "")


def _question(text: str) -> str:
    """A query with a word in it: small models copy the dots of the prompt's example."""
    if not words(text):
        raise InvalidInput("query", f"{text!r:.40} has no word", "a query names what is looked for")
    return checked_query(text)


def _layer(value: object, layers: Layers) -> Layer | None:
    """A layer that the scope names; any other would find nothing."""
    return next((layer for layer in layers if layer == value), None)


def _number(value: object, otherwise: float, *, least: float, most: float) -> float:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return otherwise
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return otherwise
    return min(max(float(value), least), most)
