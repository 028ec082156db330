"""One durable add against one bare SQLite commit in the same mode: a row with a 1 KB blob, a text and an index."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from bench.banks import SCOPE, Banks, open_memory
from bench.corpus import Corpus, unit_vectors
from bench.report import Row, Table
from bench.timing import ratio, take_turns
from wellworn.core.clock import TimeOrderedIds

AIM = 3.0
SAYS = (
    "Embedding excluded: a seeded vector at no cost. Floor: INSERT of id (indexed), text and 1 KB blob, one commit, "
    "WAL and the same `synchronous`, a table as large, in turns. `ratio` is of wall medians; a busy machine's sync "
    f"hides the rest, so see the ratio of CPU too. Aim: ≤ {AIM:g}× for full; flat from 1k to 100k."
)
MODES = ("full", "normal")


def measure(banks: Banks, sizes: list[int], rounds: int) -> Table:
    """`remember` and `Session.add` in both durabilities at each size."""
    rows = [row for mode in MODES for size in sizes for row in _rows(banks, mode, size, rounds)]
    return Table(subject="remember", says=SAYS, rows=rows)


def _rows(banks: Banks, mode: str, size: int, rounds: int) -> list[Row]:
    path = banks.copy("sessions", size, f"remember-{mode}")
    bare_path = banks.scratch / f"bare-{mode}-{size}.db"
    texts = Corpus(21).texts(2 * (rounds + 3))
    with open_memory(path, durability=mode) as memory:
        session = memory.session(scope=SCOPE, session_id="now")
        commit = bare_commit(bare_path, mode, size)
        times = take_turns(
            {
                "remember": lambda n: memory.remember(texts[2 * n], scope=SCOPE),
                "session add": lambda n: session.add("user", texts[2 * n + 1]),
                "floor": lambda n: commit(texts[2 * n]),
            },
            rounds=rounds,
        )
    path.unlink()
    bare_path.unlink()
    floor = times["floor"]
    return [
        {
            "durability": mode,
            "entries": size,
            "call": call,
            "p50_ms": found.p50_ms,
            "mean_ms": found.mean_ms,
            "p95_ms": found.p95_ms,
            "cpu_ms": found.cpu_p50_ms,
            "floor_p50_ms": floor.p50_ms,
            "floor_cpu_ms": floor.cpu_p50_ms,
            "ratio": ratio(found, floor),
            "cpu_ratio": found.cpu_p50_ms / floor.cpu_p50_ms,
        }
        for call, found in times.items()
        if call != "floor"
    ]


def bare_commit(path: Path, mode: str, size: int) -> Callable[[str], object]:
    """A table with that many rows, and a call that adds one more durably."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute(f"PRAGMA synchronous = {mode}")
    db.execute("CREATE TABLE bare (no INTEGER PRIMARY KEY, id TEXT NOT NULL, text TEXT NOT NULL, vector BLOB NOT NULL)")
    db.execute("CREATE INDEX bare_by_id ON bare (id)")
    new_id, blobs = TimeOrderedIds(), [row.tobytes() for row in unit_vectors(256, seed=5)]
    insert = "INSERT INTO bare (id, text, vector) VALUES (?, ?, ?)"
    texts = Corpus(22).texts(256)
    db.execute("BEGIN")
    db.executemany(insert, ((new_id(), texts[n % 256], blobs[n % 256]) for n in range(size)))
    db.execute("COMMIT")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def commit(text: str) -> object:
        db.execute("BEGIN IMMEDIATE")
        db.execute(insert, (new_id(), text, blobs[0]))
        return db.execute("COMMIT")

    return commit
