"""What every part of a write transaction needs: numbers of partitions and rows, change counts, the model.

Each is looked up once in a transaction.
"""

from __future__ import annotations

import sqlite3

from wellworn.core.errors import StoreError
from wellworn.core.values import Partition
from wellworn.store.port import Model, Neighbour, Vector
from wellworn.store.sqlite.queries import partition_no_of


class NumbersTx:
    """Names to numbers. The partition's count is raised once, at its first change."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        self._numbers: dict[Partition, int] = {}
        self._seqs: dict[int, int] = {}
        self._nos: dict[str, int] = {}
        self._own: dict[tuple[str, int], int] = {}
        """Row numbers of entries that were read, by id and partition."""
        self._partition_of: dict[int, int] = {}
        self._recalls: dict[str, int] = {}
        self._latest: dict[Partition, Neighbour] = {}
        self._model: tuple[int, Model] | None = None
        self._model_known = False

    def _partition_no(self, partition: Partition) -> int:
        """The partition's number; made when new."""
        number = self._numbers.get(partition)
        if number is None:
            number = partition_no_of(self._db, partition)
            if number is None:
                number = self._db.execute(
                    "INSERT INTO partitions (tenant, layer, layer_id) VALUES (?, ?, ?)",
                    (partition.tenant, partition.layer, partition.layer_id),
                ).lastrowid
                assert number is not None  # noqa: S101  an INSERT always has one
            self._numbers[partition] = number
        return number

    def _known_partition(self, partition: Partition) -> int:
        """The partition's number, or one that no partition has: looking makes no partition."""
        number = self._numbers.get(partition) or partition_no_of(self._db, partition)
        if number is None:
            return -1
        self._numbers[partition] = number
        return number

    def _seq(self, partition_no: int) -> int:
        """The count that this transaction's changes on the partition carry."""
        seq = self._seqs.get(partition_no)
        if seq is None:
            (seq,) = self._db.execute(
                "UPDATE partitions SET seq = seq + 1 WHERE no = ? RETURNING seq", (partition_no,)
            ).fetchone()
            self._seqs[partition_no] = seq
        return seq

    def _row_no(self, entry_id: str, partition_no: int) -> int:
        if (known := self._own.get((entry_id, partition_no))) is not None:
            return known
        row = self._db.execute(
            "SELECT no FROM entries WHERE id = ? AND partition = ?", (entry_id, partition_no)
        ).fetchone()
        if row is None:
            raise StoreError(f"no entry {entry_id!r} on this partition to change")
        self._nos[entry_id] = no = int(row[0])
        return no

    def _no_of(self, entry_id: str) -> int:
        """The row number of an entry; those met in this transaction are known."""
        no = self._nos.get(entry_id)
        if no is None:
            row = self._db.execute("SELECT no FROM entries WHERE id = ?", (entry_id,)).fetchone()
            if row is None:
                raise StoreError(f"no entry {entry_id!r} to link")
            no = self._nos[entry_id] = int(row[0])
        return no

    def _current(self) -> tuple[int, Model] | None:
        if not self._model_known:
            row = self._db.execute("SELECT no, name, width FROM models WHERE current = 1").fetchone()
            self._model = None if row is None else (row[0], Model(name=row[1], width=row[2]))
            self._model_known = True
        return self._model

    def model(self) -> Model | None:
        current = self._current()
        return None if current is None else current[1]

    def _check_width(self, vector: Vector | None) -> None:
        if vector is None:
            return
        current = self._current()
        if current is None:
            raise StoreError("the store has no embedding model, but a vector was given")
        if vector.shape != (current[1].width,):
            raise StoreError(f"a vector of shape {vector.shape} does not fit {current[1].name} ({current[1].width})")
