"""What every part of a write transaction needs: numbers of shelves and rows, change counts, the model.

Each is looked up once in a transaction.
"""

from __future__ import annotations

import sqlite3

from recollect.errors import StoreError
from recollect.stores.base import Model, Neighbour, Vector
from recollect.stores.sqlite.queries import shelf_no_of
from recollect.types import Shelf


class NumbersTx:
    """Names to numbers. The shelf's count is raised once, at its first change."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        self._numbers: dict[Shelf, int] = {}
        self._seqs: dict[int, int] = {}
        self._nos: dict[str, int] = {}
        self._own: dict[tuple[str, int], int] = {}
        """Row numbers of entries that were read, by id and shelf."""
        self._shelf_of: dict[int, int] = {}
        self._recalls: dict[str, int] = {}
        self._latest: dict[Shelf, Neighbour] = {}
        self._model: tuple[int, Model] | None = None
        self._model_known = False

    def _shelf_no(self, shelf: Shelf) -> int:
        """The shelf's number; made when new."""
        number = self._numbers.get(shelf)
        if number is None:
            number = shelf_no_of(self._db, shelf)
            if number is None:
                number = self._db.execute(
                    "INSERT INTO shelves (tenant, layer, layer_id) VALUES (?, ?, ?)",
                    (shelf.tenant, shelf.layer, shelf.layer_id),
                ).lastrowid
                assert number is not None  # noqa: S101  an INSERT always has one
            self._numbers[shelf] = number
        return number

    def _known_shelf(self, shelf: Shelf) -> int:
        """The shelf's number, or one that no shelf has: looking makes no shelf."""
        number = self._numbers.get(shelf) or shelf_no_of(self._db, shelf)
        if number is None:
            return -1
        self._numbers[shelf] = number
        return number

    def _seq(self, shelf_no: int) -> int:
        """The count that this transaction's changes on the shelf carry."""
        seq = self._seqs.get(shelf_no)
        if seq is None:
            (seq,) = self._db.execute(
                "UPDATE shelves SET seq = seq + 1 WHERE no = ? RETURNING seq", (shelf_no,)
            ).fetchone()
            self._seqs[shelf_no] = seq
        return seq

    def _row_no(self, entry_id: str, shelf_no: int) -> int:
        if (known := self._own.get((entry_id, shelf_no))) is not None:
            return known
        row = self._db.execute("SELECT no FROM entries WHERE id = ? AND shelf = ?", (entry_id, shelf_no)).fetchone()
        if row is None:
            raise StoreError(f"no entry {entry_id!r} on this shelf to change")
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
