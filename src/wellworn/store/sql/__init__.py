"""A store that speaks SQL: transactions, snapshots, and clearing what was hidden. Opening and care are the engine's."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from wellworn.core.errors import InvalidInput
from wellworn.store.damage import Damage
from wellworn.store.port import Removed, Store, StoreReader, Tx
from wellworn.store.sql.db import Db
from wellworn.store.sql.reader import SqlReader
from wellworn.store.sql.tx import SqlTx

DURABILITIES = ("full", "normal")


class SqlConnections(Protocol):
    """The connections of an open store."""

    def reading(self) -> AbstractContextManager[Db]:
        """A connection that sees committed data."""

    def snapshot(self) -> AbstractContextManager[Db]:
        """Like `reading`, with every query seeing the same moment."""

    def writing(self, tenant: str | None = None) -> AbstractContextManager[Db]:
        """One write transaction, alone in its tenant or in the store; rolled back when the block raises."""

    def translated(self) -> AbstractContextManager[None]:
        """Errors of the driver as those of a store."""


class SqlStore(SqlReader, Store):
    """What the engines' stores share."""

    _connections: SqlConnections
    _secret: bytes | None

    def __init__(self, durability: str) -> None:
        if durability not in DURABILITIES:
            raise InvalidInput("durability", f"{durability!r} is unknown", f"use one of {', '.join(DURABILITIES)}")
        self.damage = Damage()

    def _reading(self, *, snapshot: bool = False) -> AbstractContextManager[Db]:
        return self._connections.snapshot() if snapshot else self._connections.reading()

    def transact(self, *, tenant: str | None = None) -> AbstractContextManager[Tx]:
        return _Transaction(self._connections.writing(tenant), self.damage, tenant)

    @contextmanager
    def snapshot(self) -> Iterator[StoreReader]:
        with self._connections.snapshot() as db:
            yield _Snapshot(db, self.damage, self._connections.translated)

    @abstractmethod
    def copy_to(self, path: Path) -> int:
        """Write one moment of the store to a new SQLite file, encrypted as this one is; returns its number of entries."""

    def like(self, path: Path) -> SqlStore:
        """The store in such a file, with the same key."""
        from wellworn.store.sqlite import SqliteStore

        return SqliteStore(path, durability="normal", key=self._secret)

    def damaged(self) -> dict[str, str]:
        return self.damage.rows()

    def _clear(self, number: int) -> Removed:
        """Remove a hidden partition in short transactions."""
        removed = Removed()
        while True:
            with self._connections.writing() as db:
                part = SqlTx(db, self.damage).clear_slice(number)
            if part is None:
                return removed
            removed += replace(part, ids=[])


class _Snapshot(SqlReader):
    """Reads of one moment, all on one connection."""

    def __init__(self, db: Db, damage: Damage, translated: Callable[[], AbstractContextManager[None]]) -> None:
        self._db = db
        self.damage = damage
        self._translated = translated

    @contextmanager
    def _reading(self, *, snapshot: bool = False) -> Iterator[Db]:
        with self._translated():
            yield self._db


class _Transaction:
    """A write transaction as the port knows it. No generator: one took as long as the statements around it."""

    def __init__(self, writing: AbstractContextManager[Db], damage: Damage, tenant: str | None) -> None:
        self._writing, self._damage, self._tenant = writing, damage, tenant

    def __enter__(self) -> Tx:
        return SqlTx(self._writing.__enter__(), self._damage, self._tenant)

    def __exit__(self, *error: Any) -> bool | None:  # as the context manager gets it
        return self._writing.__exit__(*error)
