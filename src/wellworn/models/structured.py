"""JSON out of what a model wrote.

Models wrap it in prose, fences and thoughts, break its rules, or stop in the middle. Whatever they write, the result is
a value or `ReplyUnreadable`, in linear time. Knows nothing about what the values mean: the caller checks them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from wellworn.core.errors import ReplyUnreadable
from wellworn.core.wellformed import well_formed
from wellworn.models.lenient import JsonReader, NotOneError

MAX_CHARS = 1_000_000
"""What comes after is not read."""

Found = dict[str, Any] | list[Any]
_FENCED = re.compile(r"^[ \t]*```[^\n`]*\n(?P<inside>.*?)(?:^[ \t]*```|\Z)", re.MULTILINE | re.DOTALL)
# Brackets that prose does not have: with something behind them that may begin a value.
_OPENER = re.compile(r"""\{(?=\s*["'“‘}\w/#.,]) | \[(?=\s*["'“‘{\[(\])\dtfnTFNI.,/#-])""", re.VERBOSE)
_THOUGHTS_END = "</think>"
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_REREAD_CHARS = 100_000  # how much text may be looked at again after a false start
_QUOTED_CHARS = 80


def read_json(text: str, *, wants: Sequence[str] = ()) -> Found:
    """The object or list that answers: the first object with all the keys it `wants`, else with one of them, else the
    first that is not empty, else the first. `ReplyUnreadable` when there is none."""
    found = find_json(text)
    objects = [value for value in found if isinstance(value, dict)]
    orders: list[Iterable[Found]] = [
        (value for value in objects if wants and all(key in value for key in wants)),
        (value for value in objects if any(key in value for key in wants)),
        (value for value in objects if value),
        (value for value in found if value),
        found,
    ]
    for order in orders:
        for value in order:
            return value
    beginning = " ".join(text[: _QUOTED_CHARS * 4].split())[:_QUOTED_CHARS]
    start = f"it begins {beginning!r}" if beginning else "it is empty"
    raise ReplyUnreadable(f"the model's answer of {len(text)} characters holds no JSON: {start}")


def find_json(text: str) -> list[Found]:
    """Every object and list in a text, those inside fences first, otherwise in order; broken ones are mended."""
    text = text[:MAX_CHARS]
    whole = _strict(text)
    if isinstance(whole, str):  # JSON said as a JSON string
        text, whole = whole, _strict(whole)
    if isinstance(whole, dict | list):
        return [whole]
    after_thoughts = text.rpartition(_THOUGHTS_END)[2]
    return _in_parts(after_thoughts) or _in_parts(text)


def _in_parts(text: str) -> list[Found]:
    fenced = [block["inside"] for block in _FENCED.finditer(text)]
    outside = _FENCED.sub("\n", text) if fenced else text
    return [found for part in (*fenced, outside) for found in _in_text(part)]


def _in_text(text: str) -> Iterator[Found]:
    whole = _strict(text)
    if isinstance(whole, dict | list):
        yield whole
        return
    reader, may_reread = JsonReader(text), _REREAD_CHARS
    at = 0
    while (opener := _OPENER.search(text, at)) is not None:
        start = reader.pos = opener.start()
        reader.cut = False
        try:
            value = reader.read()
        except NotOneError:
            at = reader.pos
            continue
        at = reader.pos
        if reader.cut and not value:  # a bracket in prose swallowed the rest: look behind it instead
            may_reread -= at - start
            if may_reread < 0:
                return
            at = start + 1
            continue
        yield value


def _strict(text: str) -> Any:
    """What `json` makes of the whole text, with null for numbers that are none; None when it is not valid."""
    try:
        value = json.loads(text, parse_constant=lambda _: None, parse_float=_finite)
        return _well_formed(value) if _SURROGATE.search(text) else value
    except (ValueError, RecursionError):
        return None


def _finite(digits: str) -> float | None:
    value = float(digits)
    return value if math.isfinite(value) else None


def _well_formed(value: Any) -> Any:
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, list):
        return [_well_formed(item) for item in value]
    if isinstance(value, dict):
        return {well_formed(key): _well_formed(item) for key, item in value.items()}
    return value
