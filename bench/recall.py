"""Recall against a bare scan: numpy float32 matrix · vector and argpartition over the same vectors."""

from __future__ import annotations

import numpy as np

from bench.banks import SCOPE, VARIANTS, Banks, Variant, open_memory
from bench.corpus import WIDTH, Corpus, Matrix, unit_vectors
from bench.report import Row, Table
from bench.timing import Times, ratio, take_turns
from wellworn import Memory

K = 5
AIM = 4.0
SAYS = (
    f"k = {K}, every question asked once. `recall` is all but the query's embedding (words, vectors, neighbours, "
    "hydration); `with embedding` adds the static embedder; `after an add` is the first recall after one remember. "
    f"Floor: float32 matvec + argpartition over the same vectors, in turns, BLAS on one thread. "
    "On a busy machine a call of some ms loses its core once and a short floor does not: then trust `cpu_ratio`. "
    f"Aim: ≤ {AIM:g}× at 10k and 100k."
)


def measure(banks: Banks, sizes: list[int], rounds: int) -> Table:
    """p50 and p95 for each kind of bank and each size."""
    rows = [row for variant in VARIANTS for size in sizes for row in _rows(banks, variant, size, rounds)]
    return Table(subject="recall", says=SAYS, rows=rows)


def _rows(banks: Banks, variant: Variant, size: int, rounds: int) -> list[Row]:
    path = banks.copy(variant, size, "recall")
    with open_memory(path) as plain, open_memory(path, static_queries=True) as embedding:
        vectors = _stored_vectors(plain)
        probes = unit_vectors(64, seed=3)
        queries = Corpus(11).queries(rounds + 3)
        # One memory after the other: each holds its own index, and two at once would share the processor's cache.
        times = take_turns(
            {
                "recall": lambda n: plain.recall(queries[n], scope=SCOPE, k=K),
                "floor": lambda n: _scan(vectors, probes[n % len(probes)]),
            },
            rounds=rounds,
        )
        plain_row = _row("recall", variant, size, times)
        times = take_turns(
            {
                "with embedding": lambda n: embedding.recall(queries[n], scope=SCOPE, k=K),
                "floor": lambda n: _scan(vectors, probes[n % len(probes)]),
            },
            rounds=rounds,
        )
        embedding_row = _row("with embedding", variant, size, times)
        added = _after_adds(plain, queries, vectors, probes[0], max(10, rounds // 5))
    path.unlink()
    return [plain_row, embedding_row, _row("after an add", variant, size, added)]


def _after_adds(memory: Memory, queries: list[str], vectors: Matrix, probe: Matrix, rounds: int) -> dict[str, Times]:
    texts = Corpus(12).texts(rounds + 3)
    return take_turns(
        {
            "after an add": lambda n: memory.recall(queries[n], scope=SCOPE, k=K),
            "floor": lambda _: _scan(vectors, probe),
        },
        rounds=rounds,
        before=lambda n: memory.remember(texts[n], scope=SCOPE),
    )


def _row(call: str, variant: Variant, size: int, times: dict[str, Times]) -> Row:
    found, floor = times[call], times["floor"]
    return {
        "bank": variant,
        "entries": size,
        "call": call,
        "p50_ms": found.p50_ms,
        "p95_ms": found.p95_ms,
        "cpu_ms": found.cpu_p50_ms,
        "floor_p50_ms": floor.p50_ms,
        "floor_cpu_ms": floor.cpu_p50_ms,
        "ratio": ratio(found, floor),
        "cpu_ratio": found.cpu_p50_ms / floor.cpu_p50_ms,
    }


def _scan(vectors: Matrix, query: Matrix) -> object:
    scores = vectors @ query
    return np.argpartition(scores, -K)[-K:]


def _stored_vectors(memory: Memory) -> Matrix:
    """A copy of the vectors the memory searches, in the same order and layout."""
    memory.recall("warm", scope=SCOPE, k=1)
    with memory.engine.searcher._ram.bank(SCOPE.partitions()) as (bank, _):
        copy: Matrix = np.concatenate([partition.vectors for partition in bank.partitions]).reshape(-1, WIDTH)
    return copy
