"""The reasoning bank: finding the item for a task among a thousand, without the query's embedding."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from bench.banks import SEED, Banks, SeededEmbedder
from bench.corpus import WIDTH, Corpus, Matrix, unit_vectors
from bench.report import Row, Table
from bench.timing import Times, ratio, take_turns
from wellworn import Memory, Scope
from wellworn.tasks import ReasoningBank
from wellworn.tasks.domains import domain_tags
from wellworn.tasks.items import ITEM_KINDS

AGENT = Scope(tenant="bench", agent="a1", user="ada")
DOMAINS = ("web.admin", "web.shop", "web.api", "db.sql", "db.files")
SIZE = 1_000
K = 1
SAYS = (
    f"k = {K}, four factors, MMR, least confidence 0.3, every query asked once, learning on; seeded vectors, no "
    "embedder. `less_ms` and `less_cpu_ms`: without having the query embedded, measured in turns. `all`: no domain; "
    "`prefix`: web.* (three items in five); `domain`: web.admin (one in five). Floor: float32 matvec + argpartition "
    "over the same vectors, in turns, BLAS on one thread. Aim: `all` < 1 ms without embedding at 1,000 items; on a "
    "busy machine trust the CPU."
)


def measure(banks: Banks, rounds: int, size: int = SIZE) -> Table:
    """p50 and p95 for each way of asking."""
    path = banks.scratch / f"bank-{size}.db"
    with Memory.open(path, embedder=SeededEmbedder(), durability="normal", background=False) as memory:
        _fill(memory, size)
        bank = ReasoningBank(memory, scope=AGENT)
        rows = [
            _row(call, size, _times(bank, domain, rounds, size))
            for call, domain in (("all", None), ("prefix", "web.*"), ("domain", "web.admin"))
        ]
    _remove(path)
    return Table(subject="bank", says=SAYS, rows=rows)


def _fill(memory: Memory, size: int) -> None:
    """Items of five domains, as sure and as often used as chance has it."""
    dice = np.random.default_rng(SEED)
    texts = Corpus(41).texts(size)
    memory.remember_many(
        [
            {
                "text": f"{text} ({number})",
                "kind": ITEM_KINDS[number % 4 == 0],
                "confidence": float(sure),
                "tags": domain_tags(DOMAINS[number % len(DOMAINS)]),
            }
            for number, (text, sure) in enumerate(zip(texts, dice.uniform(0.2, 0.95, size), strict=True))
        ],
        scope=AGENT,
        layer="agent",
    )
    with memory.engine.store.transact() as tx:
        for entry in memory.entries(scope=AGENT, limit=size):
            tx.update(replace(entry, usage_count=int(dice.integers(0, 40))), change=None)


def _times(bank: ReasoningBank, domain: str | None, rounds: int, size: int) -> dict[str, Times]:
    queries, vectors, probes = Corpus(42).queries(rounds + 3), unit_vectors(size, SEED), unit_vectors(64, 3)
    return take_turns(
        {
            "retrieve": lambda n: bank.retrieve(queries[n], domain=domain, k=K),
            "embed": lambda n: bank._engine.searcher._embed(queries[n]),
            "floor": lambda n: _scan(vectors, probes[n % len(probes)]),
        },
        rounds=rounds,
    )


def _row(call: str, size: int, times: dict[str, Times]) -> Row:
    found, embed, floor = times["retrieve"], times["embed"], times["floor"]
    return {
        "call": call,
        "width": WIDTH,
        "entries": size,
        "p50_ms": found.p50_ms,
        "p95_ms": found.p95_ms,
        "cpu_ms": found.cpu_p50_ms,
        "less_ms": found.p50_ms - embed.p50_ms,
        "less_cpu_ms": found.cpu_p50_ms - embed.cpu_p50_ms,
        "floor_cpu_ms": floor.cpu_p50_ms,
        "ratio": ratio(found, floor),
        "cpu_ratio": found.cpu_p50_ms / floor.cpu_p50_ms,
    }


def _scan(vectors: Matrix, query: Matrix) -> object:
    scores = vectors @ query
    return np.argpartition(scores, -K)[-K:]


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
