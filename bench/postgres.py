"""`python -m bench.postgres URL [--entries 100000]`: recall and ingest in Postgres against bare pgvector and a bare COPY.

The same vectors, in the same run, taking turns. The schema of the URL must be new. Vectors lie in clusters, as those of texts
do. A recall includes its words, its filters, its log and the texts of its hits; the bare query has ten numbers as its answer.
"""

from __future__ import annotations

import argparse
import os
import struct
import time
from collections.abc import Sequence

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import psycopg
from evals.report import Report, Table
from rich.console import Console

from bench.corpus import WIDTH, Corpus, Matrix
from bench.timing import COLUMNS, Call, compared, take_turns
from wellworn import Memory, Scope
from wellworn.search.engines import StoreIndexes

SCOPE = Scope(tenant="bench", user="ada")
CLUSTERS = 500
BATCH = 10_000


class ClusteredEmbedder:
    """Unit vectors around some centres, one after another."""

    name = "bench:clustered"
    width = WIDTH

    def __init__(self, seed: int) -> None:
        self._dice = np.random.default_rng(seed)
        self._centres = np.random.default_rng(1).standard_normal((CLUSTERS, WIDTH), dtype=np.float32)

    def embed(self, texts: Sequence[str]) -> Matrix:
        near = self._centres[self._dice.integers(0, CLUSTERS, len(texts))]
        rows: Matrix = near + np.float32(0.5) * self._dice.standard_normal(near.shape, dtype=np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return rows

    def embed_query(self, text: str) -> Matrix:
        found: Matrix = self.embed([text])[0]
        return found


def copied(db: psycopg.Connection[tuple[object, ...]], texts: Sequence[str], vectors: Matrix) -> float:
    """Seconds that a bare COPY of texts and vectors takes."""
    db.execute("DROP TABLE IF EXISTS bare; CREATE TABLE bare (no BIGINT PRIMARY KEY, text TEXT, vector vector(256))")
    head, began = struct.pack(">HH", WIDTH, 0), time.perf_counter()
    with db.cursor().copy("COPY bare FROM STDIN (FORMAT binary)") as copy:
        copy.set_types(["int8", "text", "bytea"])
        for number, (text, vector) in enumerate(zip(texts, vectors.astype(">f4"), strict=True)):
            copy.write_row((number, text, head + vector.tobytes()))
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.postgres", description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=100)
    options = parser.parse_args()
    texts = Corpus(7).texts(options.entries)
    bare = options.url.split("&schema=")[0].split("?schema=")[0]
    with psycopg.connect(bare, autocommit=True) as db:
        db.execute("CREATE EXTENSION IF NOT EXISTS vector")
        began = time.perf_counter()
        with Memory.open(options.url, embedder=ClusteredEmbedder(2), learning="off", background=False) as memory:
            for start in range(0, len(texts), BATCH):
                memory.remember_many(texts[start : start + BATCH], scope=SCOPE)
            stored = time.perf_counter() - began
            began = time.perf_counter()
            if isinstance(memory.engine.vectors, StoreIndexes):
                memory.engine.vectors.make(SCOPE.home())
            indexed = time.perf_counter() - began
        plain = copied(db, texts, ClusteredEmbedder(2).embed(texts))
        db.execute("SET max_parallel_maintenance_workers = 0")  # as the store makes its own
        db.execute("CREATE INDEX ON bare USING hnsw (vector vector_ip_ops)")
        db.execute("VACUUM ANALYZE")
        probes = ClusteredEmbedder(3).embed([""] * (options.rounds + 3))
        asked = [f"[{','.join(map(str, probe.tolist()))}]" for probe in probes]
        query = "SELECT no FROM bare ORDER BY vector <#> %s::vector LIMIT 10"
        floor: Call = lambda n: db.execute(query, (asked[n],)).fetchall()  # noqa: E731
        rows = []
        for name, ram_mb in (("from memory", 2000), ("in the database", 10)):
            queries, embedder = Corpus(11).queries(options.rounds + 3), ClusteredEmbedder(3)
            with Memory.open(options.url, embedder=embedder, learning="off", background=False, ram_mb=ram_mb) as memory:
                began = time.perf_counter()
                memory.recall("warm", scope=SCOPE)
                first = time.perf_counter() - began
                ask: Call = lambda n, m=memory, q=queries: m.recall(q[n], scope=SCOPE, k=5)  # type: ignore[misc] # noqa: E731
                times = take_turns({"call": ask, "floor": floor}, rounds=options.rounds)
                wall = times["call"].row[0] / times["floor"].row[0]
                rows += [(*compared((name,), times["call"], times["floor"])[:-1], round(wall, 2), round(first, 1))]
        rows.append(("bare query", *times["floor"].row, 1.0, ""))
    columns = ("recall", *COLUMNS, "p50 to bare", "first recall s")
    about = {
        "entries": options.entries,
        "texts/s": len(texts) / stored,
        "COPY/s": len(texts) / plain,
        "index s": indexed,
    }
    report = Report(
        name="postgres", about=about, tables=[Table(title="recall", columns=columns, rows=rows, form=".3g")]
    )
    report.print(Console(width=150))


if __name__ == "__main__":
    main()
