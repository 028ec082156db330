"""The store in one SQLite file."""

from wellworn.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
