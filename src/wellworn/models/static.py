"""The bundled default embedder: the mean of static token vectors (WordLlama `l2_supercat`, 256 numbers per token).

Reads weights and tokenizer as files from the installed `wordllama` package and never imports it: its import sets up
logging and pulls in an HTTP client. Uses no network and keeps no text. The model is read once per process, on first
use; `name` and `width` are known before.
"""

from __future__ import annotations

import functools
import importlib.util
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from wellworn.core.errors import EmbeddingFailed
from wellworn.core.wellformed import well_formed
from wellworn.models.port import Matrix, unit_rows

NAME = "static:l2_supercat_256"
WIDTH = 256

_BATCH = 1024
_MAX_TOKENS_AT_ONCE = 2048  # bounds the memory a very long text takes, and the rounding of its sum
_loading = threading.Lock()


class StaticEmbedder:
    """Token vectors, averaged: no key, no download, tens of microseconds per text.

    A text without a single token (the empty one) gives a zero row. Instances share one model per folder.
    """

    def __init__(self, folder: Path | None = None) -> None:
        """`folder` holds `weights/` and `tokenizers/`; by default the installed `wordllama` package."""
        self._folder = folder
        self._loaded: _Model | None = None

    @property
    def name(self) -> str:
        return NAME

    @property
    def width(self) -> int:
        return WIDTH

    def embed(self, texts: Sequence[str]) -> Matrix:
        """One unit vector per text, shape (len(texts), 256)."""
        model = self._model()
        sums = np.zeros((len(texts), WIDTH), dtype=np.float32)
        for start in range(0, len(texts), _BATCH):
            for row, ids in enumerate(model.token_ids(texts[start : start + _BATCH]), start):
                model.add_up(ids, sums[row])
        # Unit length makes the sum and the mean the same vector.
        return unit_rows(sums, width=WIDTH, name=NAME)

    def embed_query(self, text: str) -> Matrix:
        """One unit vector, shape (256,); questions and texts are embedded alike."""
        row: Matrix = self.embed([text])[0]
        return row

    def _model(self) -> _Model:
        if self._loaded is None:
            with _loading:
                self._loaded = _read_model(self._folder or _package_folder())
        return self._loaded


class _Model:
    """Token vectors and the tokenizer that numbers them; read-only after construction, so safe between threads."""

    def __init__(self, weights: Matrix, tokenizer: Any) -> None:  # Any: tokenizers' own types are incomplete
        self._weights = weights  # (vocabulary, 256)
        self._tokenizer = tokenizer
        self._encode_batch = getattr(tokenizer, "encode_batch_fast", tokenizer.encode_batch)  # without offsets

    def token_ids(self, texts: Sequence[str]) -> list[list[int]]:
        try:
            return self._encode(list(texts))
        except TypeError:  # what tokenizers raises for a lone surrogate
            return self._encode([well_formed(text) for text in texts])

    def add_up(self, ids: list[int], total: Matrix) -> None:
        # One gather and sum per text: measured three times faster than np.add.reduceat over a whole batch.
        for start in range(0, len(ids), _MAX_TOKENS_AT_ONCE):
            total += self._weights.take(ids[start : start + _MAX_TOKENS_AT_ONCE], axis=0, mode="clip").sum(axis=0)

    def _encode(self, texts: list[str]) -> list[list[int]]:
        if len(texts) == 1:  # stays on this thread: a query never wakes the tokenizer's pool
            return [self._tokenizer.encode(texts[0], add_special_tokens=False).ids]
        return [encoding.ids for encoding in self._encode_batch(texts, add_special_tokens=False)]


def _package_folder() -> Path:
    spec = importlib.util.find_spec("wordllama")  # finds a top-level package without importing it
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddingFailed(
            f"embedder {NAME!r} needs the weights in the package wordllama, which is not installed: "
            "pip install 'wordllama>=0.4.0,<0.5'"
        )
    return Path(next(iter(spec.submodule_search_locations)))


@functools.cache
def _read_model(folder: Path) -> _Model:
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
    return _Model(np.ascontiguousarray(weights), tokenizer)


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
