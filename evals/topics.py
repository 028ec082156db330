"""Train the model of topics that ships with the package, from the sentences in `sentences/`, which were written for it.

A line begins with `t` (it tells the fact), `c` (it tells that it changed) or `q` (it asks for it). A heading names the topic;
`many` after it says that one has several at a time. The lives of `evals life` have other authors and share no sentence with them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

import wellworn.ingest
from evals.report import Report, Table
from wellworn.ingest.topics import NONE, embedder, vectors_of

SENTENCES = Path(__file__).parent / "sentences"
MODEL = Path(wellworn.ingest.__file__).parent / "topics.npz"
STEPS, RATE, DECAY = 300, 0.1, 3e-6
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


def trained(vectors: Values, topic: npt.NDArray[np.int64], topics: int) -> tuple[Values, Values]:
    """Weights and bias of a softmax over topics: Adam on all sentences at once, so that it is the same each time."""
    learned = [np.zeros((vectors.shape[1], topics), dtype=np.float32), np.zeros(topics, dtype=np.float32)]
    mean, spread = ([np.zeros_like(part) for part in learned] for _ in range(2))
    wanted = np.eye(topics, dtype=np.float32)[topic]
    for step in range(1, STEPS + 1):
        error = (_softmax(vectors @ learned[0] + learned[1]) - wanted) / len(topic)
        for place, slope in enumerate((vectors.T @ error + DECAY * learned[0], error.sum(axis=0))):
            mean[place] += 0.1 * (slope - mean[place])
            spread[place] += 0.001 * (slope**2 - spread[place])
            size = np.sqrt(spread[place] / (1 - 0.999**step)) + 1e-9
            learned[place] -= RATE * mean[place] / (1 - 0.9**step) / size
    return learned[0], learned[1]


def _softmax(logits: Values) -> Values:
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares: Values = odds / odds.sum(axis=1, keepdims=True)
    return shares


LOOKS: dict[str, Callable[[list[str]], Values]] = {"text": vectors_of, "vector": lambda texts: embedder().embed(texts)}
"""What each model looks at: a text, or its stored vector alone."""


def run(*, write: bool) -> Report:
    """How often each model names the topic of a sentence that it was not trained on; or train on all, and write."""
    data = read()
    held = np.random.default_rng(0).random(len(data.texts)) < HELD_OUT
    saved: dict[str, npt.NDArray[np.generic]] = {"names": np.array(data.names), "single": data.single}
    rows = []
    for name, look in LOOKS.items():
        vectors = look(data.texts)
        if write:
            weights, bias = trained(vectors, data.topic, len(data.names))
            saved |= {f"{name}_weights": weights.astype(np.float16), f"{name}_bias": bias.astype(np.float16)}
            continue
        weights, bias = trained(vectors[~held], data.topic[~held], len(data.names))
        right = (vectors[held] @ weights + bias).argmax(axis=1) == data.topic[held]
        kinds = np.array(data.kinds)[held]
        rows.append([name, len(right), *(round(100 * right[kinds == kind].mean(), 1) for kind in "tcq")])
    if write:
        np.savez(MODEL, allow_pickle=False, **saved)
    about = {"sentences": len(data.texts), "topics": len(data.names)}
    columns = ["looks at", "held out", "tells", "changes", "asks"]
    return Report(name="topics", about=about, tables=[Table(title="right in per cent", columns=columns, rows=rows)])
