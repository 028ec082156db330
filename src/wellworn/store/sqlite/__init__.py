"""The default engine: one SQLite file. `docs/storage.md` describes the tables well enough to read them without us."""

from wellworn.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
