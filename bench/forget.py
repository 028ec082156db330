"""Forgetting by id, and what the next recall pays for it."""

from __future__ import annotations

import time
from statistics import median

from bench.banks import SCOPE, Banks, open_memory
from bench.report import Row, Table

SAYS = (
    "Durability full; receipt, overwriting and emptying of the log included. `next recall` is the first one after it."
)


def measure(banks: Banks, size: int, counts: list[int], repeats: int) -> Table:
    """Some entries at once, out of a bank of sessions."""
    return Table(subject="forget", says=SAYS, rows=[_row(banks, size, count, repeats) for count in counts])


def _row(banks: Banks, size: int, count: int, repeats: int) -> Row:
    path = banks.copy("sessions", size, f"forget-{count}")
    spent, after = [], []
    with open_memory(path) as memory:
        memory.recall("warm", scope=SCOPE)
        entries = memory.entries(scope=SCOPE, limit=count * repeats)
        for start in range(0, count * repeats, count):
            ids = [entry.id for entry in entries[start : start + count]]
            began = time.perf_counter()
            memory.forget(ids=ids, scope=SCOPE)
            forgot = time.perf_counter()
            memory.recall("what remains", scope=SCOPE)
            spent.append(forgot - began)
            after.append(time.perf_counter() - forgot)
    path.unlink()
    return {
        "entries": size,
        "forgotten": count,
        "forget_p50_ms": 1000 * median(spent),
        "per_entry_us": 1e6 * median(spent) / count,
        "next_recall_p50_ms": 1000 * median(after),
    }
