"""`python -m bench.postgres URL [--sizes 1000,10000]`: recall and ingest in Postgres against bare pgvector and a bare COPY.

The same vectors, in the same run, taking turns. Each size has a schema; one that is there is measured as it is. Vectors lie in
clusters, as those of texts do. A recall includes its words, its filters, its log and the texts of its hits; the bare query has ten
numbers as its answer. COPY gets all rows that were stored, as bytes: into tables without indexes, with the same indexes, and
into those of a new store, which also have references.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

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
SELECT entry FROM bench_{}.index_records WHERE partition = 1 AND vector_dims(vector) = {width} ORDER BY {} LIMIT 10
"""
TABLES = ("partitions", "entries", "index_records", "entry_tags", "links", "records")
_COPY_OUT, _COPY_IN = "COPY {}.{} TO STDOUT (FORMAT binary)", "COPY bench_0.{} FROM STDIN (FORMAT binary)"
ORDERS = {"off": "vector::vector({0}) <#> %s::vector({0})", "on": "vector::halfvec({0}) <-> %s::halfvec({0})"}
"""By halfvec: along the same index as a recall."""
EXACT = "vector <#> %s::vector"


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


class Sizes:
    """What is measured at each number of entries, each in a schema of its own."""

    def __init__(self, url: str, db: psycopg.Connection[tuple[object, ...]], rounds: int) -> None:
        self._url, self._db, self._rounds, self._texts = url, db, rounds, Corpus(7)
        self._vectors = ClusteredEmbedder(3).embed([""] * (rounds + 3))
        self._probes = [f"[{','.join(map(str, vector.tolist()))}]" for vector in self._vectors]

    def _opened(self, entries: int, seed: int, ram_mb: int, halfvec: str = "off") -> Memory:
        url = f"{self._url}{'&' if '?' in self._url else '?'}schema=bench_{entries}&halfvec={halfvec}"
        return Memory.open(url, embedder=ClusteredEmbedder(seed), learning="off", background=False, ram_mb=ram_mb)

    def stored(self, entries: int) -> tuple[object, ...]:
        """How many entries are stored in a second, how many of them COPY brings into tables of three kinds, and the share
        of the last that is."""
        texts, began = self._texts.texts(entries), time.perf_counter()
        with self._opened(entries, 2, 2000) as memory:
            for start in range(0, entries, BATCH):
                memory.remember_many(texts[start : start + BATCH], scope=SCOPE)
            stored = time.perf_counter() - began
        copied = self._copied(f"bench_{entries}")
        self._db.execute(
            f"VACUUM ANALYZE bench_{entries}.entries, bench_{entries}.index_records, bench_{entries}.links"
        )
        return entries, entries / stored, *(entries / seconds for seconds in copied), copied[-1] / stored

    def _copied(self, schema: str) -> list[float]:
        """Seconds that a bare COPY of all rows takes."""
        seconds = []
        with tempfile.TemporaryDirectory() as folder:
            for table in TABLES:
                with (
                    Path(folder, table).open("wb") as file,
                    self._db.cursor().copy(_COPY_OUT.format(schema, table)) as out,
                ):
                    file.writelines(out)
            for like in ("", "INCLUDING INDEXES", None):
                self._db.execute("DROP SCHEMA IF EXISTS bench_0 CASCADE")
                if like is None:
                    self._opened(0, 2, 100).close()
                else:
                    tables = (f"CREATE TABLE bench_0.{table} (LIKE {schema}.{table} {like})" for table in TABLES)
                    self._db.execute(f"CREATE SCHEMA bench_0; {'; '.join(tables)}")
                began = time.perf_counter()
                for table in TABLES:
                    with Path(folder, table).open("rb") as file, self._db.cursor().copy(_COPY_IN.format(table)) as into:
                        while block := file.read(1_000_000):
                            into.write(block)
                seconds.append(time.perf_counter() - began)
        return seconds

    def indexed(self, entries: int, halfvec: str) -> tuple[object, ...]:
        """The index of vectors: its size, the seconds it takes, and which share of the ten nearest it names."""
        name = f"bench_{entries}.near_1_{WIDTH}"
        self._db.execute(f"DROP INDEX IF EXISTS {name}")
        with self._opened(entries, 2, 2000, halfvec) as memory:
            began = time.perf_counter()
            if isinstance(memory.engine.vectors, StoreIndexes):
                memory.engine.vectors.make(SCOPE.home())
            seconds = time.perf_counter() - began
            named = [memory.engine.store.nearest(1, vector, 10) or () for vector in self._vectors]
        ((size,),) = self._db.execute(f"SELECT pg_relation_size('{name}') / 1e6").fetchall()
        exact = [{no for (no,) in self._nearest(entries, EXACT, n)} for n in range(len(named))]
        shared = [len(best.intersection(some)) / 10 for best, some in zip(exact, named, strict=True)]
        return entries, halfvec, size, seconds, float(np.mean(shared))

    def _nearest(self, entries: int, order: str, number: int) -> list[tuple[object, ...]]:
        """What the bare query answers."""
        query = BARE.format(entries, order.format(WIDTH), width=WIDTH)
        return self._db.execute(query, (self._probes[number],)).fetchall()

    def asked(self, entries: int, halfvec: str, ram_mb: int) -> tuple[object, ...]:
        """Recalls from memory or in the database, new ones and always the same, in turns with a bare query; then adding and
        forgetting one."""
        name, new = "database" if ram_mb == 1 else "memory", list[str]()
        queries = Corpus(11).queries(self._rounds + 3)
        with self._opened(entries, 3, ram_mb) as memory:
            began = time.perf_counter()
            memory.recall("warm", scope=SCOPE)
            first = time.perf_counter() - began
            ask: Call = lambda n: memory.recall(queries[n], scope=SCOPE, k=5)  # noqa: E731
            floor: Call = lambda n: self._nearest(entries, ORDERS[halfvec], n)  # noqa: E731
            again: Call = lambda _: memory.recall("warm", scope=SCOPE)  # noqa: E731
            times = take_turns({"call": ask, "again": again, "floor": floor}, rounds=self._rounds)
            add: Call = lambda n: new.extend(memory.remember(f"Note {n} of {name}.", scope=SCOPE))  # noqa: E731
            forget: Call = lambda n: memory.forget(ids=[new[n]], scope=SCOPE)  # noqa: E731
            added, gone = (take_turns({"": call}, rounds=20)[""].row[0] for call in (add, forget))
        call, bare = times["call"].row, times["floor"].row
        repeated = times["again"].row[0]
        return entries, halfvec, name, call[0], call[2], repeated, bare[0], call[0] / bare[0], first, added, gone


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.postgres", description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--rounds", type=int, default=100)
    options = parser.parse_args()
    ingest, indexes, recalls = list[tuple[object, ...]](), list[tuple[object, ...]](), list[tuple[object, ...]]()
    with psycopg.connect(options.url, autocommit=True) as db:
        db.execute("CREATE EXTENSION IF NOT EXISTS vector")
        sizes = Sizes(options.url, db, options.rounds)
        for entries in map(int, options.sizes.split(",")):
            if not db.execute(f"SELECT 1 FROM pg_namespace WHERE nspname = 'bench_{entries}'").fetchall():
                ingest.append(sizes.stored(entries))
            for halfvec in ORDERS:
                indexes.append(sizes.indexed(entries, halfvec))
                recalls += [sizes.asked(entries, halfvec, mb) for mb in ((1, 4000) if halfvec == "off" else (1,))]
    stored = ("entries", "texts/s", "COPY/s", "with indexes", "and references", "ratio")
    asked = (
        "entries",
        "halfvec",
        "from",
        "p50 ms",
        "CPU ms",
        "again ms",
        "bare ms",
        "ratio",
        "first s",
        "add ms",
        "forget ms",
    )
    tables = [
        Table(title="ingest", columns=stored, rows=ingest, form=".3g"),
        Table(title="index", columns=("entries", "halfvec", "MB", "s", "recall@10"), rows=indexes, form=".3g"),
        Table(title="recall", columns=asked, rows=recalls, form=".3g"),
    ]
    Report(name="postgres", about={}, tables=tables).print(Console(width=150))


if __name__ == "__main__":
    main()
