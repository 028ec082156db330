"""Which engine a location means."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from wellworn.core.errors import InvalidInput
from wellworn.store.port import Store

if TYPE_CHECKING:
    from wellworn.store.sqlite.driver import Key

DURABILITIES = ("full", "normal")


def choose_store(location: str | Path | Store, *, durability: str, key: Key | None = None) -> Store:
    """The SQLite store at this path; `:memory:` is one that lives as long as this process and is then gone."""
    if isinstance(location, Store):
        return location
    if not isinstance(location, str | Path) or not str(location).strip() or "\x00" in str(location):
        raise InvalidInput("location", f"{location!r} is not a path", "use a file name or ':memory:'")
    if durability not in DURABILITIES:
        raise InvalidInput("durability", f"{durability!r} is unknown", f"use one of {', '.join(DURABILITIES)}")
    if "://" in str(location):
        scheme = str(location).split("://", 1)[0]
        remedy = "use wellworn.Client" if scheme in ("http", "https") else "use a file name or ':memory:'"
        raise InvalidInput("location", f"{scheme}:// is not a store this version knows", remedy)
    from wellworn.store.sqlite import SqliteStore

    path = location if str(location) == ":memory:" else Path(location).expanduser()
    return SqliteStore(path, durability=durability, key=key if key is not None else key_in_environment())


def key_in_environment() -> Key | None:
    """The key in WELLWORN_KEY, or in the file that WELLWORN_KEY_FILE names; None when neither is set."""
    file = os.environ.get("WELLWORN_KEY_FILE")
    return os.environ.get("WELLWORN_KEY") or (Path(file) if file else None)
