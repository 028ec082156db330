"""SQLite keeps the store contract."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from wellworn.store.port import Store
from wellworn.store.sqlite import SqliteStore
from wellworn.testing.contracts import StoreContract


class TestSqliteStore(StoreContract):
    durable = True

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self._paths = (tmp_path / f"memory{i}.db" for i in count())

    def make_store(self) -> Store:
        return SqliteStore(next(self._paths), durability="normal")

    def reopen(self, store: Store) -> Store:
        store.close()
        return SqliteStore(store.location, durability="normal")
