"""A tour without a key, a server or a download: remember, recall with reasons, forget, prove it."""

from wellworn.cli.demo.story import tell

__all__ = ["tell"]
