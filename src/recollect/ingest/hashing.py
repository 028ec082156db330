"""Stable 64-bit and 256-bit hashes: the same on every machine, in every process and every release."""

from __future__ import annotations

import hashlib
import unicodedata
from functools import lru_cache

from recollect.types import Entry


@lru_cache(maxsize=200_000)
def hash64(text: str) -> int:
    """An unsigned 64-bit hash of a term or name; never 0, which stands for "none"."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") or 1


def signed64(value: int) -> int:
    """The same 64 bits as a signed number, as databases keep them."""
    return value - (1 << 64) if value >= 1 << 63 else value


def thread_of(*parts: str) -> int:
    """The thread that a session or a chunked text forms, as a signed 64-bit number."""
    return signed64(hash64("\x1f".join(parts)))


def text_hash(text: str, *, salt: str = "") -> str:
    """What two texts must share to count as the same: everything but spacing and Unicode form."""
    plain = " ".join(unicodedata.normalize("NFC", text).split())
    return hashlib.blake2b(f"{salt}\x1f{plain}".encode(), digest_size=16).hexdigest()


def content_hash(entry: Entry) -> str:
    """The hash an entry must carry. The same words in another turn are another episode."""
    return text_hash(entry.text, salt=episode_salt(entry.kind, entry.session_id, entry.turn_refs))


def episode_salt(kind: str, session_id: str | None, turn_refs: list[int]) -> str:
    if kind != "episode" or session_id is None or not turn_refs:
        return ""
    return f"{session_id}\x1f{turn_refs[0]}"
