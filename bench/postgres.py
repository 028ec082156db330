"""`python -m bench.postgres URL [--sizes 1000,10000]`: recall and ingest in Postgres against bare pgvector and a bare COPY.

The same vectors, in the same run, taking turns. Each size has a schema, which must be new. Vectors lie in clusters, as those of texts
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
from bench.timing import Call, take_turns
from wellworn import Memory, Scope
from wellworn.search.engines import StoreIndexes

SCOPE = Scope(tenant="bench", user="ada")
CLUSTERS = 500
BATCH = 10_000
BARE = """
SELECT entry FROM bench_{entries}.index_records WHERE partition = 1 AND vector_dims(vector) = {width}
ORDER BY vector::vector({width}) <#> %s::vector({width}) LIMIT 10
"""
"""The bare query, along the same index."""


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


class Sizes:
    """What is measured at each number of entries, each in a schema of its own."""

    def __init__(self, url: str, db: psycopg.Connection[tuple[object, ...]], rounds: int) -> None:
        self._url, self._db, self._rounds, self._texts = url, db, rounds, Corpus(7)

    def _opened(self, entries: int, seed: int, ram_mb: int) -> Memory:
        url = f"{self._url}{'&' if '?' in self._url else '?'}schema=bench_{entries}"
        return Memory.open(url, embedder=ClusteredEmbedder(seed), learning="off", background=False, ram_mb=ram_mb)

    def stored(self, entries: int) -> tuple[object, ...]:
        """Seconds that the entries take: stored, indexed, and copied as they are."""
        texts, began = self._texts.texts(entries), time.perf_counter()
        with self._opened(entries, 2, 2000) as memory:
            for start in range(0, entries, BATCH):
                memory.remember_many(texts[start : start + BATCH], scope=SCOPE)
            stored = time.perf_counter() - began
            began = time.perf_counter()
            if isinstance(memory.engine.vectors, StoreIndexes):
                memory.engine.vectors.make(SCOPE.home())
            indexed = time.perf_counter() - began
        plain = copied(self._db, texts, ClusteredEmbedder(2).embed(texts))
        self._db.execute(
            f"VACUUM ANALYZE bench_{entries}.entries, bench_{entries}.index_records, bench_{entries}.links"
        )
        return entries, entries / stored, entries / plain, indexed

    def asked(self, entries: int) -> list[tuple[object, ...]]:
        """Recalls from memory and in the database, in turns with a bare query; then adding and forgetting one."""
        probes = ClusteredEmbedder(3).embed([""] * (self._rounds + 3))
        asked = [f"[{','.join(map(str, probe.tolist()))}]" for probe in probes]
        query, rows = BARE.format(entries=entries, width=WIDTH), list[tuple[object, ...]]()
        floor: Call = lambda n: self._db.execute(query, (asked[n],)).fetchall()  # noqa: E731
        for name, ram_mb in (("memory", 4000), ("database", 1)):
            queries = Corpus(11).queries(self._rounds + 3)
            with self._opened(entries, 3, ram_mb) as memory:
                began = time.perf_counter()
                memory.recall("warm", scope=SCOPE)
                first = time.perf_counter() - began
                ask: Call = lambda n, m=memory, q=queries: m.recall(q[n], scope=SCOPE, k=5)  # type: ignore[misc] # noqa: E731
                times = take_turns({"call": ask, "floor": floor}, rounds=self._rounds)
                new: list[str] = []
                add: Call = lambda n, m=memory, i=new, e=name: i.extend(  # type: ignore[misc] # noqa: E731
                    m.remember(f"Note {n} of {e}.", scope=SCOPE)
                )
                forget: Call = lambda n, m=memory, i=new: m.forget(ids=[i[n]], scope=SCOPE)  # type: ignore[misc] # noqa: E731
                added, gone = (take_turns({"": call}, rounds=20)[""].row[0] for call in (add, forget))
            call, bare = times["call"].row, times["floor"].row
            rows.append((entries, name, call[0], call[2], bare[0], call[0] / bare[0], first, added, gone))
        return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.postgres", description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--rounds", type=int, default=100)
    options = parser.parse_args()
    ingest, recalls = list[tuple[object, ...]](), list[tuple[object, ...]]()
    with psycopg.connect(options.url, autocommit=True) as db:
        db.execute("CREATE EXTENSION IF NOT EXISTS vector")
        sizes = Sizes(options.url, db, options.rounds)
        for entries in map(int, options.sizes.split(",")):
            ingest.append(sizes.stored(entries))
            recalls += sizes.asked(entries)
    asked = ("entries", "from", "p50 ms", "CPU ms", "bare ms", "ratio", "first s", "add ms", "forget ms")
    tables = [
        Table(title="ingest", columns=("entries", "texts/s", "COPY/s", "index s"), rows=ingest, form=".3g"),
        Table(title="recall", columns=asked, rows=recalls, form=".3g"),
    ]
    Report(name="postgres", about={}, tables=tables).print(Console(width=150))


if __name__ == "__main__":
    main()
