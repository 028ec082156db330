"""Pieces of SQL that reading and writing share."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from wellworn.core.clock import to_micros
from wellworn.core.values import Entry, Partition
from wellworn.store.port import Selection
from wellworn.store.sqlite.rows import SELECT_ENTRY, entry_from

MAX_VALUES = 500
"""Values in one IN list: far below every SQLite build's limit."""

T = TypeVar("T")


def in_parts(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """The values in lists short enough for one query."""
    for start in range(0, len(values), MAX_VALUES):
        yield values[start : start + MAX_VALUES]


def partition_no_of(db: sqlite3.Connection, partition: Partition) -> int | None:
    row = db.execute(
        "SELECT no FROM partitions WHERE tenant = ? AND layer = ? AND layer_id = ?",
        (partition.tenant, partition.layer, partition.layer_id),
    ).fetchone()
    return None if row is None else int(row[0])


def partition_nos(db: sqlite3.Connection, partitions: Sequence[Partition]) -> list[int]:
    """Numbers of those of the partitions that exist."""
    return [number for partition in partitions if (number := partition_no_of(db, partition)) is not None]


def alive(db: sqlite3.Connection, nos: Sequence[int]) -> set[int]:
    """Those of the row numbers that are there."""
    found: set[int] = set()
    for part in in_parts(nos):
        rows = db.execute(f"SELECT no FROM entries WHERE no IN ({marks(part)})", tuple(part)).fetchall()
        found.update([no for (no,) in rows])
    return found


def partitions_of(db: sqlite3.Connection, nos: Sequence[int], *, likely: int) -> dict[int, int]:
    """Those of the row numbers that are there, each with the number of its partition. No number may come twice."""
    found: dict[int, int] = {}
    for part in in_parts(nos):
        # Most often all are on one partition: one row says so, and its index is a few pages where the entries are many.
        # Joined, not IN, for which SQLite would sort the numbers into a table first: a third of the time.
        (count,) = db.execute(
            f"WITH asked (no) AS (VALUES {', '.join(['(?)'] * len(part))}) SELECT count(*) FROM asked "
            "CROSS JOIN entries e INDEXED BY entries_by_partition ON e.partition = ? AND e.no = asked.no",
            (*part, likely),
        ).fetchone()
        if count == len(part):
            found.update(dict.fromkeys(part, likely))
        else:
            found.update(db.execute(f"SELECT no, partition FROM entries WHERE no IN ({marks(part)})", tuple(part)))
    return found


def entries_by_id(db: sqlite3.Connection, partitions: Sequence[Partition], ids: Sequence[str]) -> dict[str, Entry]:
    """Entries by public id, only from these partitions."""
    return numbered_by_id(db, partitions, ids)[0]


def numbered_by_id(
    db: sqlite3.Connection, partitions: Sequence[Partition], ids: Sequence[str]
) -> tuple[dict[str, Entry], dict[tuple[str, int], int]]:
    """The same, and their row numbers by id and number of the partition."""
    numbers = partition_nos(db, partitions)
    found: dict[str, Entry] = {}
    nos: dict[tuple[str, int], int] = {}
    for part in in_parts([str(entry_id) for entry_id in ids]):
        rows = db.execute(
            f"SELECT {SELECT_ENTRY}, e.no, e.partition FROM entries e JOIN partitions s ON s.no = e.partition "
            f"WHERE e.id IN ({marks(part)}) AND e.partition IN ({marks(numbers)})",
            (*part, *numbers),
        )
        for row in rows:
            found[row[0]] = entry_from(row[:-2])
            nos[row[0], row[-1]] = row[-2]
    return found, nos


def marks(values: Sequence[Any]) -> str:
    """Question marks for an IN list."""
    return ", ".join("?" * len(values))


def matching(selection: Selection) -> tuple[str, list[Any]]:
    """Conditions on `entries e`, each beginning with AND, and their values."""
    where = ""
    values: list[Any] = []
    for column, wanted in (("id", selection.ids), ("kind", selection.kinds), ("state", selection.states)):
        if wanted is not None:
            # One JSON value instead of many marks: a list of any length is one parameter.
            where += f" AND e.{column} IN (SELECT value FROM json_each(?))"
            values.append(_json_list(wanted))
    if selection.id_prefix is not None:  # a range, which the index of ids serves; it ends at a byte that no text has
        where += " AND e.id >= ? AND e.id < CAST(? AS TEXT)"
        values += [selection.id_prefix, selection.id_prefix.encode() + b"\xff"]
    if selection.session_id is not None:
        where += " AND e.session_id = ?"
        values.append(selection.session_id)
    if selection.ended_by is not None:
        where += " AND e.valid_to <= ?"
        values.append(to_micros(selection.ended_by))
    for tag in selection.tags or ():
        where += (
            " AND EXISTS (SELECT 1 FROM entry_tags t WHERE t.partition = e.partition AND t.tag = ? AND t.entry = e.no)"
        )
        values.append(tag)
    return where, values


def naming(tenant: str | None, layer: str | None, prefix: str) -> tuple[str, list[str | bytes]]:
    """The condition on `partitions` for these names, and its values."""
    conditions: list[str] = []
    values: list[str | bytes] = []
    for column, wanted in (("tenant", tenant), ("layer", layer)):
        if wanted is not None:
            conditions.append(f"{column} = ?")
            values.append(wanted)
    if prefix:  # a range, which the index of names serves; it ends at a byte that no text has
        conditions.append("layer_id >= ? AND layer_id < CAST(? AS TEXT)")
        values += [prefix, prefix.encode() + b"\xff"]
    return f"WHERE {' AND '.join(conditions)}" if conditions else "", values


def _json_list(values: Sequence[str]) -> str:
    return json.dumps(list(values), ensure_ascii=False)
