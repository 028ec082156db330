"""Filters over JSON values, as LangGraph's stores understand them: plain values, nested ones, and operators.

A mapping whose keys begin with `$` holds operators that must all hold. `$gt`, `$gte`, `$lt` and `$lte` compare numbers
(and texts that read as numbers), else two texts; what cannot be compared, or is missing, does not pass.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from wellworn.core.errors import InvalidInput

# Any, here and below: JSON values of the caller's own.
_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
OPERATORS = ("$eq", "$ne", *_ORDERS)


def check(condition: object) -> None:
    """Refuse an operator that is not known before anything is looked at."""
    if isinstance(condition, Mapping):
        if _is_operators(condition):
            unknown = [name for name in condition if name not in OPERATORS]
            if unknown:
                raise InvalidInput("filter", f"{unknown[0]!r} is not an operator", f"use one of {', '.join(OPERATORS)}")
        for one in condition.values():
            check(one)


def passes(value: Mapping[str, Any], conditions: Mapping[str, Any] | None) -> bool:
    """Whether each field named has the value, or meets the operators, given for it."""
    return all(fits(value.get(field), wanted) for field, wanted in (conditions or {}).items())


def fits(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if _is_operators(wanted):
            return all(_holds(value, name, operand) for name, operand in wanted.items())
        return isinstance(value, Mapping) and all(fits(value.get(field), one) for field, one in wanted.items())
    if isinstance(wanted, list | tuple):
        same_length = isinstance(value, list | tuple) and len(value) == len(wanted)
        return same_length and all(fits(one, other) for one, other in zip(value, wanted, strict=True))
    return bool(value == wanted)


def _is_operators(condition: Mapping[Any, Any]) -> bool:
    return any(isinstance(name, str) and name.startswith("$") for name in condition)


def _holds(value: Any, name: str, operand: Any) -> bool:
    if name in ("$eq", "$ne"):
        return bool(value == operand) is (name == "$eq")
    a, b = _number(value), _number(operand)
    if a is not None and b is not None:
        return _ORDERS[name](a, b)
    return isinstance(value, str) and isinstance(operand, str) and _ORDERS[name](value, operand)


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None
