"""Several embedders in order of preference, whose vectors never mix.

Which model serves is decided once: the one whose vectors the store holds, else the first that answers. After that only
members with the same model (at another address, say) take over from each other: vectors of another model cannot be
compared with those that are stored.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

from wellworn.core.errors import EmbeddingFailed
from wellworn.core.locks import ForkLock
from wellworn.models.port import Embedder, Matrix

_log = logging.getLogger("wellworn.models")
T = TypeVar("T")


class FallbackEmbedder:
    """The members of one model are asked in turn until one answers; one that fails is asked last from then on."""

    def __init__(self, members: Sequence[Embedder]) -> None:
        self.members = tuple(members)
        self._lock = ForkLock()
        self._serving: list[Embedder] = []  # those of the chosen model, the next to be asked first

    def choose(self, stored: str | None) -> None:
        """Serve the model of this name if a member has it, else that of the first member that answers."""
        if stored not in [member.name for member in self.members]:
            stored = self._first(self.members, lambda member: (member.embed_query("?"), member.name))[1]
        with self._lock:
            self._serving = [member for member in self.members if member.name == stored]

    @property
    def name(self) -> str:
        return self._chosen()[0].name

    @property
    def width(self) -> int:
        return self._ask(lambda member: member.width)

    def embed(self, texts: Sequence[str]) -> Matrix:
        return self._ask(lambda member: member.embed(texts))

    def embed_query(self, text: str) -> Matrix:
        return self._ask(lambda member: member.embed_query(text))

    def _chosen(self) -> list[Embedder]:
        if not self._serving:
            self.choose(None)
        return self._serving

    def _ask(self, ask: Callable[[Embedder], T]) -> T:
        return self._first(tuple(self._chosen()), ask)

    def _first(self, members: Sequence[Embedder], ask: Callable[[Embedder], T]) -> T:
        """The first answer; the first failure where there is none."""
        failures: list[EmbeddingFailed] = []
        for member in members:
            try:
                return ask(member)
            except EmbeddingFailed as error:
                failures.append(error)
                _log.warning("embedder %s failed; the next one of the list is asked", member.name)
                with self._lock:
                    if member in self._serving:
                        self._serving.remove(member)
                        self._serving.append(member)
        raise failures[0]
