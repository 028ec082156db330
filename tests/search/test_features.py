"""What learning looks at, each feature worked out by hand on a tiny bank."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from search.embedders import Fixed
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

DAYS = ("2024-03-07", "2025-03-07", "2025-03-08", "2025-05-07", "2025-12-31")


@pytest.mark.parametrize(
    ("query", "months", "days"),
    [
        ("the walk", [], []),
        ("the walk in March", ["2024-03-07", "2025-03-07", "2025-03-08"], []),
        ("the walk on March 7th", ["2024-03-07", "2025-03-07", "2025-03-08"], ["2024-03-07", "2025-03-07"]),
        ("the walk on 7 March, 2025", ["2025-03-07", "2025-03-08"], ["2025-03-07"]),
        ("the walk in May", ["2025-05-07"], []),
        ("the walk in March or May", ["2024-03-07", "2025-03-07", "2025-03-08", "2025-05-07"], []),
        ("the walk of 2025-03-07", ["2025-03-07", "2025-03-08"], ["2025-03-07"]),
    ],
)
def test_the_month_and_day_that_a_query_names(mem: Memory, query: str, months: list[str], days: list[str]) -> None:
    for number, day in enumerate(DAYS):
        mem.remember(f"a walk {day} {number}", scope=ADA, at=day)
    found = evidence(mem, query)
    named = {name: [text.split()[2] for text, value in column(found, name).items() if value] for name in FEATURES[:2]}
    assert sorted(named["month"]) == sorted(months)
    assert sorted(named["day"]) == sorted(days)
    assert {value for name in FEATURES[:2] for value in column(found, name).values()} <= {0.0, 1.0}


def test_the_first_and_the_last_moment_of_a_month_and_one_before_1970(mem: Memory) -> None:
    moments = {
        "first": datetime(2025, 3, 1, tzinfo=UTC),
        "last": datetime(2025, 3, 31, 23, 59, 59, 999999, tzinfo=UTC),
        "too late": datetime(2025, 4, 1, tzinfo=UTC),
        "long ago": datetime(1963, 3, 31, 23, 59, tzinfo=UTC),
    }
    for text, at in moments.items():
        mem.remember(f"{text} walk", scope=ADA, at=at)
    assert column(evidence(mem, "the walk in March"), "month") == {
        "first walk": 1.0,
        "last walk": 1.0,
        "too late walk": 0.0,
        "long ago walk": 1.0,
    }
    assert column(evidence(mem, "the walk of March 31, 1963"), "day") == {
        "first walk": 0.0,
        "last walk": 0.0,
        "too late walk": 0.0,
        "long ago walk": 1.0,
    }


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


def test_the_names_of_speakers_do_not_count(mem: Memory) -> None:
    talk(mem, "s", [("Zoe", "good morning everyone"), ("Max", "lovely purple orchids"), ("Max", "Zoe is nothing here")])
    named, plain = evidence(mem, "purple orchids of Zoe?"), evidence(mem, "purple orchids?")
    for name in ("own", "before", "after", "coverage"):
        assert column(named, name) == pytest.approx(column(plain, name), abs=1e-5)
    only_names = evidence(mem, "Zoe and Max?")
    assert {
        value for name in ("own", "before", "after", "coverage") for value in column(only_names, name).values()
    } == {0.0}


def test_half_of_the_weight_is_half_of_it(mem: Memory) -> None:
    mem.remember_many(["purple things", "orchids there", "other matters"], scope=ADA)
    found = evidence(mem, "purple orchids")  # both words are in one of three rows, and weigh the same
    assert column(found, "own") == pytest.approx(
        {"purple things": 4.0, "orchids there": 4.0, "other matters": 0.0}, abs=1e-5
    )


def test_a_word_that_nobody_has_counts_by_half(mem: Memory) -> None:
    mem.remember_many(["purple things", "other matters"], scope=ADA)
    idf = math.log(1 + (2 - 1 + 0.5) / 1.5)
    absent = math.log(1 + 2.5 / 0.5)
    found = evidence(mem, "purple xylophones")
    assert found["purple things"]["own"] == pytest.approx(8 * idf / (idf + absent / 2), abs=1e-5)


# -- coverage ----------------------------------------------------------------------------------------------------


def test_coverage_is_the_weight_found_in_a_row_or_beside_it(mem: Memory) -> None:
    talk(mem, "s", [("A", "purple things"), ("B", "silver spoons"), ("A", "orchids there"), ("B", "far away")])
    mem.remember("purple orchids alone", scope=ADA)
    # `purple` and `orchids` are in two rows of five each: half of the weight each
    assert column(evidence(mem, "purple orchids"), "coverage") == pytest.approx(
        {"purple things": 2.0, "silver spoons": 4.0, "orchids there": 2.0, "far away": 2.0, "purple orchids alone": 4.0}
    )


def test_coverage_is_not_more_for_a_word_said_twice(mem: Memory) -> None:
    mem.remember_many(["purple purple purple", "other matters"], scope=ADA)
    assert evidence(mem, "purple")["purple purple purple"]["coverage"] == pytest.approx(4.0)


def test_without_a_neighbour_the_last_row_of_the_bank_is_not_taken_for_one(mem: Memory) -> None:
    mem.remember_many(["first thing", "second thing", "purple orchids"], scope=ADA)
    found = evidence(mem, "purple orchids")
    for text in ("first thing", "second thing"):
        assert (found[text]["before"], found[text]["after"], found[text]["coverage"]) == (0.0, 0.0, 0.0)


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


def test_who_says_one_thing_after_another_gives_no_context(mem: Memory) -> None:
    talk(mem, "s", [("A", "purple things"), ("A", "silver spoons"), ("B", "far away")])
    found = evidence(mem, "purple spoons")
    assert column(found, "coverage") == pytest.approx({"purple things": 2.0, "silver spoons": 2.0, "far away": 2.0})


# -- meaning, when, session, recency -----------------------------------------------------------------------------


def test_meaning_is_ten_times_the_cosine() -> None:
    vectors: dict[str, Sequence[float]] = {"q": (1, 0, 0), "near": (0.8, 0.6, 0), "away": (-1, 0, 0)}
    with Memory.open(":memory:", embedder=Fixed(vectors, other=(0.0, 0.0, 1.0)), clock=lambda: NOON) as mem:
        mem.remember_many(["near", "away"], scope=ADA)
        assert column(evidence(mem, "q"), "meaning") == pytest.approx({"near": 8.0, "away": -10.0}, abs=1e-5)


def test_without_an_embedder_meaning_is_nothing(mem: Memory) -> None:
    mem.remember("a walk", scope=ADA)
    assert evidence(mem, "walk")["a walk"]["meaning"] == 0.0


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


def test_recency_counts_back_from_the_newest(mem: Memory) -> None:
    mem.remember("new walk", scope=ADA, at=NOON)
    mem.remember("old walk", scope=ADA, at=NOON - timedelta(days=30))
    assert column(evidence(mem, "walk"), "recency") == pytest.approx({"new walk": 1.0, "old walk": math.exp(-1)})


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


def test_rare_is_counted_in_the_entrys_own_partition(mem: Memory) -> None:
    mem.remember_many([f"walk {n}" for n in range(4)], scope=IN_ORG)
    mem.remember("walk shared", scope=IN_ORG, layer="org")
    found = column(evidence(mem, "walk", IN_ORG), "rare")
    assert found["walk 0"] == pytest.approx(1.0)
    assert found["walk shared"] == pytest.approx(2.0)


def test_an_empty_bank_shows_nothing(mem: Memory) -> None:
    assert mem.engine.searcher.examine("walk", scope=ADA) is None


def test_looking_logs_nothing(mem: Memory) -> None:
    mem.remember("a walk", scope=ADA)
    evidence(mem, "walk")
    assert len(mem.engine.learner.log) == 0
