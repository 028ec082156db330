"""A cache around any embedder: the same text is not embedded twice.

Level 1 is in the process. Further levels may stand behind it: a file (`disk`), a Redis (`redis`). Vectors are kept
under a hash of their text, never the text. Knows nothing about memories; whoever forgets a text tells it with `forget`
or `clear`, and every level lets go.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence

import numpy as np

from wellworn.core.errors import InvalidInput
from wellworn.core.locks import ForkLock
from wellworn.core.values import CacheLevel
from wellworn.models.embedders.base import Embedder, Matrix
from wellworn.models.embedders.levels import QUERY, TEXT, Level, key_of, model_tag

_ENTRY_OVERHEAD = 256  # bytes of key, array object and dictionary slot, measured on CPython 3.11


class CachedEmbedder:
    """Least recently used vectors of `inner`, within `max_entries` and `max_bytes`; safe between threads.

    Texts and questions are kept apart, as some models embed them differently. `levels` are asked in their order for
    what this process does not have, and told what it learns.
    """

    def __init__(
        self,
        inner: Embedder,
        *,
        max_entries: int = 10_000,
        max_bytes: int = 32 * 1024 * 1024,
        levels: Sequence[Level] = (),
    ) -> None:
        if max_entries < 0 or max_bytes < 0:
            raise InvalidInput("max_entries", f"{max_entries} entries, {max_bytes} bytes", "use 0 to keep nothing")
        self.inner = inner
        self.hits = 0
        """Texts answered by this process without asking further, repeats within one call included."""
        self.misses = 0
        """Texts that a further level or the inner embedder was asked for."""
        self._levels = tuple(levels)
        self._asked = [[0, 0] for _ in self._levels]  # hits and misses of each
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._lock = ForkLock()
        self._kept: OrderedDict[bytes, Matrix] = OrderedDict()  # oldest use first
        self._bytes = 0
        self._forgettings = 0
        self._tag: bytes | None = None

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
        keys = [key_of(TEXT, text) for text in texts]
        found, forgettings = self._look_up(keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        if missing and self._levels:
            found |= self._further([*missing], forgettings)
            missing = {key: text for key, text in missing.items() if key not in found}
        if missing or not texts:
            rows = self.inner.embed(list(missing.values()))
            self._keep(list(missing), rows, forgettings)
            if len(missing) == len(texts):
                return rows
            found.update(zip(missing, rows, strict=True))
        return np.stack([found[key] for key in keys])

    def embed_query(self, text: str) -> Matrix:
        """As the inner embedder."""
        key = key_of(QUERY, text)
        found, forgettings = self._look_up([key])
        if not found and self._levels:
            found = self._further([key], forgettings)
        if key in found:
            return found[key].copy()
        row = self.inner.embed_query(text)
        self._keep([key], row[np.newaxis], forgettings)
        return row

    def forget(self, texts: Iterable[str]) -> int:
        """Drop the vectors of these texts, as text and as question, on every level; returns how many this one had."""
        keys = [key_of(role, text) for text in texts for role in (TEXT, QUERY)]
        with self._lock:
            self._forgettings += 1
            dropped = sum(self._drop(key) for key in keys)
        for level in self._levels:
            level.drop([self._far(key) for key in keys])
        return dropped

    def clear(self) -> int:
        """Drop every vector on every level; returns how many this one had. `hits` and `misses` count on."""
        with self._lock:
            self._forgettings += 1
            dropped = len(self._kept)
            self._kept.clear()
            self._bytes = 0
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
            return [
                CacheLevel(level="l1", hits=self.hits, misses=self.misses),
                *(
                    CacheLevel(level=level.label, hits=hits, misses=misses, errors=level.errors)
                    for level, (hits, misses) in zip(self._levels, self._asked, strict=True)
                ),
            ]

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

    def _further(self, keys: list[bytes], forgettings: int) -> dict[bytes, Matrix]:
        """What the further levels have of these; a nearer one is told what a farther one had."""
        found: dict[bytes, Matrix] = {}
        for number, level in enumerate(self._levels):
            wanted = {self._far(key): key for key in keys if key not in found}
            if not wanted:
                break
            there = level.get([*wanted], width=self.width)
            with self._lock:
                self._asked[number][0] += len(there)
                self._asked[number][1] += len(wanted) - len(there)
            if there:
                self._tell(self._levels[:number], there, forgettings)
                found |= {wanted[far]: row for far, row in there.items()}
        if found:
            self._keep_here([*found], [*found.values()], forgettings)
        return found

    def _keep(self, keys: list[bytes], rows: Matrix, forgettings: int) -> None:
        self._keep_here(keys, rows, forgettings)
        if self._levels and keys:
            vectors = {self._far(key): row for key, row in zip(keys, rows, strict=True)}
            self._tell(self._levels, vectors, forgettings)

    def _tell(self, levels: Sequence[Level], vectors: dict[bytes, Matrix], forgettings: int) -> None:
        """Keep these on further levels, unless something was forgotten meanwhile; if just now, they go again."""
        for level in levels:
            if self._forgettings == forgettings:
                level.put(vectors)
            if self._forgettings != forgettings:
                level.drop([*vectors])

    def _keep_here(self, keys: list[bytes], rows: Matrix | Sequence[Matrix], forgettings: int) -> None:
        with self._lock:
            if self._forgettings != forgettings:  # one of these may have been forgotten while it was embedded
                return
            for key, row in zip(keys, rows, strict=True):
                self._drop(key)
                self._kept[key] = row.copy()  # a view would keep the whole batch alive
                self._bytes += row.nbytes + _ENTRY_OVERHEAD
            while self._kept and (len(self._kept) > self._max_entries or self._bytes > self._max_bytes):
                self._drop(next(iter(self._kept)))

    def _far(self, key: bytes) -> bytes:
        """A key as further levels have it, which may serve several models."""
        if self._tag is None:
            self._tag = bytes.fromhex(model_tag(self.name, self.width))
        return self._tag + key

    def _drop(self, key: bytes) -> int:
        row = self._kept.pop(key, None)
        if row is None:
            return 0
        self._bytes -= row.nbytes + _ENTRY_OVERHEAD
        return 1
