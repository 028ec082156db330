"""The reference store: plain dicts, nothing on disk. Every other engine is compared with it."""

from wellworn.store.inmemory.store import InMemoryStore

__all__ = ["InMemoryStore"]
