"""Where memories are kept: one small port, one folder per engine; and which engine a location means."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from wellworn.core.errors import InvalidInput
from wellworn.store.port import Store

if TYPE_CHECKING:
    from wellworn.store.sqlite.driver import Key

POSTGRES = ("postgresql", "postgres")
"""The schemes of URLs that libpq understands."""


def choose_store(location: str | Path | Store, *, durability: str, key: Key | None = None) -> Store:
    """The SQLite store at this path, or the Postgres store of this URL; `:memory:` is one that lives as long as this
    process and is then gone."""
    if isinstance(location, Store):
        return location
    if not isinstance(location, str | Path) or not str(location).strip() or "\x00" in str(location):
        raise InvalidInput("location", f"{location!r} is not a path", "use a file name, ':memory:' or postgresql://…")
    key = key if key is not None else key_in_environment()
    if "://" in str(location):
        scheme = str(location).split("://", 1)[0]
        if scheme in POSTGRES:
            from wellworn.store.postgres import PostgresStore

            return PostgresStore(str(location), durability=durability, key=key)
        remedy = "use wellworn.Client" if scheme in ("http", "https") else "use a file name or postgresql://…"
        raise InvalidInput("location", f"{scheme}:// is not a store this version knows", remedy)
    from wellworn.store.sqlite import SqliteStore

    path = location if str(location) == ":memory:" else Path(location).expanduser()
    return SqliteStore(path, durability=durability, key=key)


def key_in_environment() -> Key | None:
    """The key in WELLWORN_KEY, or in the file that WELLWORN_KEY_FILE names; None when neither is set."""
    file = os.environ.get("WELLWORN_KEY_FILE")
    return os.environ.get("WELLWORN_KEY") or (Path(file) if file else None)
