"""The vectors of an entry's sentences, as a store keeps them beside the vector of its text.

One row a sentence: where it begins and ends in the embedded text (in characters), a scale, and its vector in whole numbers from
-127 to 127. A text of one sentence has none: its own vector is that of the sentence. What is damaged counts as none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from wellworn.core.errors import EmbeddingFailed, WellwornError
from wellworn.language.sentences import in_other_script, sentences
from wellworn.models.port import Embedder, Matrix, ReadsSentences, unit_rows

MOST = 64
"""Sentences that are kept of a text: the first ones."""
_STEPS = 127
_LARGEST = 1.001 / _STEPS
"""The scale of a vector of length one is no larger."""
Span = tuple[int, int]


def packed(spans: Sequence[Span], parts: Matrix) -> bytes | None:
    """Where the sentences of a text are, with their vectors of length one; None for fewer than two."""
    if len(spans) < 2:
        return None
    if len(spans) != len(parts):
        raise ValueError(f"{len(parts)} vectors for {len(spans)} sentences")
    parts = parts[:MOST]
    rows = np.zeros(len(parts), dtype=_row(parts.shape[1]))
    rows["begin"], rows["end"] = np.array(spans[:MOST]).T
    rows["scale"] = scale = np.abs(parts).max(axis=1) / _STEPS
    rows["vector"] = np.rint(parts / np.where(scale, scale, 1)[:, None])
    return rows.tobytes()


def unpacked(blob: bytes, width: int) -> tuple[list[Span], Matrix]:
    """The inverse of `packed`; nothing where the blob is damaged or of another width."""
    rows, _ = _rows_of({0: blob}, width)
    vectors: Matrix = rows["vector"] * rows["scale"][:, None]
    return [*zip(rows["begin"].tolist(), rows["end"].tolist(), strict=True)], vectors


def nearest(blobs: Mapping[int, bytes], vector: Matrix) -> dict[int, tuple[float, Span]]:
    """By the number of each text the cosine of its sentence that is nearest to a vector, and where that is."""
    rows, of_text = _rows_of(blobs, len(vector))
    cosines = (rows["vector"].astype(np.float32) @ vector) * rows["scale"]
    order = np.lexsort((-cosines, of_text))
    of_text, first = np.unique(of_text[order], return_index=True)
    best = order[first]
    spans = zip(rows["begin"][best].tolist(), rows["end"][best].tolist(), strict=True)
    return dict(zip(of_text.tolist(), zip(cosines[best].tolist(), spans, strict=True), strict=True))


def _rows_of(blobs: Mapping[int, bytes], width: int) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """The sentences of all texts that are sound, and of which text each is."""
    kind = _row(width)
    whole = {no: blob for no, blob in blobs.items() if not len(blob) % kind.itemsize}
    rows = np.frombuffer(b"".join(whole.values()), dtype=kind)
    of_text = np.repeat([*whole] or [0], [len(blob) // kind.itemsize for blob in whole.values()] or [0])
    wrong = ~((rows["begin"] < rows["end"]) & (rows["scale"] >= 0) & (rows["scale"] <= _LARGEST))
    sound = ~np.isin(of_text, of_text[wrong])
    return rows[sound], of_text[sound]


@cache
def _row(width: int) -> np.dtype[np.void]:
    return np.dtype([("begin", "<u4"), ("end", "<u4"), ("scale", "<f4"), ("vector", "i1", (width,))])


# -- making them -------------------------------------------------------------------------------------------------------


def has_several(text: str) -> bool:
    """Whether the bundled reader finds more than one sentence in a text."""
    return not in_other_script(text) and len(sentences(text)) > 1


def reader_of(embedder: Embedder | None) -> ReadsSentences | None:
    """The embedder, or the one behind its cache or its checks, if it reads sentences too."""
    one: Any = embedder
    while one is not None and not isinstance(one, ReadsSentences):
        one = getattr(one, "inner", None)
    return one


def embedded(embedder: Embedder, texts: Sequence[str]) -> tuple[list[Matrix], list[bytes | None]]:
    """The vector of each text, and the packed vectors of its sentences if the embedder reads them: it goes around a cache, which
    keeps whole texts only."""
    reader = reader_of(embedder)
    if reader is None or not texts:
        return [*embedder.embed(texts)], [None] * len(texts)
    try:
        found = reader.read(texts)
        vectors = np.array([one.vector for one in found], dtype=np.float32)
        parts = [packed(one.spans, one.parts) for one in found]
    except WellwornError:
        raise
    except Exception as error:  # of someone else's code; its message may quote a key
        raise EmbeddingFailed(
            f"embedder {embedder.name!r} failed with {type(error).__name__}; nothing was stored"
        ) from error
    if not isinstance(embedder, ReadsSentences):
        vectors = unit_rows(vectors, width=embedder.width, name=embedder.name, count=len(texts))
    return [*vectors], parts
