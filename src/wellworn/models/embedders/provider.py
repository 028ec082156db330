"""What every outside model has in common: its answer is checked before anything is stored.

A provider only says how to ask (`_ask`); this base asks no one about blank texts, finds out the width, and turns a
failed, misshapen or non-finite answer into `EmbeddingFailed`. Knows no service and no framework.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from wellworn.core.errors import EmbeddingFailed, InvalidInput, WellwornError
from wellworn.core.wellformed import well_formed
from wellworn.models.embedders.base import Matrix, unit_rows

_PROBE = "width"


class Provider(ABC):
    """An embedder over someone else's model. Without `width`, the first answer tells it."""

    def __init__(self, name: str, width: int | None = None) -> None:
        if width is not None and width < 1:
            raise InvalidInput("width", f"{width} is not a vector width", "leave it out to have it discovered")
        self._name = name
        self._width = width

    @property
    def name(self) -> str:
        return self._name

    @property
    def width(self) -> int:
        """Numbers per vector; asks the model once when it is not known yet."""
        if self._width is None:
            self._width = self._answer([_PROBE]).shape[1]
        return self._width

    def embed(self, texts: Sequence[str]) -> Matrix:
        """One unit vector per text, shape (len(texts), width); blank texts give zero rows and are not sent."""
        asked = [place for place, text in enumerate(texts) if text.strip()]
        answer = self._answer([well_formed(texts[place]) for place in asked]) if asked else None
        rows = np.zeros((len(texts), self.width), dtype=np.float32)
        if answer is not None:
            rows[asked] = answer
        return rows

    def embed_query(self, text: str) -> Matrix:
        """One unit vector for a question, shape (width,); zero when it is blank."""
        if not text.strip():
            return np.zeros(self.width, dtype=np.float32)
        row: Matrix = self._answer([well_formed(text)], query=True)[0]
        return row

    @abstractmethod
    def _ask(self, texts: list[str], *, query: bool) -> npt.ArrayLike:
        """One vector per text, in order, of any length and number type. `query`: a question, not a thing stored."""

    def _answer(self, texts: list[str], *, query: bool = False) -> Matrix:
        try:
            answer = self._ask(texts, query=query)
        except WellwornError:
            raise
        # Someone else's code may raise anything. Its words stay in the cause: they may quote a key.
        except Exception as error:
            raise EmbeddingFailed(
                f"embedder {self._name!r} failed with {type(error).__name__}; nothing was stored. "
                "Its own message is the cause of this error"
            ) from error
        rows = unit_rows(self._numbers(answer, len(texts)), width=self._width, name=self._name)
        self._width = rows.shape[1]
        return rows

    def _numbers(self, answer: npt.ArrayLike, count: int) -> npt.NDArray[np.float64]:
        try:
            rows = np.asarray(answer, dtype=np.float64)
        except (TypeError, ValueError) as error:  # ragged rows, or no numbers at all
            raise EmbeddingFailed(f"embedder {self._name!r} did not return a matrix of numbers") from error
        if rows.ndim != 2 or rows.shape[0] != count or rows.shape[1] == 0:
            raise EmbeddingFailed(
                f"embedder {self._name!r} returned shape {rows.shape}, expected one vector for each of {count} texts"
            )
        if np.isfinite(rows).all():
            # Largest number to one first: the squares of very large or small float32 leave their range.
            peaks = np.abs(rows).max(axis=1, keepdims=True)
            rows = rows / np.where(peaks == 0, 1.0, peaks)
        return rows
