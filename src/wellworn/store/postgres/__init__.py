"""The store in a Postgres database with pgvector."""

from wellworn.store.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
