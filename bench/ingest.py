"""Batches: short entries per second through `remember_many`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median

from bench.banks import SCOPE, Banks, SeededEmbedder
from bench.corpus import Corpus, Matrix
from bench.report import Row, Table
from wellworn import Memory

AIM = 5_000
SAYS = (
    f"One call of `remember_many`, durability full; time inside the embedder is taken off. Aim: ≥ {AIM:,} entries/s. "
    "`cpu_us` is CPU per entry, which a busy machine does not change much."
)


class TimedEmbedder(SeededEmbedder):
    """Counts the time its embedding takes."""

    def __init__(self) -> None:
        super().__init__()
        self.spent_s = 0.0

    def embed(self, texts: Sequence[str]) -> Matrix:
        started = time.perf_counter()
        try:
            return super().embed(texts)
        finally:
            self.spent_s += time.perf_counter() - started


def measure(banks: Banks, sizes: list[int], batch: int, repeats: int) -> Table:
    """Into an empty file, and into files that hold something already."""
    rows = [_row(banks, size, batch, repeats) for size in [0, *sizes]]
    return Table(subject="ingest", says=SAYS, rows=rows)


def _row(banks: Banks, size: int, batch: int, repeats: int) -> Row:
    runs = [_run(banks, size, batch, seed) for seed in range(repeats)]
    return {
        "entries_before": size,
        "batch": batch,
        "per_s": round(batch / median(wall for wall, _ in runs)),
        "best_per_s": round(batch / min(wall for wall, _ in runs)),
        "cpu_us": 1e6 * median(cpu for _, cpu in runs) / batch,
    }


def _run(banks: Banks, size: int, batch: int, seed: int) -> tuple[float, float]:
    path = banks.copy("notes", size, f"ingest-{seed}") if size else banks.scratch / f"ingest-{seed}-empty.db"
    texts = Corpus(31 + seed).texts(batch)
    embedder = TimedEmbedder()
    with Memory.open(path, embedder=embedder) as memory:
        wall, cpu = time.perf_counter(), time.process_time()
        memory.remember_many(texts, scope=SCOPE)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    path.unlink()
    return wall - embedder.spent_s, cpu
