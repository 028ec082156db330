"""A recursive recall against plain search for the same question, shape by shape."""

from __future__ import annotations

from collections.abc import Callable

from bench.banks import SCOPE, VARIANTS, Banks, Variant, open_memory
from bench.corpus import Corpus
from bench.report import Row, Table
from bench.timing import take_turns
from wellworn.search.steps.router import route

K = 5
AIM = 5.0
SAYS = (
    f"k = {K}, static embedder for queries, every question asked once on each route, in turns; `plain` is the same "
    "question with recursion off. In `sessions` the question names one of the two who speak; in `notes` nobody does. "
    f"own_…: without the time in which other processes had the core. Aim: p50 ≤ {AIM:g}× plain."
)

Asked = Callable[[list[str]], str]
SHAPES: dict[str, Asked] = {
    "bridge": lambda w: f"Who {w[0]} the {w[1]} that was {w[2]} in {w[3]}?",
    "compare": lambda w: f"Which {w[0]} is older, {w[1].capitalize()} or {w[2].capitalize()}?",
    "gather": lambda w: f"What {w[0]} {w[1]} has Ada {w[2]}?",
    "suppose": lambda w: f"Would Ada {w[0]} the {w[1]} {w[2]}?",
}
"""A question of each shape from four words."""


def measure(banks: Banks, sizes: list[int], rounds: int) -> Table:
    """p50 of both routes for each kind of bank, size and shape."""
    rows = [_row(banks, variant, size, shape, rounds) for variant in VARIANTS for size in sizes for shape in SHAPES]
    return Table(subject="recursive", says=SAYS, rows=rows)


def questions(shape: str, count: int) -> list[str]:
    """Questions that are routed as this shape; words as frequent as in the texts."""
    corpus, found = Corpus(13), list[str]()
    while len(found) < count:
        words = corpus.query().removeprefix("What was it about ").rstrip("?").split()
        asked = SHAPES[shape](words)
        routed = route(asked)
        if routed.recursive and routed.shape == shape:
            found.append(asked)
    return found


def _row(banks: Banks, variant: Variant, size: int, shape: str, rounds: int) -> Row:
    path, asked = banks.copy(variant, size, "recursive"), questions(shape, rounds + 3)
    with open_memory(path, static_queries=True) as memory:
        memory.recall("warm", scope=SCOPE, k=1)
        times = take_turns(
            {
                "recursive": lambda n: memory.recall(asked[n], scope=SCOPE, k=K),
                "plain": lambda n: memory.recall(asked[n], scope=SCOPE, k=K, recursion="off"),
            },
            rounds=rounds,
        )
    path.unlink()
    found, plain = times["recursive"], times["plain"]
    return {
        "bank": variant,
        "entries": size,
        "call": shape,
        "own_p50_ms": found.own_p50_ms,
        "own_p95_ms": found.own_p95_ms,
        "cpu_ms": found.cpu_p50_ms,
        "plain_own_p50_ms": plain.own_p50_ms,
        "plain_cpu_ms": plain.cpu_p50_ms,
        "ratio": found.own_p50_ms / plain.own_p50_ms,
        "cpu_ratio": found.cpu_p50_ms / plain.cpu_p50_ms,
    }
