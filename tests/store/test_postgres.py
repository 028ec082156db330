"""Postgres keeps the store contract."""

from __future__ import annotations

import pytest

from contract.postgres import Server
from contract.stores import StoreContract
from wellworn.store.port import Store


class TestPostgresStore(StoreContract):
    durable = True
    key: str | None = None
    scrubs = False

    @pytest.fixture(autouse=True)
    def _server(self, postgres_server: Server) -> None:
        self._at = postgres_server
        self._urls: dict[int, str] = {}

    def make_store(self) -> Store:
        return self._open(self._at.url())

    def reopen(self, store: Store) -> Store:
        store.close()
        return self._open(self._urls[id(store)])

    def _open(self, url: str) -> Store:
        from wellworn.store.postgres import PostgresStore

        store = PostgresStore(url, durability="normal", key=self.key)
        self._urls[id(store)] = url
        return store


@pytest.mark.slow
class TestEncryptedPostgresStore(TestPostgresStore):
    key = "5e" * 32
