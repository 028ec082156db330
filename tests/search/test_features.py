"""What learning looks at, each feature worked out by hand on a tiny bank."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import numpy as np
import pytest

from wellworn import Memory, Scope
from wellworn.search.score import FEATURES

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
ADA = Scope(tenant="acme", user="ada")
IN_ORG = Scope(tenant="acme", user="ada", org="all")

Evidence = dict[str, dict[str, float]]


@pytest.fixture
def mem() -> Iterator[Memory]:
    with Memory.open(":memory:", embedder=None, clock=lambda: NOON) as memory:
        yield memory


def evidence(mem: Memory, query: str, scope: Scope = ADA) -> Evidence:
    """Text → feature → value, for everything that a recall weighs."""
    logged = mem.engine.searcher.examine(query, scope=scope, k=5)
    assert logged is not None
    assert logged.names == list(FEATURES)
    entries = mem.engine.store.read(logged.nos)
    return {
        entries[no].text: dict(zip(logged.names, row, strict=True))
        for no, row in zip(logged.nos, logged.features.astype(np.float64).tolist(), strict=True)
    }


def column(found: Evidence, name: str) -> dict[str, float]:
    return {text: values[name] for text, values in found.items()}


def talk(mem: Memory, session_id: str, turns: Sequence[tuple[str, str]]) -> None:
    session = mem.session(scope=ADA, session_id=session_id)
    for speaker, text in turns:
        session.add("user", text, speaker=speaker)


# -- month and day -----------------------------------------------------------------------------------------------


# -- own, before, after ------------------------------------------------------------------------------------------


def test_a_row_with_every_word_has_8_of_its_own_and_lends_it_to_its_neighbours(mem: Memory) -> None:
    talk(mem, "s", [("Zoe", "good morning everyone"), ("Max", "lovely purple orchids"), ("Zoe", "nothing else here")])
    found = evidence(mem, "purple orchids?")
    assert column(found, "own") == pytest.approx(
        {"good morning everyone": 0.0, "lovely purple orchids": 8.0, "nothing else here": 0.0}, abs=1e-5
    )
    assert column(found, "before") == pytest.approx(
        {"good morning everyone": 0.0, "lovely purple orchids": 0.0, "nothing else here": 8.0}, abs=1e-5
    )
    assert column(found, "after") == pytest.approx(
        {"good morning everyone": 8.0, "lovely purple orchids": 0.0, "nothing else here": 0.0}, abs=1e-5
    )


# -- coverage ----------------------------------------------------------------------------------------------------


def test_coverage_is_the_weight_found_in_a_row_or_beside_it(mem: Memory) -> None:
    talk(mem, "s", [("A", "purple things"), ("B", "silver spoons"), ("A", "orchids there"), ("B", "far away")])
    mem.remember("purple orchids alone", scope=ADA)
    # `purple` and `orchids` are in two rows of five each: half of the weight each
    assert column(evidence(mem, "purple orchids"), "coverage") == pytest.approx(
        {"purple things": 2.0, "silver spoons": 4.0, "orchids there": 2.0, "far away": 2.0, "purple orchids alone": 4.0}
    )


def test_neighbours_are_those_of_the_same_partition(mem: Memory) -> None:
    mem.remember("purple private", scope=IN_ORG)
    session = mem.session(scope=Scope(tenant="acme", org="all"), session_id="s")
    for speaker, text in (("Bea", "orchids shared"), ("Tom", "nothing shared")):
        session.add("user", text, speaker=speaker)
    found = evidence(mem, "purple orchids", IN_ORG)
    assert found["nothing shared"]["before"] == pytest.approx(4.0, abs=1e-5)
    assert found["purple private"]["after"] == found["orchids shared"]["before"] == 0.0
    assert column(found, "coverage") == pytest.approx(
        {"purple private": 2.0, "orchids shared": 2.0, "nothing shared": 2.0}
    )


# -- meaning, when, session, recency -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "asks"),
    [
        ("When was the walk?", True),
        ("What year was the walk?", True),
        ("How long ago was the walk?", True),
        ("Where was the walk?", False),
        ("Whenever I walk", False),
    ],
)
def test_a_text_that_tells_a_time_for_a_query_that_asks_when(mem: Memory, query: str, asks: bool) -> None:
    mem.remember_many(["a walk yesterday", "a walk in 2019", "a walk at 10 am", "a long walk"], scope=ADA)
    found = column(evidence(mem, query), "when")
    assert found == {
        "a walk yesterday": float(asks),
        "a walk in 2019": float(asks),
        "a walk at 10 am": float(asks),
        "a long walk": 0.0,
    }


def test_the_gap_of_a_session_is_its_best_minus_the_best_of_all() -> None:
    with Memory.open(":memory:", embedder=None, clock=lambda: NOON) as mem:
        talk(mem, "a", [("A", "lovely purple orchids"), ("A", "silver spoons")])
        talk(mem, "b", [("A", "purple things"), ("A", "something else")])
        mem.remember("a lonely note", scope=ADA)
        logged = mem.engine.searcher.examine("purple orchids", scope=ADA)
        assert logged is not None
        entries = mem.engine.store.read(logged.nos)
        base = {entries[no].text: score for no, score in zip(logged.nos, logged.base.tolist(), strict=True)}
        found = column(evidence(mem, "purple orchids"), "session")
    best = base["lovely purple orchids"]
    assert best == max(base.values())
    best_of_b = max(base["purple things"], base["something else"])
    assert found == pytest.approx(
        {
            "lovely purple orchids": 0.0,
            "silver spoons": 0.0,
            "purple things": 0.2 * (best_of_b - best),
            "something else": 0.2 * (best_of_b - best),
            "a lonely note": 0.2 * (base["a lonely note"] - best),
        },
        abs=1e-5,
    )


def test_rare_is_the_share_of_terms_that_few_entries_have(mem: Memory) -> None:
    texts = ["walk river", "walk river castle", "walk castle", "walk castle bridge", "walk walk"]
    mem.remember_many(texts, scope=ADA)  # everybody walks: 5 of 5. Castle is in 3, river in 2, bridge in 1
    wanted = {
        "walk river": 1 / 3,
        "walk river castle": 2 / 4,
        "walk castle": 1 / 3,
        "walk castle bridge": 2 / 4,
        "walk walk": 0.0,
    }
    assert column(evidence(mem, "walk"), "rare") == pytest.approx({text: 3 * share for text, share in wanted.items()})
    mem.remember("another castle", scope=ADA)  # the fourth: castles are rare no longer
    assert column(evidence(mem, "walk"), "rare") == pytest.approx(
        {
            "walk river": 1.0,
            "walk river castle": 0.75,
            "walk castle": 0.0,
            "walk castle bridge": 0.75,
            "walk walk": 0.0,
            "another castle": 1.0,
        }
    )
    mem.forget(ids=[mem.recall("another castle", scope=ADA, k=1).hits[0].entry.id], scope=ADA)
    assert column(evidence(mem, "walk"), "rare") == pytest.approx({text: 3 * share for text, share in wanted.items()})
