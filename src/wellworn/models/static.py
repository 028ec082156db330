"""The default embedder until 0.2, as an option (extra `static`): the mean of static token vectors (WordLlama `l2_supercat`, 256 numbers per token).

Reads weights and tokenizer as files from the installed `wordllama` package and never imports it: its import sets up
logging and pulls in an HTTP client. Uses no network and keeps no text, only words, until `clear`. The model is read once
per process, on first use; `name` and `width` are known before. The weights are mapped, not copied. Texts are split by
`WordTokens`; the tokenizer takes far longer to load, and twice as long for a text.
"""

from __future__ import annotations

import functools
import importlib.util
import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from wellworn.core.errors import EmbeddingFailed, MissingExtra
from wellworn.core.lazy import cached_property, regex
from wellworn.core.locks import fork_lock
from wellworn.core.wellformed import well_formed
from wellworn.models.port import Matrix, unit_rows

NAME = "static:l2_supercat_256"
WIDTH = 256

_BATCH = 1024
_MAX_TOKENS_AT_ONCE = 2048  # bounds the memory a very long text takes, and the rounding of its sum
_WORDS, _WORD_CHARS = 50_000, 40
"""Words whose tokens are remembered, and how long a word may be: the time grows with its square."""
_TYPES = {"F16": np.float16, "F32": np.float32}
_NOT_BY_WORD = regex("  |</?s>|<unk>")
_loading = fork_lock()


class StaticEmbedder:
    """Token vectors, averaged: no key, no download, tens of microseconds per text.

    A text without a single token (the empty one) gives a zero row. Instances share one model per folder.
    """

    name, width = NAME, WIDTH

    def __init__(self, folder: Path | None = None) -> None:
        """`folder` holds `weights/` and `tokenizers/`; by default the installed `wordllama` package."""
        self._folder = folder
        self._loaded: StaticModel | None = None

    def embed(self, texts: Sequence[str]) -> Matrix:
        """One unit vector per text, shape (len(texts), 256)."""
        model = self._model()
        sums = np.zeros((len(texts), WIDTH), dtype=np.float32)
        for start in range(0, len(texts), _BATCH):
            for row, ids in enumerate(model.token_ids(texts[start : start + _BATCH]), start):
                # One gather and sum per text: measured three times faster than np.add.reduceat over a whole batch.
                for first in range(0, len(ids), _MAX_TOKENS_AT_ONCE):
                    some = ids[first : first + _MAX_TOKENS_AT_ONCE]
                    sums[row] += model.weights.take(some, axis=0, mode="clip").astype(np.float32).sum(axis=0)
        # Unit length makes the sum and the mean the same vector.
        return unit_rows(sums, width=WIDTH, name=NAME)

    def embed_query(self, text: str) -> Matrix:
        """One unit vector, shape (256,); questions and texts are embedded alike."""
        model, row = self._model(), np.zeros(WIDTH, dtype=np.float32)
        (ids,) = model.token_ids([text])
        if not 0 < len(ids) <= _MAX_TOKENS_AT_ONCE:
            row[:] = self.embed([text])[0]
            return row
        # The same numbers without the cost of doing it for many.
        row += model.weights.take(ids, axis=0, mode="clip").astype(np.float32).sum(axis=0)
        row /= np.sqrt(np.add.reduce(row * row)) or 1
        return row

    def clear(self) -> int:
        """Forget the words of texts; returns how many vectors it had kept, which is none."""
        if self._loaded is not None:
            self._loaded.words.clear()
        return 0

    def _model(self) -> StaticModel:
        if self._loaded is None:
            with _loading:
                self._loaded = _read_model(self._folder or _package_folder())
        return self._loaded


class StaticModel:
    """The vectors of the tokens, shape (vocabulary, 256), and what splits texts into tokens."""

    def __init__(self, weights_file: Path, tokenizer_file: Path) -> None:
        self.weights = _mapped(weights_file, "embedding.weight")
        self._file = tokenizer_file
        self.words = WordTokens(tokenizer_file)

    def token_ids(self, texts: Sequence[str]) -> Iterator[list[int]]:
        texts = [text if text.isascii() else well_formed(text) for text in texts]
        found = [self.words.ids(text) for text in texts]
        others = [text for text, ids in zip(texts, found, strict=True) if ids is None]
        if len(others) > 1:
            encode = getattr(self._tokenizer, "encode_batch_fast", self._tokenizer.encode_batch)  # without offsets
            split = iter(encode(others, add_special_tokens=False))
        else:  # stays on this thread: a query never wakes the tokenizer's pool
            split = (self._tokenizer.encode(text, add_special_tokens=False) for text in others)
        return (next(split).ids if ids is None else ids for ids in found)

    @cached_property
    def _tokenizer(self) -> Any:  # of tokenizers
        return read_tokenizer(self._file)


class Vocabulary(msgspec.Struct):
    vocab: dict[str, int]


class TokenizerFile(msgspec.Struct):
    """What is read of a `tokenizer.json`."""

    model: Vocabulary


class WordTokens:
    """The same tokens as the tokenizer's, word by word.

    Two pieces are joined where that makes a token, those with the lowest number first. The vocabulary is numbered in
    the order of the tokenizer's own list of what it joins, except for several spaces in a row.
    """

    def __init__(self, file: Path) -> None:
        self._vocab = msgspec.json.decode(file.read_bytes(), type=TokenizerFile).model.vocab
        self._of_word = functools.lru_cache(_WORDS)(self._split)

    def ids(self, text: str) -> list[int] | None:
        """The tokens of a text; None if it has something that only the tokenizer knows, or a very long word."""
        spaced = f" {text}".replace("▁", " ") if text else ""
        words = spaced.split(" ")[1:]
        if _NOT_BY_WORD.search(spaced) or max(map(len, words), default=0) >= _WORD_CHARS:
            return None
        # No token has a space after a letter, so words are split one by one.
        return [id for word in words for id in self._of_word(word)]

    def clear(self) -> int:
        """Forget the words; returns how many there were."""
        count = self._of_word.cache_info().currsize
        self._of_word.cache_clear()
        return count

    def _split(self, word: str) -> list[int]:
        ids: list[int] = []
        for piece in self._pieces(f"▁{word}"):
            known = self._vocab.get(piece)
            ids += [self._vocab[f"<0x{byte:02X}>"] for byte in piece.encode()] if known is None else [known]
        return ids

    def _pieces(self, word: str) -> list[str]:
        pieces, number, last = list(word), self._vocab.get, len(self._vocab)
        numbers = [number(one + two, last) for one, two in pairwise(pieces)]
        while numbers and (best := min(numbers)) < last:
            place = numbers.index(best)
            pieces[place] += pieces.pop(place + 1)
            del numbers[place]
            if place:
                numbers[place - 1] = number(pieces[place - 1] + pieces[place], last)
            if place < len(numbers):
                numbers[place] = number(pieces[place] + pieces[place + 1], last)
        return pieces


def _package_folder() -> Path:
    spec = importlib.util.find_spec("wordllama")  # finds a top-level package without importing it
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra("the embedder 'static'", "static")
    return Path(next(iter(spec.submodule_search_locations)))


@functools.cache
def _read_model(folder: Path) -> StaticModel:
    weights_file = folder / "weights" / "l2_supercat_256.safetensors"
    tokenizer_file = folder / "tokenizers" / "l2_supercat_tokenizer_config.json"
    try:
        return StaticModel(weights_file, tokenizer_file)
    except (OSError, KeyError, ValueError, OverflowError) as error:
        raise EmbeddingFailed(
            f"embedder {NAME!r} cannot read {weights_file} and {tokenizer_file}: "
            "pip install --force-reinstall 'wordllama>=0.4.0,<0.5'"
        ) from error


def _mapped(file: Path, name: str) -> Matrix:
    """One array of a safetensors file, read as it is needed: a length, a JSON header with types and places, the arrays."""
    with file.open("rb") as opened:
        length = int.from_bytes(opened.read(8), "little")
        about = json.loads(opened.read(min(length, 1_000_000)))[name]
    start = 8 + length + about["data_offsets"][0]
    found = np.memmap(file, dtype=_TYPES[about["dtype"]], mode="r", offset=start, shape=tuple(about["shape"]))
    return np.asarray(found)


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
