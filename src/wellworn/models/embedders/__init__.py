"""Text to vectors: one small port (`base`), one file per provider, a cache around any of them."""
