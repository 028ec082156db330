"""SQLite keeps the store contract, in a file and in a temporary one."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from contract.builders import make_new_entry
from contract.stores import StoreContract
from wellworn.core.errors import StoreCorrupt, StoreError
from wellworn.store.port import Store
from wellworn.store.sqlite import SqliteStore


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


def test_a_temporary_store_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    store = SqliteStore(":memory:")
    with store.transact() as tx:
        tx.add(make_new_entry("a"))
    assert len([*tmp_path.iterdir()]) == 1
    store.close()
    del store
    forgotten = SqliteStore(":memory:")
    del forgotten  # nobody closed it
    assert [*tmp_path.iterdir()] == []


def test_a_value_that_the_driver_does_not_take_is_no_damage(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "memory.db")
    with pytest.raises(StoreError) as error:
        store.get(None, [["x"]])  # type: ignore[list-item]
    assert not isinstance(error.value, StoreCorrupt)
    store.close()
