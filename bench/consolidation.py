"""Consolidating a bank of strategies: seconds, memory, and how both grow with the bank.

Each size runs in a process of its own, so that its memory is its own. The floor is the plain product of the vectors
with themselves, all of it, in the same process.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from bench.corpus import WIDTH, Matrix
from bench.report import Row, Table
from wellworn import Memory, Scope
from wellworn.tasks.keeper import Keeper

T = TypeVar("T")

SCOPE = Scope(tenant="bench", agent="solver")
DUPLICATES = (0.05, 0.2)
"""Shares of entries that repeat an earlier one in slightly other words; the second at one size only."""
FLOOR_BLOCKS = 16
MANY_AT = 10_000
"""That size."""
WORDS = """
    request page form token field login order price cart filter search list header cookie retry delay batch export
    import cache index table query report account user admin role menu button link date sort
    """.split()  # noqa: SIM905  a list of words reads better than a list of strings
SAYS = (
    f"d = {WIDTH}, one domain, near-duplicates as the column says, SQLite, durability full. `first` is the first run "
    "over a bank that was never consolidated, writing included; `again` the next, which finds nothing to do. The floor "
    "is the plain product of the vectors with themselves; `added_mb` is peak memory above that before the run."
)


def measure(folder: Path, sizes: list[int]) -> Table:
    """One row a size."""
    rows = []
    cases = [(size, DUPLICATES[0]) for size in sizes]
    cases += [(size, DUPLICATES[1]) for size in sizes if size == MANY_AT]
    for size, share in cases:
        path = folder / f"strategies-{size}-{share}.db"
        told = subprocess.run(
            [sys.executable, "-m", "bench.consolidation", str(path), str(size), str(share)],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
        rows.append(json.loads(told.stdout))
        path.unlink()
    return Table(subject="consolidation", says=SAYS, rows=rows)


def vectors(size: int, share: float) -> Matrix:
    """Unit vectors: most of them random, some close to an earlier one."""
    dice = np.random.default_rng(size)
    own = int(size * (1 - share))
    made = dice.standard_normal((own, WIDTH)).astype(np.float32)
    near = made[dice.integers(0, own, size - own)] + 0.05 * dice.standard_normal((size - own, WIDTH)).astype(np.float32)
    both = np.concatenate([made, near.astype(np.float32)])
    return np.asarray(both / np.linalg.norm(both, axis=1, keepdims=True), dtype=np.float32)


class PooledEmbedder:
    """Hands out the vectors of a bank in order, at no cost worth counting."""

    def __init__(self, pool: Matrix) -> None:
        self._pool = pool
        self._next = 0

    @property
    def name(self) -> str:
        return "bench:pooled"

    @property
    def width(self) -> int:
        return WIDTH

    def embed(self, texts: Sequence[str]) -> Matrix:
        places = np.arange(self._next, self._next + len(texts)) % len(self._pool)
        self._next += len(texts)
        return np.asarray(self._pool[places])

    def embed_query(self, text: str) -> Matrix:
        return np.asarray(self.embed([text])[0])


def fill(path: Path, size: int, share: float) -> None:
    """A bank of strategies with these vectors."""
    words = np.random.default_rng(size + 1).integers(0, len(WORDS), (size, 8))
    texts = [" ".join([*(WORDS[place] for place in row), _letters(number)]) for number, row in enumerate(words)]
    with Memory.open(
        path, embedder=PooledEmbedder(vectors(size, share)), durability="normal", background=False
    ) as memory:
        memory.remember_many(texts, scope=SCOPE, kind="strategy", confidence=0.5, tags=["domain:web", "domain:web.*"])


def _letters(number: int) -> str:
    """A word of its own for each number: a number would be read as the name of something."""
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))


def run(path: Path, size: int, share: float) -> Row:
    with Memory.open(path, embedder=PooledEmbedder(vectors(10, 0.5)), background=False) as memory:
        keeper = Keeper(memory)
        before = _peak_mb()
        first_cpu, first_s, done = _timed(lambda: keeper.consolidate(scope=SCOPE))
        peak = _peak_mb()
        again_cpu, again_s, _ = _timed(lambda: keeper.consolidate(scope=SCOPE))
    made = vectors(size, share)
    floor_cpu, floor_s = _floor(made)
    return {
        "entries": size,
        "duplicates": share,
        "first_s": first_s,
        "first_cpu_s": first_cpu,
        "again_s": again_s,
        "again_cpu_s": again_cpu,
        "floor_s": floor_s,
        "floor_cpu_s": floor_cpu,
        "ratio": first_cpu / floor_cpu,
        "again_ratio": again_cpu / floor_cpu,
        "added_mb": peak - before,
        "peak_mb": peak,
        "merged": done.counts["merge"],
    }


def _floor(made: Matrix) -> tuple[float, float]:
    """CPU and wall seconds of the whole product; of a large bank a part is computed, and scaled up."""
    starts = range(0, len(made), 1024)[:FLOOR_BLOCKS]
    scale = len(made) / min(len(made), 1024 * len(starts))

    def multiply() -> None:
        for start in starts:
            made[start : start + 1024] @ made.T

    cpu, wall, _ = _timed(multiply)
    return cpu * scale, wall * scale


def _timed(call: Callable[[], T]) -> tuple[float, float, T]:
    wall, cpu = time.perf_counter(), time.process_time()
    value = call()
    return time.process_time() - cpu, time.perf_counter() - wall, value


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(path: Path, size: int, share: float) -> None:
    """Fill the bank in a process of its own, so that filling does not count as memory of the run."""
    script = "import sys; from pathlib import Path; from bench.consolidation import fill; "
    script += "fill(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))"
    subprocess.run([sys.executable, "-c", script, str(path), str(size), str(share)], check=True)
    print(json.dumps(run(path, size, share)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
