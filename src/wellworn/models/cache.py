"""A cache around any embedder: the same text is not embedded twice.

The first level is in the process. Further levels can stand behind it: a file and a Redis (`cache_levels`). Vectors are
kept under a hash of their text, never the text. Knows nothing about memories; whoever forgets a text calls `forget` or
`clear`, which reach every level.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from wellworn.core.cache import LruCache
from wellworn.core.errors import InvalidInput
from wellworn.core.locks import ForkLock
from wellworn.core.values import CacheLevel
from wellworn.models.cache_levels import VectorLevel
from wellworn.models.port import Embedder, Matrix

_ENTRY_OVERHEAD = 256  # bytes of key, array object and dictionary slot, measured on CPython 3.11
_TEXT, _QUERY = b"text", b"query"


class CachedEmbedder:
    """The most recently used vectors of `inner`, within `max_entries` and `max_bytes`; safe between threads.

    Texts and questions are kept apart, as some models embed them differently. `levels` are asked in their order for
    what this process does not have, and get what it learns.
    """

    def __init__(
        self,
        inner: Embedder,
        *,
        max_entries: int = 10_000,
        max_bytes: int = 32 * 1024 * 1024,
        levels: Sequence[VectorLevel] = (),
    ) -> None:
        if max_entries < 0 or max_bytes < 0:
            raise InvalidInput("max_entries", f"{max_entries} entries, {max_bytes} bytes", "use 0 to keep nothing")
        self.inner = inner
        self.hits = 0
        """Texts that this process had, repeats within one call included."""
        self.misses = 0
        """Texts that a further level or the inner embedder was asked for."""
        self._levels = tuple(levels)
        self._level_counts = [[0, 0] for _ in self._levels]  # hits and misses of each
        # Both limits in one: an entry counts with its share of the tighter one.
        self._near: LruCache[bytes, Matrix] = LruCache(
            max_bytes * max_entries, size_of=lambda row: max((row.nbytes + _ENTRY_OVERHEAD) * max_entries, max_bytes, 1)
        )
        self._lock = ForkLock()  # of the counts, and of what is kept while something is forgotten
        self._forgettings = 0
        self._tag: bytes | None = None

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def width(self) -> int:
        return self.inner.width

    def __len__(self) -> int:
        return len(self._near)

    def embed(self, texts: Sequence[str]) -> Matrix:
        """As the inner embedder; what is missing is asked for in one batch, each text once."""
        keys = [_key(_TEXT, text) for text in texts]
        found, forgettings = self._look_up(keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        if missing or not texts:
            rows = self.inner.embed(list(missing.values()))
            self._keep(dict(zip(missing, rows, strict=True)), self._levels, forgettings)
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
        self._keep({key: row}, self._levels, forgettings)
        return row

    def forget(self, texts: Iterable[str]) -> int:
        """Drop the vectors of these texts, as text and as question, on every level; returns how many this one had."""
        keys = [_key(role, text) for text in texts for role in (_TEXT, _QUERY)]
        with self._lock:
            self._forgettings += 1
            dropped = sum(self._near.pop(key) is not None for key in keys)
        for level in self._levels:
            level.drop([self._far(key) for key in keys])
        return dropped

    def clear(self) -> int:
        """Drop every vector on every level; returns how many this one had. `hits` and `misses` count on."""
        with self._lock:
            self._forgettings += 1
            dropped = self._near.clear()
        for level in self._levels:
            level.clear()
        return dropped

    def close(self) -> None:
        """Release the files and connections of the further levels."""
        for level in self._levels:
            level.close()

    def metrics(self) -> list[CacheLevel]:
        """What each level was asked for and had, since this object was made."""
        with self._lock:
            further = [
                CacheLevel(level=level.label, hits=hits, misses=misses, errors=level.errors)
                for level, (hits, misses) in zip(self._levels, self._level_counts, strict=True)
            ]
            return [CacheLevel(level="l1", hits=self.hits, misses=self.misses), *further]

    def _look_up(self, keys: list[bytes]) -> tuple[dict[bytes, Matrix], int]:
        """What any level has of these, and how often something was forgotten before we looked."""
        with self._lock:
            forgettings = self._forgettings
            rows = {key: self._near.get(key) for key in keys}
            found = {key: row for key, row in rows.items() if row is not None}
            missing = [key for key in rows if key not in found]
            self.hits += len(keys) - len(missing)
            self.misses += len(missing)
        for number, level in enumerate(self._levels):
            wanted = {self._far(key): key for key in missing if key not in found}
            if not wanted:
                break
            there = {wanted[far]: row for far, row in level.get([*wanted], width=self.width).items()}
            with self._lock:
                self._level_counts[number][0] += len(there)
                self._level_counts[number][1] += len(wanted) - len(there)
            self._keep(there, self._levels[:number], forgettings)  # nearer levels get what a farther one had
            found |= there
        return found, forgettings

    def _keep(self, rows: Mapping[bytes, Matrix], levels: Sequence[VectorLevel], forgettings: int) -> None:
        """In this process and on these levels, unless something was forgotten since: it may be one of these."""
        with self._lock:
            if not rows or self._forgettings != forgettings:
                return
            for key, row in rows.items():
                self._near.put(key, row.copy())  # a view would keep the whole batch alive
        vectors = {self._far(key): row for key, row in rows.items()} if levels else {}
        for level in levels:
            if self._forgettings == forgettings:
                level.put(vectors)
            if self._forgettings != forgettings:  # while it was put there
                level.drop([*vectors])

    def _far(self, key: bytes) -> bytes:
        """A key as further levels have it: they may serve several models."""
        if self._tag is None:
            self._tag = hashlib.blake2b(f"{self.name}\x1f{self.width}".encode(), digest_size=4).digest()
        return self._tag + key


def _key(role: bytes, text: str) -> bytes:
    """16 bytes that stand for a text in a role."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, person=role).digest()
