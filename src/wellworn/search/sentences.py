"""The sentences of candidates that are nearest to a question. They are read from the store when somebody asks, each row once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from wellworn.language.parts import Span, nearest
from wellworn.search.bank import Vector

Best = tuple[float, Span] | None
"""The cosine of the best sentence, and where that is in what was embedded; None: the text has one, or nobody has read them."""


class Sentences:
    """For one question. Without a way to read them, or if nothing of the question can be read, it knows none."""

    def __init__(
        self, read: Callable[[Sequence[int]], Mapping[int, bytes]] | None = None, vector: Vector | None = None
    ) -> None:
        self._read, self._vector = read, vector
        self._known: dict[int, Best] = {}

    def of(self, vector: Vector | None) -> Sentences:
        """The same for the question with this vector."""
        return self if vector is self._vector else Sentences(self._read, vector)

    def best(self, nos: Sequence[int]) -> list[Best]:
        """By row number of the store."""
        if self._read is None or self._vector is None or not self._vector.any():
            return [None] * len(nos)
        if missing := [no for no in nos if no not in self._known]:
            found = nearest(self._read(missing), self._vector)
            self._known.update((no, found.get(no)) for no in missing)
        return [self._known[no] for no in nos]
