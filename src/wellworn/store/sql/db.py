"""A connection as the shared statements use it: what differs between the engines, and nothing else.

Statements are written as SQLite reads them, with `?` for values. They name an index or say `CROSS JOIN` where SQLite would
choose a slower way; Postgres gets them without these hints. A plus before a column keeps both from using its index.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from wellworn.core.values import Partition
from wellworn.store.port import NewEntry, Vector

Row = tuple[Any, ...]
NAMED = "s.tenant = ? AND s.layer = ? AND s.layer_id = ?"
"""The condition that `partitions s` has the name `name_of` gives."""
VISIBLE = "s.layer <> ''"
"""The condition that `partitions s` is not being removed: such a one has no layer, and so its name is free again."""
HIDDEN = "(SELECT no FROM partitions WHERE layer = '')"
"""A query for the numbers of partitions that are being removed."""
NUMBER = f"(SELECT s.no FROM partitions s WHERE {VISIBLE} AND {NAMED})"
"""A query for the number of the partition of a name."""
_THIS_LIFE = os.urandom(8).hex()
"""Tells this process from an earlier one of the same number."""


class Db(Protocol):
    """A connection to one engine."""

    @property
    def size(self) -> str:
        """A query for the bytes that the store takes."""

    def ask(self, query: str, values: Sequence[Any] = ()) -> list[Row]:
        """Every row of a query."""

    def run(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Returns how many rows it changed."""

    def many(self, statement: str, rows: Sequence[Sequence[Any]]) -> int:
        """Run it for each of these; returns how many rows were changed in all."""

    def ask_each(self, query: str, rows: Sequence[Sequence[Any]]) -> list[list[Row]]:
        """Every row of a query for each of these, in their order."""

    def among(self, wanted: Sequence[Any], values: list[Any]) -> str:
        """The condition that a column is one of these; what it needs is appended to `values`."""

    def each(self, wanted: Sequence[Any], values: list[Any]) -> str:
        """These as rows of one column, `value`; what it needs is appended to `values`."""

    def begins(self, column: str, prefix: str, values: list[Any]) -> str:
        """The condition that a column begins like this."""

    def seal(self, text: str | None) -> str | None:
        """A text as it is kept."""

    def opened(self, rows: list[Row], places: Sequence[int]) -> list[Row]:
        """The rows with the texts at these places as they were given."""

    def vector(self, vector: Vector | None) -> Any:
        """A vector as it is kept."""

    def numbers(self, nos: Sequence[int]) -> Any:
        """Row numbers as a record keeps them; None for none."""

    def expect(self, count: int) -> None:
        """So many entries will probably be added in this transaction."""

    def add_entry(self, partition_no: int, seq: int, new: NewEntry) -> int:
        """The entry with its index record and tags; returns its row number."""

    def add_lines(self, rows: Sequence[Row]) -> list[int]:
        """Records of `RECORD_COLUMNS` that are lines of logs; their numbers."""

    def add_links(self, rows: Sequence[Row]) -> int:
        """Links that leave what is there as it is; how many are new."""

    def partitions_of(self, nos: Sequence[int], likely: int) -> Mapping[int, int]:
        """Those of the row numbers that are there, each with its partition, which is most often the likely one."""

    def blank(self, tenant: str, gone: Sequence[int], but: int) -> None:
        """Empty the bodies of the tenant's records that tell of one of these rows, save those of the partition `but`."""


def limited(limit: int | None, values: list[Any]) -> str:
    """The end of a query. Without a limit none is named: for one that it does not know, Postgres reads along the order."""
    if limit is None:
        return ""
    values.append(limit)
    return "LIMIT ?"


def name_of(partition: Partition) -> tuple[str, str, str]:
    return partition.tenant, partition.layer, partition.layer_id


def names_of(partitions: Sequence[Partition]) -> list[str]:
    return [name for one in partitions for name in name_of(one)]


def remover() -> str:
    """Who removes a hidden partition: the process, as the name of the partition tells."""
    return f"{os.getpid()} {_THIS_LIFE}"


def maker() -> str:
    """Who makes an unfinished file: the process, as the name of the file tells."""
    return remover().replace(" ", "-")
