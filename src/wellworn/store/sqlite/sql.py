"""Lists of values in SQLite's SQL, and reading text that may be damaged."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

MOST_MARKS = 100
"""Values that are given one by one; more are given as one JSON list."""
_dumps = json.JSONEncoder(ensure_ascii=False).encode


def in_list(wanted: Sequence[Any], values: list[Any]) -> str:
    """The condition that a column is one of these; what it needs is appended to `values`."""
    if len(wanted) == 1:
        values.append(wanted[0])
        return "= ?"
    if len(wanted) <= MOST_MARKS:
        values.extend(wanted)
        return f"IN ({', '.join('?' * len(wanted))})"
    values.append(_dumps(list(wanted)))
    return "IN (SELECT value FROM json_each(?))"


def fetched(db: sqlite3.Connection, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """Every row of a query. Text that is not UTF-8 comes as bytes, so that it costs its own row only."""
    try:
        return db.execute(query, values).fetchall()
    except Exception as error:  # of either driver
        if "decode" not in str(error):
            raise
    db.text_factory = _text
    try:
        return db.execute(query, values).fetchall()
    finally:
        db.text_factory = str


def _text(value: bytes) -> str | bytes:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value
