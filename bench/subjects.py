"""What is measured: recall, remember, outcome, forget and import. Uses the public facade only."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
from evals.report import Table

from bench.corpus import WIDTH, Corpus, Matrix, unit_vectors
from bench.timing import COLUMNS, Call, compared, take_turns
from wellworn import Memory, Scope

SCOPE = Scope(tenant="bench", user="ada")
K = 5
STATEMENTS = {
    "import numpy": "import numpy",
    "import wellworn": "import wellworn",
    "from wellworn import Memory": "from wellworn import Memory",
    "open, remember, recall": (
        "from wellworn import Memory, Scope; m = Memory.open(':memory:'); s = Scope(tenant='t', user='u'); "
        "m.remember('Ada likes tokio.', scope=s); m.recall('tokio', scope=s)"
    ),
}


class SeededEmbedder:
    """Random unit vectors at no cost worth counting."""

    name = "bench:seeded"
    width = WIDTH

    def __init__(self) -> None:
        self._pool = unit_vectors(4096, seed=7)
        self._next = 0

    def embed(self, texts: Sequence[str]) -> Matrix:
        places = np.arange(self._next, self._next + len(texts)) % len(self._pool)
        self._next += len(texts)
        return self._pool[places]

    def embed_query(self, text: str) -> Matrix:
        found: Matrix = self.embed([text])[0]
        return found


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A folder for files, and how much to measure."""

    folder: Path
    sizes: tuple[int, ...]
    rounds: int

    def opened(self, size: int, name: str, **options: str) -> Memory:
        """A memory of that many entries, in a copy of a file that is filled once."""
        filled = self.folder / f"filled-{size}.db"
        if not filled.exists():
            with Memory.open(filled, embedder=SeededEmbedder(), durability="normal") as memory:
                memory.remember_many(Corpus(7).texts(size), scope=SCOPE)
        path = self.folder / f"{name}-{size}.db"
        shutil.copyfile(filled, path)
        return Memory.open(path, embedder=SeededEmbedder(), **options)  # type: ignore[arg-type]

    # -- subjects ----------------------------------------------------------------------------------------------------

    def recall(self) -> Table:
        """Floor: float32 matrix · vector and argpartition over as many vectors."""
        rows = []
        for size in self.sizes:
            vectors, probes, queries = unit_vectors(size, 1), unit_vectors(64, 3), Corpus(11).queries(self.rounds + 3)
            texts = Corpus(12).texts(self.rounds + 3)
            floor = _scan(vectors, probes)
            with self.opened(size, "recall") as memory:
                ask: Call = lambda n, m=memory, q=queries: m.recall(q[n], scope=SCOPE, k=K)  # type: ignore[misc] # noqa: E731
                add: Call = lambda n, m=memory, t=texts: m.remember(t[n], scope=SCOPE)  # type: ignore[misc] # noqa: E731
                for label, before in (("recall", None), ("after an add", add)):
                    times = take_turns({"call": ask, "floor": floor}, rounds=self.rounds, before=before)
                    rows.append(compared((label, size), times["call"], times["floor"]))
        return Table(title="recall", columns=("call", "entries", *COLUMNS, "cpu ratio to scan"), rows=rows, form=".3g")

    def remember(self) -> Table:
        """Floor: one bare SQLite commit of a text and a 1 KB blob in the same mode. Embedding is not counted."""
        rows = []
        for mode in ("full", "normal"):
            for size in self.sizes:
                commit = bare_commit(self.folder / f"bare-{mode}-{size}.db", mode, size)
                texts = Corpus(21).texts(2 * (self.rounds + 3))
                with self.opened(size, f"remember-{mode}", durability=mode) as memory:
                    session = memory.session(scope=SCOPE, session_id="now")
                    calls: dict[str, Call] = {
                        "remember": lambda n, m=memory, t=texts: m.remember(t[2 * n], scope=SCOPE),  # type: ignore[misc]
                        "session.add": lambda n, s=session, t=texts: s.add("user", t[2 * n + 1]),  # type: ignore[misc]
                        "floor": lambda n, c=commit, t=texts: c(t[2 * n]),  # type: ignore[misc]
                    }
                    times = take_turns(calls, rounds=self.rounds)
                rows += [
                    compared((call, mode, size), times[call], times["floor"]) for call in ("remember", "session.add")
                ]
        columns = ("call", "durability", "entries", *COLUMNS, "cpu ratio to commit")
        return Table(title="remember", columns=columns, rows=rows, form=".3g")

    def outcome(self) -> Table:
        """Floor: one d×d float32 outer-product update."""
        weights, vectors = np.zeros((WIDTH, WIDTH), dtype=np.float32), unit_vectors(128, 5)

        def update(n: int) -> None:
            np.add(weights, np.float32(1e-3) * np.outer(vectors[n % 64], vectors[64 + n % 64]), out=weights)

        size = self.sizes[0]
        queries = Corpus(32).queries(self.rounds + 3)
        with self.opened(size, "outcome", durability="normal") as memory:
            recalls = [memory.recall(query, scope=SCOPE, k=K).id for query in queries]
            calls: dict[str, Call] = {"outcome": lambda n: memory.outcome(recalls[n], cited=[0, 1]), "floor": update}
            times = take_turns(calls, rounds=self.rounds)
        rows = [compared(("outcome", size), times["outcome"], times["floor"])]
        return Table(
            title="outcome", columns=("call", "entries", *COLUMNS, "cpu ratio to update"), rows=rows, form=".3g"
        )

    def forget(self) -> Table:
        """By id, durable, with the receipt; and the first recall after it."""
        rows = [
            (size, count, *self._forgotten(size, count, repeats=5))
            for size in self.sizes
            for count in (1, min(100, size // 10))
        ]
        return Table(
            title="forget", columns=("entries", "forgotten", "forget ms", "next recall ms"), rows=rows, form=".3g"
        )

    def _forgotten(self, size: int, count: int, *, repeats: int) -> tuple[float, float]:
        spent, after = [], []
        with self.opened(size, f"forget-{count}") as memory:
            memory.recall("warm", scope=SCOPE)
            entries = memory.entries(scope=SCOPE, limit=count * repeats)
            for start in range(0, count * repeats, count):
                began = time.perf_counter()
                memory.forget(ids=[entry.id for entry in entries[start : start + count]], scope=SCOPE)
                forgot = time.perf_counter()
                memory.recall("what remains", scope=SCOPE)
                spent.append(forgot - began)
                after.append(time.perf_counter() - forgot)
        return round(1000 * median(spent), 3), round(1000 * median(after), 3)

    def scale(self) -> Table:
        """Growth of one person's memory. Baselines in the same run: a bare SQLite insert in batches, and a numpy scan."""
        rows = []
        for size in self.sizes:
            bare = _bare_batches(self.folder / f"batches-{size}.db", Corpus(7).texts(size))
            plain, alike = (self._stored(size, kind) for kind in ("plain", "alike"))
            first, again = (_python(_OPENED.format(path=str(self.folder / f"plain-{size}.db"))) for _ in range(2))
            with Memory.open(self.folder / f"plain-{size}.db", embedder=SeededEmbedder()) as memory:
                queries = Corpus(11).queries(self.rounds + 3)
                calls: dict[str, Call] = {
                    "recall": lambda n, m=memory, q=queries: m.recall(q[n], scope=SCOPE, k=K),  # type: ignore[misc]
                    "scan": _scan(unit_vectors(size, 1), unit_vectors(64, 3)),
                }
                times = take_turns(calls, rounds=self.rounds)
                ids = [entry.id for entry in memory.entries(scope=SCOPE, limit=5)]
                began = time.process_time()
                for id in ids:
                    memory.forget(ids=[id], scope=SCOPE)
                forget_ms = 1000 * (time.process_time() - began) / len(ids)
                memory.remember("The first one loads what compares it with the others.", scope=SCOPE)
                began = time.process_time()
                for text in (texts := Corpus(12).texts(20)):
                    memory.remember(text, scope=SCOPE)
                add_ms = 1000 * (time.process_time() - began) / len(texts)
            recall_ms, scan_ms = (times[name].row[2] for name in ("recall", "scan"))
            ingest = [round(number) for number in (plain, alike, bare)]
            rows.append(
                (size, *ingest, first[0], again[0], again[1], recall_ms, scan_ms, round(forget_ms, 2), round(add_ms, 2))
            )
        columns = (
            *("entries", "texts/s", "look-alikes/s", "bare inserts/s", "first open s", "open s", "RSS MB"),
            *("recall ms", "scan ms", "forget ms", "add ms"),
        )
        return Table(title="scale, CPU time", columns=columns, rows=rows, form=".3g")

    def _stored(self, size: int, kind: str) -> float:
        """Texts stored a second of CPU, in batches of at most 20,000."""
        corpus, path = Corpus(7), self.folder / f"{kind}-{size}.db"
        with Memory.open(path, embedder=SeededEmbedder(), durability="normal", background=False) as memory:
            spent = 0.0
            for start in range(0, size, 20_000):
                numbers = range(start, min(start + 20_000, size))
                texts = [corpus.text() if kind == "plain" else _ALIKE.format(n) for n in numbers]
                began = time.process_time()
                memory.remember_many(texts, scope=SCOPE)
                spent += time.process_time() - began
        return size / spent

    def imports(self) -> Table:
        """Fresh interpreters; their own start is not counted."""
        rows = []
        for label, statement in STATEMENTS.items():
            code = (
                "import time; w, c = time.perf_counter(), time.process_time()\n"
                f"{statement}\nprint(time.process_time() - c, time.perf_counter() - w)"
            )
            runs = [_python(code) for _ in range(5)]
            rows.append((label, *[round(median(column), 4) for column in zip(*runs, strict=True)]))
        return Table(title="import", columns=("statement", "cpu s", "wall s"), rows=rows, form=".3g")


_ALIKE = "The deployment of service number {} to the production cluster finished without any errors today."
_OPENED = """
import time; began = time.process_time()
from pathlib import Path
from bench.subjects import SCOPE, SeededEmbedder
from wellworn import Memory
import psutil
memory = Memory.open(Path({path!r}), embedder=SeededEmbedder(), background=False)
memory.recall("What was it about?", scope=SCOPE)
print(time.process_time() - began, psutil.Process().memory_info().rss / 1e6)
memory.close()
"""


def _bare_batches(path: Path, texts: Sequence[str]) -> float:
    """Rows of a text and a 1 KB blob a second of CPU, in one table with one index, 512 a transaction."""
    db, blob = sqlite3.connect(path, isolation_level=None), unit_vectors(1, seed=5).tobytes()
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("CREATE TABLE bare (no INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, text TEXT NOT NULL, vector BLOB)")
    began = time.process_time()
    for start in range(0, len(texts), 512):
        db.execute("BEGIN IMMEDIATE")
        rows = [(f"{start + n:032}", text, blob) for n, text in enumerate(texts[start : start + 512])]
        db.executemany("INSERT INTO bare (id, text, vector) VALUES (?, ?, ?)", rows)
        db.execute("COMMIT")
    db.close()
    return len(texts) / (time.process_time() - began)


def _scan(vectors: Matrix, probes: Matrix) -> Call:
    return lambda n: np.argpartition(vectors @ probes[n % len(probes)], -K)[-K:]


def bare_commit(path: Path, mode: str, size: int) -> Callable[[str], object]:
    """A table with that many rows, and a call that adds one more durably."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute(f"PRAGMA synchronous = {mode}")
    db.execute("CREATE TABLE bare (no INTEGER PRIMARY KEY, id TEXT NOT NULL, text TEXT NOT NULL, vector BLOB NOT NULL)")
    db.execute("CREATE INDEX bare_by_id ON bare (id)")
    insert = "INSERT INTO bare (id, text, vector) VALUES (?, ?, ?)"
    blob, texts = unit_vectors(1, seed=5).tobytes(), Corpus(22).texts(256)
    db.execute("BEGIN")
    db.executemany(insert, ((f"{n:032}", texts[n % 256], blob) for n in range(size)))
    db.execute("COMMIT")

    def commit(text: str) -> object:
        db.execute("BEGIN IMMEDIATE")
        db.execute(insert, (f"{time.time_ns():032}", text, blob))
        return db.execute("COMMIT")

    return commit


def _python(code: str) -> tuple[float, float]:
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    return float(found[0]), float(found[1])
