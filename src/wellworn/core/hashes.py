"""Numbers that stand for words, names and threads."""

from __future__ import annotations

import hashlib

from wellworn.core.cache import text_cache


@text_cache(200_000)
def hash64(text: str) -> int:
    """An unsigned 64-bit hash of a term or name; never 0, which stands for "none"."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") or 1


def signed64(value: int) -> int:
    """The same 64 bits as a signed number, as databases keep them."""
    return value - (1 << 64) if value >= 1 << 63 else value


def thread_of(*parts: str) -> int:
    """The thread that a session or a chunked text forms, as a signed 64-bit number."""
    return signed64(hash64("\x1f".join(parts)))
