"""How well a text answers a question, when the reader reads both together.

It is the reader's own network with a small addition to each matrix (`answers.safetensors`). It reads the question and the part
of a text around one sentence, and knows who says it and how long ago. `training/answers.py` trains it.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from wellworn.core.errors import EmbeddingFailed
from wellworn.core.locks import fork_lock
from wellworn.language import reader
from wellworn.language.sentences import sentences
from wellworn.models.port import Matrix

WEIGHTS = Path(__file__).parent / "answers.safetensors"
VOICES = ("user", "assistant", "person", "note")
MOST_ASKED, MOST_READ = 40, 64
"""Tokens of the question and of the text that are read."""
_DAYS = (1, 4, 15, 45, 100, 200, 400)
AGES = len(_DAYS) + 1
_DECIMALS = 2
_loading = fork_lock()


class Contender(NamedTuple):
    """A text that may answer."""

    text: str
    voice: str
    """Who says it: one of `VOICES`."""
    days: float
    """How long ago."""
    begin: int
    """Where in the text the sentence begins around which it is read."""


def scores(question: str, candidates: Sequence[Contender]) -> Matrix:
    """The logit of each candidate, rounded, so that small differences between processors do not show."""
    return np.round(_model().scores(question, candidates), _DECIMALS)


def around(lengths: Sequence[int], best: int, room: int) -> tuple[int, int]:
    """Where to read in a text whose sentences have so many tokens: the best one, what follows and what comes before it,
    while there is room."""
    first = last = min(best, len(lengths) - 1)
    begin, taken = sum(lengths[:first]), lengths[first]
    if taken > room:
        return begin, begin + room
    while True:
        after = lengths[last + 1] if last + 1 < len(lengths) else room
        before = lengths[first - 1] if first else room
        if taken + after <= room:
            last, taken = last + 1, taken + after
        elif taken + before <= room:
            first, taken, begin = first - 1, taken + before, begin - before
        else:
            return begin, begin + taken


def voice_of(who: str) -> int:
    return VOICES.index(who) if who in VOICES else VOICES.index("person")


def age_of(days: float) -> int:
    return sum(days >= one for one in _DAYS)


class _Model:
    def __init__(self) -> None:
        self._trunk, own = reader.model(), reader.read_weights(WEIGHTS)
        self._voices, self._ages = own.pop("voices"), own.pop("ages")
        self._of_first, self._of_text = np.split(own.pop("score.weight")[0], 2)
        self._bias = own.pop("score.bias")[0]
        weights = dict(self._trunk.weights)
        for name in [name for name in own if name.endswith(".down")]:
            whole = f"{name.removesuffix('.down')}.weight"
            weights[whole] = weights[whole] + own[name] @ own[f"{name.removesuffix('.down')}.up"]
        self._session = reader.session_of(weights)

    def scores(self, question: str, candidates: Sequence[Contender]) -> Matrix:
        pieces = self._trunk.pieces
        asked = [pieces.cls, *pieces.ids(question)[:MOST_ASKED], pieces.sep]
        rows = [[*asked, *self._read(one), pieces.sep] for one in candidates]
        order = sorted(range(len(rows)), key=lambda row: len(rows[row]))
        several = min(len(rows), os.cpu_count() or 1, 2)
        parts = [part.tolist() for part in np.array_split(np.array(order, dtype=np.intp), several or 1)]
        found = np.zeros(len(rows), dtype=np.float32)

        def judge(part: list[int]) -> Matrix:
            return self._judged([rows[row] for row in part], [candidates[row] for row in part], len(asked))

        if several < 2:
            judged = [judge(part) for part in parts if part]
        else:
            with ThreadPoolExecutor(several) as pool:
                judged = [*pool.map(judge, parts)]
        for part, own in zip(parts, judged, strict=False):
            found[part] = own
        return found

    def _read(self, one: Contender) -> list[int]:
        """The tokens around the candidate's sentence."""
        spans = sentences(one.text)
        if not spans:
            return []
        several = [self._trunk.pieces.ids(one.text[begin:end]) for begin, end in spans]
        best = sum(begin <= one.begin for begin, _ in spans[1:])
        begin, end = around([len(some) for some in several], best, MOST_READ)
        return [token for some in several for token in some][begin:end]

    def _judged(self, rows: Sequence[list[int]], candidates: Sequence[Contender], begin: int) -> Matrix:
        """`begin` is the place of the first token of each text."""
        share = np.zeros((len(rows), max(map(len, rows)), 1), dtype=np.float32)
        for row, own in enumerate(rows):
            share[row, begin : len(own)] = 1
        voices, ages = [voice_of(one.voice) for one in candidates], [age_of(one.days) for one in candidates]
        told = (self._voices[voices] + self._ages[ages])[:, None] * share
        states = self._trunk.states(rows, self._session, told)
        of_text = (states * share).sum(axis=1) / np.maximum(share.sum(axis=1), 1)
        logits: Matrix = states[:, 0] @ self._of_first + of_text @ self._of_text + self._bias
        return logits


@functools.cache
def _loaded() -> _Model:
    try:
        return _Model()
    except (OSError, KeyError, ValueError) as error:
        raise EmbeddingFailed(f"the reader cannot read its weights {str(WEIGHTS)!r}: install wellworn again") from error


def _model() -> _Model:
    with _loading:
        return _loaded()
