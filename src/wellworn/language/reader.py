"""The bundled reader: one small transformer that turns a text, and each of its sentences, into a vector.

It was trained for this package (`training/` in the repository); its weights are beside this file. A text goes through it once: the
vector of a text is the mean of the states of its tokens, that of a sentence the mean over its own. So a sentence knows the
text it stands in. onnxruntime does the arithmetic in float32; weights are kept as bytes with a scale for each row. Nothing is
downloaded. It is read once a process, on first use; name and width are known before.

Vectors are rounded, so that small differences between processors do not show.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wellworn.core.errors import EmbeddingFailed
from wellworn.core.locks import fork_lock
from wellworn.core.wellformed import well_formed
from wellworn.language.sentences import in_other_script, sentences
from wellworn.language.wordpiece import WordPiece
from wellworn.models.port import Matrix, ReadText, unit_rows

NAME = "reader:9e679d45"
WIDTH = 384
WINDOW = 200
"""Tokens that are read together; a longer text is read in several windows, cut between sentences where that is possible."""
_BATCH_TOKENS, _AHEAD = 2048, 8
"""Tokens that are read at once, with padding; and batches that are under way, which bounds the memory."""
_FOLDER = Path(__file__).parent
WEIGHTS, GRAPH, _VOCABULARY = (
    _FOLDER / name for name in ("reader.safetensors", "reader.onnx", "reader_vocabulary.txt")
)
_TYPES = {"F16": np.float16, "F32": np.float32, "I8": np.int8}
_DECIMALS = 5
_EPSILON = np.float32(1e-12)
_loading = fork_lock()
Array = npt.NDArray[Any]


class _Window(NamedTuple):
    """Tokens that are read together: whose they are, and the end of each sentence in them."""

    text: int
    ids: list[int]
    ends: list[tuple[int, int]]
    """The number of a sentence, and the place after its last token here."""


class Reader:
    """Turns texts into vectors: no key, no download. Instances share one model in a process."""

    name, width = NAME, WIDTH

    def __init__(self) -> None:
        self._loaded: _Model | None = None

    def embed(self, texts: Sequence[str]) -> Matrix:
        """One unit vector per text, shape (len(texts), 384); a text without content, or in another script than Latin,
        gives zeros."""
        rows = np.zeros((len(texts), WIDTH), dtype=np.float32)
        for place, reading in enumerate(self.read(texts)):
            rows[place] = reading.vector
        return rows

    def embed_query(self, text: str) -> Matrix:
        """One unit vector, shape (384,); questions and texts are read alike."""
        return self.read([text])[0].vector

    def read(self, texts: Sequence[str]) -> list[ReadText]:
        """The vector of each text and of its sentences; zeros and none where there is only another script than Latin."""
        return self._model().read([text if text.isascii() else well_formed(text) for text in texts])

    def asks(self, vector: Matrix) -> Matrix:
        """How likely the question with this vector asks for what is so, for what was so before, and for what the assistant
        said."""
        return self._model().asks(vector)

    def gist(self, texts: Sequence[str]) -> Matrix:
        """One unit vector per text from its words alone, whatever their order: a hundred times quicker."""
        return self._model().gist(texts)

    def clear(self) -> int:
        """Forget the words of texts; returns how many vectors it had kept, which is none."""
        if self._loaded is not None:
            self._loaded.pieces.clear()
        return 0

    def _model(self) -> _Model:
        if self._loaded is None:
            with _loading:
                self._loaded = model()
        return self._loaded


class _Model:
    """The weights, the graph and the tokens."""

    def __init__(self) -> None:
        self.weights = read_weights(WEIGHTS)
        self.pieces = WordPiece(vocabulary())
        take = self.weights.pop
        self._words, self._scales, self._places = take("words.q"), take("words.s"), take("places")
        self._gain, self._bias = take("norm.weight"), take("norm.bias")
        self._says, self._mean = take("pieces.weight"), take("pieces.mean")
        self._asks, self._asks_bias = take("asks.weight"), take("asks.bias")
        self._session: Any = None

    def read(self, texts: Sequence[str]) -> list[ReadText]:
        spans = [[] if in_other_script(text) else sentences(text) for text in texts]
        windows = [window for number, text in enumerate(texts) for window in self._windows(number, text, spans[number])]
        windows.sort(key=lambda window: len(window.ids))
        sums = np.zeros((len(texts), WIDTH), dtype=np.float32)
        parts = [np.zeros((len(some), WIDTH), dtype=np.float32) for some in spans]
        for batch, states in self._all_states(windows):
            for window, state in zip(batch, states, strict=True):
                own = state[: len(window.ids)]
                sums[window.text] += own.sum(axis=0)
                begin = 1
                for number, end in window.ends:
                    parts[window.text][number] += own[begin:end].sum(axis=0)
                    begin = end
        whole = _unit(sums)  # of length one the sum and the mean are the same
        lengths = [len(some) for some in parts]
        every = _unit(np.concatenate(parts)) if sum(lengths) else np.zeros((0, WIDTH), dtype=np.float32)
        of_each = np.split(every, np.cumsum(lengths)[:-1]) if lengths else []
        return [ReadText(*one) for one in zip(whole, spans, of_each, strict=True)]

    def asks(self, vector: Matrix) -> Matrix:
        odds = np.exp(self._asks @ vector + self._asks_bias)
        shares: Matrix = odds / odds.sum()
        return shares

    def gist(self, texts: Sequence[str]) -> Matrix:
        """The mean of the words' own vectors; the rarer a piece of a word, the more it counts."""
        sums = np.zeros((len(texts), WIDTH), dtype=np.float32)
        for row, text in enumerate(texts):
            if ids := self.pieces.ids(text):
                words = self._words[ids] * self._scales[ids].astype(np.float32) - self._mean
                sums[row] = self._says[ids] @ words
        return _unit(sums)

    def _windows(self, number: int, text: str, spans: Sequence[tuple[int, int]]) -> Iterator[_Window]:
        """The text in as few windows as hold it."""
        ids, ends, room = [self.pieces.cls], list[tuple[int, int]](), WINDOW - 1
        for sentence, (begin, end) in enumerate(spans):
            tokens = self.pieces.ids(text[begin:end])
            while tokens:
                if len(ids) + min(len(tokens), room - 1) > room:
                    yield _Window(number, [*ids, self.pieces.sep], ends)
                    ids, ends = [self.pieces.cls], []
                taken, tokens = tokens[: room - len(ids)], tokens[room - len(ids) :]
                ids += taken
                ends.append((sentence, len(ids)))
        if ends:
            yield _Window(number, [*ids, self.pieces.sep], ends)

    def _all_states(self, windows: Sequence[_Window]) -> Iterator[tuple[Sequence[_Window], Matrix]]:
        """The states of the tokens, batch by batch of windows of like length."""
        batches, start = list[Sequence[_Window]](), 0
        while start < len(windows):
            end = start + 1
            while end < len(windows) and (end + 1 - start) * len(windows[end].ids) <= _BATCH_TOKENS:
                end += 1
            batches.append(windows[start:end])
            start = end
        if len(batches) < 2:  # a question wakes no other thread
            yield from ((batch, self._states([window.ids for window in batch])) for batch in batches)
            return
        with ThreadPoolExecutor(min(len(batches), os.cpu_count() or 1)) as pool:
            for some in range(0, len(batches), _AHEAD):
                part = batches[some : some + _AHEAD]
                states = pool.map(lambda batch: self._states([window.ids for window in batch]), part)
                yield from zip(part, states, strict=True)

    def _states(self, several: Sequence[list[int]]) -> Matrix:
        return self.states(several, self._runtime())

    def states(self, several: Sequence[list[int]], session: Any, told: Matrix | None = None) -> Matrix:
        """The states of the tokens of each text by the network of `session`; `told` is added to what the tokens say."""
        longest = max(map(len, several))
        ids, mask = np.zeros((len(several), longest), dtype=np.int32), np.zeros((len(several), longest), dtype=np.int32)
        for row, own in enumerate(several):
            ids[row, : len(own)] = own
            mask[row, : len(own)] = 1
        states = self._words[ids].astype(np.float32) * self._scales[ids].astype(np.float32) + self._places[:longest]
        if told is not None:
            states += told
        states -= states.mean(axis=-1, keepdims=True)
        states /= np.sqrt(np.square(states).mean(axis=-1, keepdims=True) + _EPSILON)
        states = states * self._gain + self._bias
        try:
            found: Matrix = session.run(None, {"x": states, "mask": mask})[0]
        except EmbeddingFailed:
            raise
        except Exception as error:  # kinds of onnxruntime's own
            raise EmbeddingFailed(
                f"embedder {NAME!r} failed with {type(error).__name__}; nothing was stored"
            ) from error
        return found

    def _runtime(self) -> Any:
        if self._session is None:
            with _loading:
                if self._session is None:
                    self._session = session_of(self.weights)
        return self._session


def _unit(sums: Matrix) -> Matrix:
    return np.round(unit_rows(sums, width=WIDTH, name=NAME), _DECIMALS)


def session_of(weights: Mapping[str, Matrix]) -> Any:
    """The network with these weights, ready to run."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL  # the graph is prepared
    options.intra_op_num_threads = 1  # threads of its own would make it hang after a fork
    options.add_external_initializers(
        [*weights], [onnxruntime.OrtValue.ortvalue_from_numpy(one) for one in weights.values()]
    )
    return onnxruntime.InferenceSession(GRAPH.read_bytes(), options, providers=["CPUExecutionProvider"])


@functools.cache
def model() -> _Model:
    """The network that everything in a process shares."""
    try:
        return _Model()
    except (OSError, KeyError, ValueError) as error:
        raise EmbeddingFailed(
            f"embedder {NAME!r} cannot read its weights in {_FOLDER}: install wellworn again"
        ) from error


@functools.cache
def bundled() -> Reader:
    """The reader that everything in a process shares."""
    return Reader()


@functools.cache
def vocabulary() -> list[str]:
    """The pieces of words that the reader knows, in the order of their numbers."""
    return _VOCABULARY.read_text(encoding="utf-8").splitlines()


def read_weights(path: Path) -> dict[str, Matrix]:
    """The arrays of a safetensors file: a length, a JSON header with types and places, the arrays.

    Weights of bytes are made floats again, but for the words of the vocabulary, of which a text has few.
    """
    data = np.fromfile(path, dtype=np.uint8)
    length = int(data[:8].view("<u8")[0])
    header = json.loads(data[8 : 8 + length].tobytes())
    arrays: dict[str, Array] = {}
    for name, about in header.items():
        if name != "__metadata__":
            begin, end = (8 + length + place for place in about["data_offsets"])
            arrays[name] = data[begin:end].view(_TYPES[about["dtype"]]).reshape(about["shape"])
    found: dict[str, Matrix] = {name: arrays.pop(name) for name in ("words.q", "words.s") if name in arrays}
    for name, array in arrays.items():
        if name.endswith(".q"):
            weight = array.astype(np.float32) * arrays[f"{name[:-2]}.s"].astype(np.float32)
            found[name[:-2]] = np.ascontiguousarray(weight.T)
        elif not name.endswith(".s"):
            found[name] = array.astype(np.float32)
    return found
