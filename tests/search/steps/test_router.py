"""Which questions are recursive."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from wellworn.search.steps.cues import shape_of, sides
from wellworn.search.steps.router import route, signals_of


def labelled() -> list[tuple[str, bool]]:
    """Our own questions, and whether each needs several entries."""
    lines = Path(__file__).with_name("router_questions.txt").read_text(encoding="utf-8").splitlines()
    return [(line[2:], line[0] == "+") for line in lines if line[:2] in ("+ ", "- ")]


@pytest.mark.parametrize(
    "query",
    ["what is the login endpoint", "What database does the API team use?", "Show me recent authentication decisions"],
)
def test_the_simple_examples_of_the_design_stay_plain(query: str) -> None:
    assert not route(query).recursive


@pytest.mark.parametrize(
    "query",
    [
        "compare patterns across teams",
        "trace evolution of auth since last quarter",
        "Compare error handling patterns across all Platform Engineering teams",
    ],
)
def test_the_complex_examples_of_the_design_are_recursive(query: str) -> None:
    assert route(query).recursive
    assert signals_of(query).score >= 0.3, "by the signals of the design alone"


def test_the_examples_are_ordered_as_in_the_design() -> None:
    scores = [
        signals_of(query).score
        for query in (
            "what is the login endpoint",
            "compare patterns across teams",
            "trace evolution of auth since last quarter",
        )
    ]
    assert scores == sorted(scores)


def test_each_signal_weighs_what_the_design_says() -> None:
    assert signals_of("x" * 200).score == pytest.approx(0.2)
    assert signals_of("x" * 1000).score == pytest.approx(0.2)
    assert signals_of("then after caused").score == pytest.approx(0.2 + 0.2 * 17 / 200)
    assert signals_of("since").score == pytest.approx(0.1 + 0.2 * 5 / 200)
    assert signals_of("every").score == pytest.approx(0.1 + 0.2 * 5 / 200)
    assert signals_of("compare trends").score == pytest.approx(0.4 + 0.2 * 14 / 200)


def test_a_higher_threshold_lets_fewer_through_and_one_above_one_lets_none() -> None:
    questions = [query for query, _ in labelled()]
    counts = [sum(route(query, threshold=t).recursive for query in questions) for t in (0.0, 0.3, 0.5, 1.1)]
    assert counts[0] == len(questions)
    assert counts == sorted(counts, reverse=True)
    assert 0 < counts[2] < counts[1]
    assert counts[3] == 0


def test_labelled_questions_are_routed_as_they_should_be() -> None:
    pairs = [(route(query).recursive, needs) for query, needs in labelled()]
    assert len(pairs) >= 200
    right = pairs.count((True, True))
    assert right / sum(taken for taken, _ in pairs) >= 0.93
    assert right / sum(needs for _, needs in pairs) >= 0.95


@pytest.mark.parametrize(
    ("query", "shape"),
    [
        ("Who directed the film that was shot in Leland?", "bridge"),
        ("Which bridge was built first, the Alder or the Birch Bridge?", "compare"),
        ("What books has Ada borrowed?", "gather"),
        ("What is the wifi password?", "plain"),
        ("Would Ada likely enjoy the song that was played?", "suppose"),
        ("", "plain"),
        ("ねこは何匹いますか？", "plain"),
    ],
)
def test_the_shape_of_a_question(query: str, shape: str) -> None:
    assert shape_of(query) == shape


def test_a_comparison_is_one_question_for_each_side() -> None:
    assert sides("Who is older, Hanna or Pietro?") == ("Who is older, Hanna?", "Who is older, Pietro?")
    assert sides("compare the mailer with the importer") == ("compare the mailer", "compare the importer")
    assert sides("Where does Hanna live?") is None


@pytest.mark.parametrize("query", ["what has " * 3000, "A or " * 5000, "the of " * 5000, "?" * 20000, "Aa " * 9000])
def test_no_query_takes_long_to_route(query: str) -> None:
    began = time.process_time()
    route(query)
    assert time.process_time() - began < 0.25
