"""Embedders and language models: two small ports, one file per provider, a vector cache, and a ledger under a budget."""

from wellworn.core.lazy import lazy

__all__, __getattr__, __dir__ = lazy(__name__)
