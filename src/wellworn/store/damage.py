"""Reading rows of which some may be damaged: what cannot be read is left out, counted and logged, never raised.

An engine that fails altogether, as SQLite does on a damaged page, raises `StoreCorrupt` instead.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import starmap
from typing import Any, TypeVar

from wellworn.core.errors import StoreCorrupt
from wellworn.core.values import KINDS, STATES
from wellworn.store.port import Slim

T = TypeVar("T")
_logger = logging.getLogger(__name__)
_KINDS, _STATES = frozenset(KINDS), frozenset(STATES)
_INT32 = 2**31
TROUBLE = (StoreCorrupt, ValueError, TypeError, KeyError, OverflowError, RecursionError)
"""What making a value from a damaged row ends in."""

Types = tuple[type, ...]
INT, FLOAT, TEXT, BLOB = (int,), (float, int), (str,), (bytes,)
NONE = (type(None),)


class Damage:
    """What of one store could not be read, each row once. Shared by its readers and transactions."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: dict[str, str] = {}

    def note(self, row: str, problem: object) -> None:
        with self._lock:
            if row in self._rows:
                return
            self._rows[row] = str(problem)
        _logger.warning("%s cannot be read and is left out: run `wellworn doctor`", row)

    def clear(self) -> None:
        """Begin again."""
        with self._lock:
            self._rows.clear()

    def rows(self) -> dict[str, str]:
        """What each row is, and why it cannot be read."""
        with self._lock:
            return dict(self._rows)

    def read(self, rows: Iterable[tuple[Any, ...]], make: Callable[[Any], T], name: Callable[[Any], str]) -> list[T]:
        """The values of the rows that can be read."""
        found = list[T]()
        for row in rows:
            try:
                found.append(make(row))
            except TROUBLE as error:
                self.note(name(row), error)
        return found


def checked(row: tuple[Any, ...], columns: tuple[Types, ...]) -> tuple[Any, ...]:
    """The row, whose values must be of the types of its columns; SQLite itself keeps anything anywhere."""
    if not _fit(tuple(map(type, row)), columns):
        raise TypeError("a column holds a value of another type")
    return row


@lru_cache(maxsize=512)
def _fit(types: Types, columns: tuple[Types, ...]) -> bool:
    return len(types) == len(columns) and all(one in allowed for one, allowed in zip(types, columns, strict=True))


_SLIM: tuple[Types, ...] = (
    *(INT, INT, INT, TEXT, TEXT, INT, INT, INT + NONE, FLOAT, INT, INT, INT + NONE, INT + NONE),
    *(INT, INT, INT, INT, BLOB, BLOB, BLOB + NONE, TEXT, TEXT),
)


def whole_page(rows: Sequence[tuple[Any, ...]], vector_bytes: int) -> list[Slim] | None:
    """`slim_from` of many rows at once, in a fourth of the time; None if any of them must be looked at by itself."""
    if not rows or {*map(len, rows)} != {len(_SLIM)}:
        return None
    columns = [*zip(*rows, strict=True)]
    if not all({*map(type, column)}.issubset(types) for column, types in zip(columns, _SLIM, strict=True)):
        return None
    of = dict(zip(Slim.__annotations__, columns, strict=True))
    positions = [position for position in of["position"] if position is not None]
    for numbers in (of["usage_count"], of["repeats"], positions, of["length"], of["chars"]):
        if numbers and (min(numbers) < -_INT32 or max(numbers) >= _INT32):
            return None
    terms, counts = [*map(len, of["terms"])], [*map(len, of["counts"])]
    sound = _KINDS.issuperset(of["kind"]) and _STATES.issuperset(of["state"])
    sound = sound and min(of["traits"]) >= 0 and max(of["traits"]) < 256
    sound = sound and terms == [4 * count for count in counts] and not any(count % 2 for count in counts)
    sound = sound and {*map(len, filter(None, of["vector"]))} <= {vector_bytes}
    sound = sound and all(tags[:1] + tags[-1:] == "[]" for tags in {*of["tags"]})
    return [*starmap(Slim, rows)] if sound else None


def slim_from(row: tuple[Any, ...], vector_bytes: int) -> Slim:
    """A row of the index as it is held in memory. A vector of another width counts as none; words still find it."""
    slim = Slim(*checked(row, _SLIM))
    small = (slim.usage_count, slim.repeats, slim.position or 0, slim.length, slim.chars)
    if slim.kind not in _KINDS or slim.state not in _STATES:
        raise ValueError(f"{slim.kind!r:.40} or {slim.state!r:.40} is no kind or state")
    if min(small) < -_INT32 or max(small) >= _INT32 or not 0 <= slim.traits < 256:
        raise ValueError("a number is out of range")
    if len(slim.terms) != 4 * len(slim.counts) or len(slim.terms) % 8 or slim.tags[:1] + slim.tags[-1:] != "[]":
        raise ValueError("its terms and counts, or its tags, are cut")
    if slim.vector is not None and len(slim.vector) != vector_bytes:
        return Slim(*(*row[:19], None, *row[20:]))
    return slim
