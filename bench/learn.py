"""Learning: what an outcome costs against one dense update, and what it adds to a recall."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from zlib import crc32

import numpy as np

from bench.banks import SCOPE, SEED, Banks, SeededEmbedder
from bench.corpus import Corpus, Matrix
from bench.report import Row, Table
from bench.timing import Call, Times, take_turns
from wellworn import Memory

WIDTHS = [256, 1536]
K = 5
OUTCOME_ENTRIES = 1_000
TAUGHT = 80
"""Outcomes that train a ranker; see `_teach`."""
SAYS = (
    f"`outcome` cites two of k = {K}, durability normal; floor: one d×d float32 outer-product update (W += η·u vᵀ), in "
    "turns. `recall` with learning on, untrained and with a learned ranker serving; floor: the same questions with "
    'learning="off". BLAS on one thread; ratios are of CPU medians. '
    "Mean and p99 hold what few outcomes do for many: every 32nd of a person teaches the low-rank residual. "
    "Aim: outcome < 1 ms CPU at d = 256 and < 3 ms at d = 1536, p99 ≤ 5 ms; a learned recall ≤ 1.3×."
)


def measure(banks: Banks, size: int, rounds: int, taught: int = TAUGHT) -> Table:
    """An outcome at each width, then recall at one size."""
    rows = [_outcome(banks.scratch, width, profile, rounds) for profile in ("default", "paper") for width in WIDTHS]
    return Table(subject="learn", says=SAYS, rows=[*rows, *_recalls(banks, size, rounds, taught)])


def _row(call: str, width: int, entries: int, found: Times, floor: Times) -> Row:
    return {
        "call": call,
        "width": width,
        "entries": entries,
        "p50_ms": found.p50_ms,
        "cpu_ms": found.cpu_p50_ms,
        "cpu_mean_ms": found.cpu_mean_ms,
        "cpu_p99_ms": found.cpu_p99_ms,
        "floor_cpu_ms": floor.cpu_p50_ms,
        "cpu_ratio": found.cpu_p50_ms / floor.cpu_p50_ms,
    }


# -- outcome -------------------------------------------------------------------------------------------------------


def _outcome(scratch: Path, width: int, profile: str, rounds: int) -> Row:
    path = scratch / f"learn-{profile}-{width}.db"
    texts, queries = Corpus(31).texts(OUTCOME_ENTRIES), Corpus(32).queries(rounds + 3)
    options = {"embedder": _embed(width), "durability": "normal"}
    with Memory.open(path, profile=profile, **options) as memory:  # type: ignore[arg-type]
        memory.remember_many(texts, scope=SCOPE)
        ids = [memory.recall(query, scope=SCOPE, k=K).id for query in queries]
        memory.engine.learner._log.flush()  # the log is written in the background; here, before the clock starts
        times = take_turns(
            {"outcome": lambda n: memory.outcome(ids[n], cited=[0, 1]), "floor": _dense_update(width)}, rounds=rounds
        )
    return _row(
        "outcome" if profile == "default" else f"outcome, {profile}",
        width,
        OUTCOME_ENTRIES,
        times["outcome"],
        times["floor"],
    )


def _embed(width: int) -> Callable[[list[str]], Matrix]:
    pool = np.random.default_rng(SEED).standard_normal((512, width), dtype=np.float32)

    def seeded(texts: list[str]) -> Matrix:
        return pool[[crc32(text.encode()) % len(pool) for text in texts]]

    return seeded


def _dense_update(width: int) -> Call:
    dice = np.random.default_rng(SEED)
    weights = np.zeros((width, width), dtype=np.float32)
    vectors = dice.standard_normal((2, 64, width), dtype=np.float32)

    def update(n: int) -> None:
        np.add(weights, np.float32(1e-3) * np.outer(vectors[0, n % 64], vectors[1, n % 64]), out=weights)

    return update


# -- recall --------------------------------------------------------------------------------------------------------


def _recalls(banks: Banks, size: int, rounds: int, taught: int) -> list[Row]:
    path = banks.copy("sessions", size, "learn")
    off, fresh, queries = _opened(path, "off"), _opened(path, "on"), Corpus(11).queries(rounds + 3)
    with off, fresh:
        untrained = _against(off, fresh, queries, rounds)
    with _opened(path, "on") as memory:
        _teach(memory, taught)
    off, trained = _opened(path, "off"), _opened(path, "on")
    with off, trained:
        level = trained.learning(scope=SCOPE).level
        learned = _against(off, trained, queries, rounds)
    path.unlink()
    return [
        _row("recall, untrained", SeededEmbedder().width, size, *untrained),
        _row(f"recall, learned ({level})", SeededEmbedder().width, size, *learned),
    ]


def _opened(path: Path, learning: str) -> Memory:
    return Memory.open(path, embedder=SeededEmbedder(), learning=learning, durability="normal")


def _against(off: Memory, on: Memory, queries: list[str], rounds: int) -> tuple[Times, Times]:
    times = take_turns(
        {
            "on": lambda n: on.recall(queries[n], scope=SCOPE, k=K),
            "off": lambda n: off.recall(queries[n], scope=SCOPE, k=K),
        },
        rounds=rounds,
    )
    return times["on"], times["off"]


def _teach(memory: Memory, taught: int) -> None:
    """Citations that agree with the base, and better still with the row's own words: so a learned ranker serves."""
    own = memory.engine.learner.names.index("own")
    for query in Corpus(33).queries(taught):
        recall = memory.recall(query, scope=SCOPE, k=K)
        logged = memory.engine.learner._log.find(recall.id) or memory.engine.store.logged_recall(recall.id)
        if logged is not None:
            liked = logged.base[: logged.shown] + logged.features[: logged.shown, own]
            memory.outcome(recall.id, cited=[int(np.argmax(liked))])
