"""The bundled default embedder: the mean of static token vectors (WordLlama `l2_supercat`, 256 numbers per token).

Reads weights and tokenizer as files from the installed `wordllama` package and never imports it: its import sets up
logging and pulls in an HTTP client. Uses no network and keeps no text. The model is read once per process, on first
use; `name` and `width` are known before.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from wellworn.core.errors import EmbeddingFailed
from wellworn.core.locks import ForkLock
from wellworn.core.wellformed import well_formed
from wellworn.models.port import Matrix, unit_rows

NAME = "static:l2_supercat_256"
WIDTH = 256

_BATCH = 1024
_MAX_TOKENS_AT_ONCE = 2048  # bounds the memory a very long text takes, and the rounding of its sum
_loading = ForkLock()


class StaticEmbedder:
    """Token vectors, averaged: no key, no download, tens of microseconds per text.

    A text without a single token (the empty one) gives a zero row. Instances share one model per folder.
    """

    def __init__(self, folder: Path | None = None) -> None:
        """`folder` holds `weights/` and `tokenizers/`; by default the installed `wordllama` package."""
        self._folder = folder
        self._loaded: tuple[Matrix, Any] | None = None  # token vectors (vocabulary, 256) and tokenizer

    @property
    def name(self) -> str:
        return NAME

    @property
    def width(self) -> int:
        return WIDTH

    def embed(self, texts: Sequence[str]) -> Matrix:
        """One unit vector per text, shape (len(texts), 256)."""
        weights, tokenizer = self._model()
        sums = np.zeros((len(texts), WIDTH), dtype=np.float32)
        for start in range(0, len(texts), _BATCH):
            for row, ids in enumerate(_token_ids(tokenizer, texts[start : start + _BATCH]), start):
                # One gather and sum per text: measured three times faster than np.add.reduceat over a whole batch.
                for first in range(0, len(ids), _MAX_TOKENS_AT_ONCE):
                    some = ids[first : first + _MAX_TOKENS_AT_ONCE]
                    sums[row] += weights.take(some, axis=0, mode="clip").sum(axis=0)
        # Unit length makes the sum and the mean the same vector.
        return unit_rows(sums, width=WIDTH, name=NAME)

    def embed_query(self, text: str) -> Matrix:
        """One unit vector, shape (256,); questions and texts are embedded alike."""
        row: Matrix = self.embed([text])[0]
        return row

    def _model(self) -> tuple[Matrix, Any]:
        if self._loaded is None:
            with _loading:
                self._loaded = _read_model(self._folder or _package_folder())
        return self._loaded


def _token_ids(tokenizer: Any, texts: Sequence[str]) -> list[list[int]]:
    try:
        if len(texts) == 1:  # stays on this thread: a query never wakes the tokenizer's pool
            return [tokenizer.encode(texts[0], add_special_tokens=False).ids]
        encode = getattr(tokenizer, "encode_batch_fast", tokenizer.encode_batch)  # without offsets
        return [encoding.ids for encoding in encode(list(texts), add_special_tokens=False)]
    except TypeError:  # what tokenizers raises for a lone surrogate
        return _token_ids(tokenizer, [well_formed(text) for text in texts])


def _package_folder() -> Path:
    spec = importlib.util.find_spec("wordllama")  # finds a top-level package without importing it
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddingFailed(
            f"embedder {NAME!r} needs the weights in the package wordllama, which is not installed: "
            "pip install 'wordllama>=0.4.0,<0.5'"
        )
    return Path(next(iter(spec.submodule_search_locations)))


@functools.cache
def _read_model(folder: Path) -> tuple[Matrix, Any]:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    weights_file = folder / "weights" / "l2_supercat_256.safetensors"
    tokenizer_file = folder / "tokenizers" / "l2_supercat_tokenizer_config.json"
    try:
        weights = load_file(weights_file)["embedding.weight"].astype(np.float32)
        tokenizer = read_tokenizer(tokenizer_file)
    except (OSError, KeyError, ValueError, SafetensorError) as error:
        raise EmbeddingFailed(
            f"embedder {NAME!r} cannot read {weights_file} and {tokenizer_file}: "
            "pip install --force-reinstall 'wordllama>=0.4.0,<0.5'"
        ) from error
    return np.ascontiguousarray(weights), tokenizer


def read_tokenizer(file: Path) -> Any:
    """The tokenizer of a `tokenizer.json`, which neither pads nor cuts, and keeps no text.

    Its cache is off: it would keep up to 10,000 short texts, out of reach of a forget. It also slows batches of the
    static model down by a fifth, as every text is a single "word" there and few ever repeat.
    """
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(file.read_text(encoding="utf-8"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    resize = getattr(tokenizer.model, "_resize_cache", None)  # older tokenizers lack it
    if resize is not None:
        resize(0)
    return tokenizer
