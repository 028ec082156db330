"""A cache around any embedder: the same text is not embedded twice.

Keeps vectors under a hash of their text, never the text. Knows nothing about storage; whoever forgets a text tells it
with `forget` or `clear`.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Sequence

import numpy as np

from recollect.embeddings.base import Embedder, Matrix
from recollect.errors import InvalidInput
from recollect.locks import ForkLock

_ENTRY_OVERHEAD = 256  # bytes of key, array object and dictionary slot, measured on CPython 3.11
_TEXT, _QUERY = b"text", b"query"


class CachedEmbedder:
    """Least recently used vectors of `inner`, within `max_entries` and `max_bytes`; safe between threads.

    Texts and questions are kept apart, as some models embed them differently.
    """

    def __init__(self, inner: Embedder, *, max_entries: int = 10_000, max_bytes: int = 32 * 1024 * 1024) -> None:
        if max_entries < 0 or max_bytes < 0:
            raise InvalidInput("max_entries", f"{max_entries} entries, {max_bytes} bytes", "use 0 to keep nothing")
        self.inner = inner
        self.hits = 0
        """Texts answered without the inner embedder, repeats within one call included."""
        self.misses = 0
        """Texts the inner embedder was asked for."""
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._lock = ForkLock()
        self._kept: OrderedDict[bytes, Matrix] = OrderedDict()  # oldest use first
        self._bytes = 0
        self._forgettings = 0

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def width(self) -> int:
        return self.inner.width

    def __len__(self) -> int:
        return len(self._kept)

    def embed(self, texts: Sequence[str]) -> Matrix:
        """As the inner embedder; what is missing is asked for in one batch, each text once."""
        keys = [_key(_TEXT, text) for text in texts]
        found, forgettings = self._look_up(keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        if missing or not texts:
            rows = self.inner.embed(list(missing.values()))
            self._keep(list(missing), rows, forgettings)
            if len(missing) == len(texts):
                return rows
            found.update(zip(missing, rows, strict=True))
        return np.stack([found[key] for key in keys])

    def embed_query(self, text: str) -> Matrix:
        """As the inner embedder."""
        key = _key(_QUERY, text)
        found, forgettings = self._look_up([key])
        if key in found:
            return found[key].copy()
        row = self.inner.embed_query(text)
        self._keep([key], row[np.newaxis], forgettings)
        return row

    def forget(self, texts: Iterable[str]) -> int:
        """Drop the vectors of these texts, as text and as question; returns how many there were."""
        with self._lock:
            self._forgettings += 1
            return sum(self._drop(_key(role, text)) for text in texts for role in (_TEXT, _QUERY))

    def clear(self) -> int:
        """Drop every vector; returns how many there were. `hits` and `misses` count on."""
        with self._lock:
            self._forgettings += 1
            dropped = len(self._kept)
            self._kept.clear()
            self._bytes = 0
            return dropped

    def _look_up(self, keys: list[bytes]) -> tuple[dict[bytes, Matrix], int]:
        with self._lock:
            found = {}
            for key in keys:
                row = self._kept.get(key)
                if row is not None:
                    self._kept.move_to_end(key)
                    found[key] = row
            missing = len({key for key in keys if key not in found})
            self.hits += len(keys) - missing
            self.misses += missing
            return found, self._forgettings

    def _keep(self, keys: list[bytes], rows: Matrix, forgettings: int) -> None:
        with self._lock:
            if self._forgettings != forgettings:  # one of these may have been forgotten while it was embedded
                return
            for key, row in zip(keys, rows, strict=True):
                self._drop(key)
                self._kept[key] = row.copy()  # a view would keep the whole batch alive
                self._bytes += row.nbytes + _ENTRY_OVERHEAD
            while self._kept and (len(self._kept) > self._max_entries or self._bytes > self._max_bytes):
                self._drop(next(iter(self._kept)))

    def _drop(self, key: bytes) -> int:
        row = self._kept.pop(key, None)
        if row is None:
            return 0
        self._bytes -= row.nbytes + _ENTRY_OVERHEAD
        return 1


def _key(role: bytes, text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, person=role).digest()
