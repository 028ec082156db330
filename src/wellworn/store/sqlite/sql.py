"""Lists of values in SQLite's SQL, reading text that may be damaged, and the driver's errors as our own."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from wellworn.core.errors import StoreBusy, StoreCorrupt, StoreError

MOST_MARKS = 100
"""Values that are given one by one; more are given as one JSON list."""
BROKEN = (sqlite3.Error, UnicodeDecodeError)
"""What a damaged file ends in; the second where the message would quote the damage."""
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


@contextmanager
def translated() -> Iterator[None]:
    """Driver errors as `StoreError`s: nothing of `sqlite3` escapes the store."""
    try:
        yield
    except BROKEN as error:
        raise translation(error) from error


def translation(error: Exception) -> StoreError:
    """What an error of the driver means."""
    text = str(error)
    if isinstance(error, sqlite3.OperationalError):
        if "locked" in text or "busy" in text:
            return StoreBusy(f"another writer held the file for too long ({text})")
        return StoreError(f"the store could not be read or written: {text}")
    if isinstance(error, sqlite3.IntegrityError):
        return StoreError(f"refused by the store: {text}")
    if isinstance(error, sqlite3.DatabaseError):
        return StoreCorrupt(f"the file is damaged or no SQLite file: {text}")
    if isinstance(error, UnicodeDecodeError):
        return StoreCorrupt("the file is damaged: its list of tables is not text")
    return StoreError(f"the store failed: {text}")
