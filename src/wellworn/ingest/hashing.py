"""Stable 64-bit and 256-bit hashes: the same on every machine, in every process and every release."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from wellworn.core.values import Entry


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
    plain = " ".join((text if text.isascii() else unicodedata.normalize("NFC", text)).split())
    return hashlib.blake2b(f"{salt}\x1f{plain}".encode(), digest_size=16).hexdigest()


def content_hash(entry: Entry) -> str:
    """The hash an entry must carry."""
    return hash_of(entry.text, kind=entry.kind, session_id=entry.session_id, turn_refs=entry.turn_refs)


def hash_of(text: str, *, kind: str, session_id: str | None, turn_refs: Sequence[int]) -> str:
    """The content hash before there is an entry. The same words in another turn are another episode."""
    is_turn = kind == "episode" and session_id is not None and turn_refs
    return text_hash(text, salt=f"{session_id}\x1f{turn_refs[0]}" if is_turn else "")
