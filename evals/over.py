"""Train the model that knows when a statement tells that something is over, from the triples in `sentences/over/`.

A line has an old statement, one that ends it, and one that sounds alike and leaves it true. The sentences of `evals topics`
are further examples of what ends nothing. Their authors saw neither `lives/` nor each other's.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import wellworn.ingest
from evals.life import LIVES
from evals.report import Report, Table
from evals.topics import SENTENCES, adjust
from evals.topics import read as read_topics
from wellworn.core.values import Progress, unwatched
from wellworn.ingest.over import Over, grams_of
from wellworn.ingest.statement import read
from wellworn.ingest.topics import likeness, vectors_of

MODEL = Path(wellworn.ingest.__file__).parent / "over.npz"
OTHERS, ROUNDS, AT_ONCE, DECAY = 15_000, 12, 256, 5e-6
WRITTEN = 4.0
"""How much a sentence of a triple counts, where one of `topics` counts 1."""
LEAST = 3
"""Sentences that a word or a pair must be in; those in lower case count again."""
DOUBT = 5.0
"""How much a pair counts that sounds alike and ends nothing: in life they are many more than in the triples."""
EAGER = 0.35
"""How much sooner than the fitted pairs say a text ends another: chosen on 140 further pairs."""
BY_CHANCE = 2
PARTS, HELD_OUT = 3, 0.2
Values = npt.NDArray[np.float32]
Triple = tuple[str, str, str]


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What the model looks at in some sentences."""

    vectors: Values
    grams: list[npt.NDArray[np.uint64]]


def triples() -> list[Triple]:
    """All that were written."""
    lines = [line for file in sorted((SENTENCES / "over").glob("*.txt")) for line in file.read_text().splitlines()]
    return [(old, over, stays) for old, over, stays in (line.split(" | ") for line in lines)]


def unchanged() -> list[tuple[str, str]]:
    """The pairs of `lives/` that rules may be fitted to, and in which nothing changes."""
    files = (tomllib.loads((LIVES / f"{name}.toml").read_text()) for name in ("pairs", "typed", "longer"))
    families = (family for file in files for family in file["family"] if family["part"] == "tune")
    return [(old, new) for family in families if not family["changed"] for old, new in family["pairs"]]


def looks(texts: Sequence[str]) -> Seen:
    return Seen(vectors=vectors_of(texts), grams=[grams_of(text) for text in texts])


def trained(written: Sequence[Triple], others: Seen, progress: Progress) -> dict[str, npt.NDArray[Any]]:
    """The model of sentences, by Adam in a fixed order, so that it is the same each time."""
    told = [(text, label) for old, over, stays in written for text, label in ((over, 1), (stays, 0), (old, 0))]
    told += [(text.lower(), label) for text, label in told if text != text.lower()]
    own = looks([text for text, _ in told])
    vectors = np.vstack([own.vectors, others.vectors])
    labels = np.array([label for _, label in told] + [0] * len(others.grams), dtype=np.float32)
    counts = np.where(np.arange(len(labels)) < len(told), WRITTEN, 1.0).astype(np.float32)
    found, often = np.unique(np.concatenate([*own.grams, *others.grams]), return_counts=True)
    known = found[often >= LEAST]
    numbers = [np.searchsorted(known, one[np.isin(one, known)]) for one in (*own.grams, *others.grams)]
    shares = [1 / np.sqrt(max(1, len(one))) for one in numbers]
    weights = np.zeros(vectors.shape[1] + len(known) + 1, dtype=np.float32)
    mean, spread, width = np.zeros_like(weights), np.zeros_like(weights), vectors.shape[1]
    random, step, steps = np.random.default_rng(0), 0, ROUNDS * -(-len(labels) // AT_ONCE)
    for _ in range(ROUNDS):
        order = random.permutation(len(labels))
        for start in range(0, len(order), AT_ONCE):
            some, step = order[start : start + AT_ONCE], step + 1
            sizes = [len(numbers[one]) for one in some]
            places = np.concatenate([numbers[one] for one in some]) + width
            row = np.repeat(np.arange(len(some)), sizes)
            share = np.repeat([shares[one] for one in some], sizes).astype(np.float32)
            score = vectors[some] @ weights[:width] + weights[-1]
            np.add.at(score, row, share * weights[places])
            wrong = counts[some] * (1 / (1 + np.exp(-score)) - labels[some]) / len(some)
            slope = np.float32(DECAY) * weights
            slope[:width] += vectors[some].T @ wrong
            np.add.at(slope, places, share * wrong[row])
            slope[-1] += wrong.sum()
            adjust([weights], [mean], [spread], 0, slope, step, steps)
            progress(step, steps)
    return {
        "vector": weights[:width].astype(np.float16),
        "grams": known,
        "gram_weights": weights[width:-1].astype(np.float16),
        "bias": weights[-1],
        "often": often[often >= LEAST].astype(np.uint16),
        "sentences": np.array(len(labels)),
        "pair": np.zeros(5, dtype=np.float32),
    }


def parts_of(old: str, new: str, model: Over) -> tuple[float, frozenset[str], frozenset[str], float]:
    before, after = read(old), read(new)
    return model.told_by(after.said), before.content, after.content, likeness(before.vectors[0], after.vectors[0])


def of_pair(old: str, new: str, model: Over) -> Values:
    return model.looks_at(*parts_of(old, new, model))


def pair_weights(
    written: Sequence[Triple], texts: Sequence[str], others: Seen, whole: Over, progress: Progress
) -> Values:
    """The model of pairs that share a word, a logistic one: of sentences that the model of sentences did not see. Some pairs
    share no more than a word by chance."""
    having = dict[str, list[str]]()
    for text in texts:
        for word in read(text).content:
            having.setdefault(word, []).append(text)
    random = np.random.default_rng(1)
    pairs = [(old, new, whole, False, DOUBT) for old, new in unchanged()]
    for part in range(PARTS):
        kept = [one for place, one in enumerate(written) if place % PARTS != part]
        model, held = Over(trained(kept, others, progress)), written[part::PARTS]
        for (old, over, stays), (_, another, _) in zip(held, [*held[1:], held[0]], strict=True):
            pairs += [
                (old, over, model, True, 1.0),
                (old, stays, model, False, DOUBT),
                (old, another, model, False, 1.0),
            ]
            chance = [one for word in sorted(read(over).content) for one in having.get(word, ())]
            for place in random.integers(0, max(1, len(chance)), BY_CHANCE if chance else 0).tolist():
                pairs.append((chance[place], over, model, False, 1.0))
    pairs = [one for one in pairs if not read(one[0]).content.isdisjoint(read(one[1]).content)]
    looked = np.array([of_pair(old, new, model) for old, new, model, _, _ in pairs], dtype=np.float64)
    label, each = (np.array(one, dtype=np.float64) for one in [*zip(*pairs, strict=True)][3:])
    weights = np.zeros(looked.shape[1])
    for _ in range(30):  # Newton's method
        share = 1 / (1 + np.exp(-looked @ weights))
        slope = looked.T @ (each * (share - label)) + 0.01 * weights
        curve = (looked * (each * share * (1 - share))[:, None]).T @ looked + 0.01 * np.eye(len(weights))
        weights -= np.linalg.solve(curve, slope)
    weights[0] += EAGER
    return weights.astype(np.float32)


def run(*, write: bool, progress: Progress = unwatched) -> Report:
    """How often it is right about triples that it was not trained on; or train on all, and write."""
    written, told = triples(), read_topics()
    random = np.random.default_rng(0)
    held = random.random(len(written)) < (0 if write else HELD_OUT)
    holding = np.flatnonzero(np.array(told.kinds) != "c")
    texts = [told.texts[one] for one in sorted(random.permutation(holding)[:OTHERS].tolist())]
    others = looks(texts)
    kept = [one for one, out in zip(written, held, strict=True) if not out]
    saved = trained(kept, others, progress)
    saved["pair"] = pair_weights(kept, texts, others, Over(saved), progress)
    if write:
        np.savez(MODEL, allow_pickle=False, **saved)
    model, rows = Over(saved), list[list[str | int | float]]()
    for name, place in (("ends it", 1), ("sounds alike", 2)):
        pairs = [(one[0], one[place]) for one, out in zip(written, held, strict=True) if out]
        found = [model.probability(*parts_of(old, new, model)) for old, new in pairs]
        rows.append(
            [name, len(pairs), round(100 * float(np.mean(np.array(found) >= 0.4)), 1)] if pairs else [name, 0, 0]
        )
    columns = ["the new statement", "pairs", "taken for an end"]
    tables = [] if write else [Table(title="in per cent, held out", columns=columns, rows=rows)]
    return Report(name="over", about={"triples": len(written), "words and pairs": len(saved["grams"])}, tables=tables)
