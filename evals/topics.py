"""Train the model of topics that ships with the package, from the sentences in `sentences/`, which were written for it.

A line begins with `t` (it tells the fact), `c` (it tells that it changed) or `q` (it asks for it). A heading names the topic;
`many` after it says that one has several at a time. Their authors did not see `lives/`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

import wellworn.ingest
from evals.report import Report, Table
from wellworn.core.values import Progress, unwatched
from wellworn.ingest.topics import NONE, vectors_of, without_values, words_of

SENTENCES = Path(__file__).parent / "sentences"
MODEL = Path(wellworn.ingest.__file__).parent / "topics.npz"
ROUNDS, AT_ONCE, RATE, DECAY = 8, 512, 0.05, (5e-6, 2e-6)
LEAST = 3
"""Sentences that a word must be in; those in lower case count again."""
HELD_OUT = 0.15
Values = npt.NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class Sentences:
    """Sentences with the numbers of their topics."""

    texts: list[str]
    kinds: list[str]
    topic: npt.NDArray[np.int64]
    names: list[str]
    single: npt.NDArray[np.bool_]


def read() -> Sentences:
    """All that were written."""
    found: list[tuple[str, str, str]] = []
    many: set[str] = set()
    for file in sorted(SENTENCES.glob("*.txt")):
        topic = NONE
        for line in file.read_text().splitlines():
            if line.startswith("#"):
                topic, *more = line[1:].split()
                many |= {topic} if more == ["many"] else set()
            elif told := re.match(r"([tcq]):\s*(.+)", line):
                found.append((topic, told[1], told[2]))
    names = sorted({topic for topic, _, _ in found})
    number = {name: place for place, name in enumerate(names)}
    return Sentences(
        texts=[text for _, _, text in found],
        kinds=[kind for _, kind, _ in found],
        topic=np.array([number[topic] for topic, _, _ in found]),
        names=names,
        single=np.array([name not in many for name in names]),
    )


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What a model looks at in each sentence: a vector, and numbers of words."""

    vectors: Values
    words: list[npt.NDArray[np.intp]]
    known: int
    """How many words there are numbers for."""

    def some(self, which: npt.NDArray[np.intp]) -> tuple[Values, Values]:
        """Vectors and words of some sentences as rows."""
        rows = np.zeros((len(which), self.known), dtype=np.float32)
        for row, sentence in enumerate(which.tolist()):
            rows[row, self.words[sentence]] = 1 / np.sqrt(max(len(self.words[sentence]), 1))
        return self.vectors[which], rows


def trained(
    seen: Seen, topic: npt.NDArray[np.int64], topics: int, which: npt.NDArray[np.intp], progress: Progress = unwatched
) -> list[Values]:
    """Weights of vectors, of words, and bias of a softmax over topics, by Adam in a fixed order, so that it is the same each time."""
    sizes = ((seen.vectors.shape[1], topics), (seen.known, topics), (topics,))
    learned, mean, spread = ([np.zeros(size, dtype=np.float32) for size in sizes] for _ in range(3))
    random, step, steps = np.random.default_rng(0), 0, ROUNDS * -(-len(which) // AT_ONCE)
    for _ in range(ROUNDS):
        order = random.permutation(which)
        for start in range(0, len(order), AT_ONCE):
            some, step = order[start : start + AT_ONCE], step + 1
            vectors, words = seen.some(some)
            shares = _softmax(vectors @ learned[0] + words @ learned[1] + learned[2])
            shares[np.arange(len(some)), topic[some]] -= 1
            shares /= len(some)
            for place, part in enumerate((vectors, words)):
                adjust(learned, mean, spread, place, part.T @ shares + DECAY[place] * learned[place], step, steps)
            adjust(learned, mean, spread, 2, shares.sum(axis=0), step, steps)
            progress(step, steps)
    return learned


def adjust(
    learned: list[Values], mean: list[Values], spread: list[Values], place: int, slope: Values, step: int, steps: int
) -> None:
    mean[place] += 0.1 * (slope - mean[place])
    spread[place] += 0.01 * (slope**2 - spread[place])
    size = np.sqrt(spread[place] / (1 - 0.99**step)) + 1e-8
    learned[place] -= RATE * (1 - step / steps) * mean[place] / (1 - 0.9**step) / size


def _softmax(logits: Values) -> Values:
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares: Values = odds / odds.sum(axis=1, keepdims=True)
    return shares


def in_lower_case(data: Sentences) -> Sentences:
    """The sentences, and after them each that has a capital once more in lower case, as many people write."""
    places = [place for place, text in enumerate(data.texts) if text[1:] != text[1:].lower()]
    return Sentences(
        texts=data.texts + [data.texts[place].lower() for place in places],
        kinds=data.kinds + [data.kinds[place] for place in places],
        topic=np.concatenate([data.topic, data.topic[places]]),
        names=data.names,
        single=data.single,
    )


def looks(texts: list[str]) -> tuple[Seen, npt.NDArray[np.uint64]]:
    """What the model looks at; and the hashes of the words, in order."""
    hashes = [words_of(without_values(text)) for text in texts]
    kept, count = np.unique(np.concatenate(hashes), return_counts=True)
    kept = kept[count >= LEAST]
    numbers = [np.searchsorted(kept, one[np.isin(one, kept)]).astype(np.intp) for one in hashes]
    return Seen(vectors=vectors_of(texts), words=numbers, known=len(kept)), kept


def run(*, write: bool, progress: Progress) -> Report:
    """How often the model names the topic of a sentence that it was not trained on; or train on all, and write."""
    told = read()
    data, held = told, np.random.default_rng(0).random(len(told.texts)) < HELD_OUT
    if write:
        data, held = in_lower_case(told), np.zeros(0, dtype=bool)
    rows: list[list[str | int | float]] = []
    seen, hashes = looks(data.texts)
    which = np.arange(len(data.texts)) if write else np.flatnonzero(~held)
    learned = trained(seen, data.topic, len(data.names), which, progress)
    if write:
        scale = np.abs(learned[1]).max(axis=1, keepdims=True) / 127 + 1e-9
        saved: dict[str, npt.NDArray[np.generic]] = {
            "names": np.array(data.names),
            "single": data.single,
            "words": hashes,
            "weights": learned[0].astype(np.float16),
            "bias": learned[2].astype(np.float16),
            "word_weights": np.round(learned[1] / scale).astype(np.int8),
            "word_scale": scale,
        }
        np.savez(MODEL, allow_pickle=False, **saved)
    else:
        vectors, words = seen.some(np.flatnonzero(held))
        right = (vectors @ learned[0] + words @ learned[1] + learned[2]).argmax(axis=1) == data.topic[held]
        kinds = np.array(data.kinds)[held]
        rows.append([len(right), *(round(100 * float(right[kinds == kind].mean()), 1) for kind in "tcq")])
    about = {"sentences": len(told.texts), "topics": len(data.names)}
    columns = ["held out", "tells", "changes", "asks"]
    tables = [Table(title="right in per cent", columns=columns, rows=rows)] if rows else []
    return Report(name="topics", about=about, tables=tables)
