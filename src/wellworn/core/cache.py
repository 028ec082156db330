"""The one cache: the least recently used value goes first. Bounded by count, or by the size that the caller gives.

`text_cache` is that of a function of texts: all of these are emptied when somebody is forgotten.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Generic, TypeVar
from weakref import ref

from wellworn.core.locks import fork_lock

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
Function = TypeVar("Function", bound=Callable[..., object])
_empty: list[Callable[[], None]] = []
"""Empties each cache of texts."""
_of_texts: list[ref[LruCache[Any, Any]]] = []
"""Caches whose values are of texts, as long as somebody uses them."""


def text_cache(maxsize: int) -> Callable[[Function], Function]:
    """Keep what a function made of the latest texts, until `forget_texts`."""

    def cached(function: Function) -> Function:
        kept = lru_cache(maxsize)(function)
        _empty.append(kept.cache_clear)
        return kept  # type: ignore[return-value]  # called as the function is

    return cached


def forget_texts() -> None:
    """Empty every cache whose keys are texts, or words of them."""
    for empty in _empty:
        empty()
    for cache in [known() for known in [*_of_texts]]:
        if cache is not None:
            cache.clear()


class LruCache(Generic[K, V]):
    """Safe to share between threads, and free again in the child of a fork."""

    def __init__(self, limit: int, *, size_of: Callable[[V], int] = lambda _: 1, of_texts: bool = False) -> None:
        """Bounded by the sum of `size_of` its values; `forget_texts` empties one that is `of_texts`."""
        if of_texts:
            _of_texts.append(ref(self, _of_texts.remove))
        self._limit = limit
        self._size_of = size_of
        self._values: OrderedDict[K, V] = OrderedDict()
        self._size = 0
        self._lock = fork_lock()

    def get(self, key: K) -> V | None:
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def get_many(self, keys: Iterable[K]) -> dict[K, V]:
        """Those of the keys that are held, with their values."""
        with self._lock:
            found = {key: self._values[key] for key in keys if key in self._values}
            for key in found:
                self._values.move_to_end(key)
            return found

    def put(self, key: K, value: V) -> None:
        """Keep a value; one that is larger than the whole cache is not kept."""
        self.put_many({key: value})

    def put_many(self, values: Mapping[K, V]) -> None:
        with self._lock:
            for key, value in values.items():
                self._drop(key)
                self._values[key] = value
                self._size += self._size_of(value)
            while self._size > self._limit:
                self._drop(next(iter(self._values)))

    def pop(self, key: K) -> V | None:
        with self._lock:
            return self._drop(key)

    def clear(self) -> int:
        """Drop everything; returns how many values there were."""
        with self._lock:
            count, self._size = len(self._values), 0
            self._values.clear()
            return count

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[K]:
        with self._lock:
            return iter(list(self._values))

    def _drop(self, key: K) -> V | None:
        value = self._values.pop(key, None)
        if value is not None:
            self._size -= self._size_of(value)
        return value
