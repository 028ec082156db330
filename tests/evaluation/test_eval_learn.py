"""Learning lived through on tiny conversations with known answers, and on real ones where they are."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from evals import learn
from evals.citing import Citing, parse_noise
from evals.intervals import interval
from evals.learn_report import WAYS, LearnReport, summary

from wellworn.core.errors import InvalidInput

from .shared import shared_data

THINGS = ("hedgehog", "violin", "kayak", "lighthouse", "compass", "teapot", "ladder", "saddle")


def conversation(speaker: str) -> dict[str, Any]:
    turns = [
        {"speaker": speaker, "dia_id": f"D1:{number}", "text": f"My {thing} is kept in room {number}."}
        for number, thing in enumerate(THINGS, start=1)
    ]
    questions = [
        {"question": f"Where is the {thing}?", "evidence": [f"D1:{number}"], "category": 4}
        for number, thing in enumerate(THINGS, start=1)
    ]
    return {"session_1_date_time": "1:56 pm on 8 May, 2023", "session_1": turns, "qa": questions}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("locomo")
    for name in ("ada", "bob", "eve"):
        (place / f"{name}.json").write_text(json.dumps(conversation(name.title())), encoding="utf-8")
    return place


def lived(folder: Path, **settings: Any) -> LearnReport:  # keywords of Settings
    return learn.run(folder, learn.Settings(embedder="hash", **settings))


# -- the protocol ------------------------------------------------------------------------------------------------


def test_every_way_answers_every_question_once_a_seed(folder: Path) -> None:
    seen: list[tuple[int, int]] = []
    settings = learn.Settings(embedder="hash", seeds=2, conversations=2)
    report = learn.run(folder, settings, progress=lambda done, of: seen.append((done, of)))
    assert (report.conversations, report.questions) == (["ada", "bob"], 16)
    assert list(report.answers) == list(WAYS)
    for answers in report.answers.values():
        asked = {(one.conversation, one.question, one.seed) for one in answers}
        assert len(answers) == len(asked) == 32
    assert seen[-1] == (seen[-1][1], 16 + 2 * 16 * 5)  # turns, then four ways and one other user


def test_orders_are_random_but_the_same_for_every_way(folder: Path) -> None:
    report = lived(folder, seeds=2, conversations=2)
    orders = {
        way: [[one.question for one in answers if (one.conversation, one.seed) == ("ada", seed)] for seed in (0, 1)]
        for way, answers in report.answers.items()
    }
    first, second = orders["untrained"]
    assert first != second
    assert sorted(first) == list(range(8))
    assert all(order == orders["untrained"] for order in orders.values())


def test_a_run_can_be_repeated(folder: Path) -> None:
    citing = Citing(miss=0.3, false=0.15)
    assert lived(folder, citing=citing).as_json() == lived(folder, citing=citing).as_json()


def test_a_prior_needs_someone_else(folder: Path) -> None:
    with pytest.raises(InvalidInput, match="prior needs another"):
        learn.run(folder / "ada.json", learn.Settings(embedder="hash"))
    with pytest.raises(InvalidInput, match="--seeds"):
        lived(folder, seeds=0)


def test_outcomes_are_told_and_the_untrained_way_stays_untrained(folder: Path) -> None:
    report = lived(folder)
    assert report.served("untrained") == {"base": 1.0, "prior": 0.0, "person": 0.0}
    assert [one.status.outcomes for one in report.endings] == [8, 8, 8]
    assert report.gain("untrained").mean == 0


# -- citations ---------------------------------------------------------------------------------------------------

SHOWN = [True, False, True, False, False]


def cited(feedback: str, *, miss: float = 0.0, false: float = 0.0) -> list[int]:
    return Citing(feedback=feedback, miss=miss, false=false).cited(SHOWN, random.Random(1))


def test_clean_citations_are_the_evidence() -> None:
    assert cited("honest") == [0, 2]
    assert cited("inverted") == [1, 3, 4]
    assert cited("last") == [4]
    assert cited("first") == [0]
    assert cited("first-two") == [0, 1]
    assert cited("honest", miss=1.0, false=1.0) == [1, 3, 4]


@pytest.mark.parametrize(("feedback", "on_evidence", "elsewhere"), [("honest", 0.7, 0.15), ("random", 0.3, 0.3)])
def test_error_rates_are_met(feedback: str, on_evidence: float, elsewhere: float) -> None:
    rng, citing = random.Random(2), Citing(feedback=feedback, miss=0.3, false=0.15)
    runs = [citing.cited(SHOWN, rng) for _ in range(4000)]
    assert sum(0 in run for run in runs) / 4000 == pytest.approx(on_evidence, abs=0.03)
    assert sum(1 in run for run in runs) / 4000 == pytest.approx(elsewhere, abs=0.03)


def test_noise_is_shares_or_percent() -> None:
    assert parse_noise("0.09,0.05") == parse_noise("9,5") == parse_noise("9%, 5%") == (0.09, 0.05)
    assert parse_noise("0,0") == (0.0, 0.0)
    assert parse_noise("1,1") == (1.0, 1.0)
    for wrong in ("", "9", "a,b", "-1,0", "200,0", "nan,0", "1,2,3"):
        with pytest.raises(InvalidInput, match="--noise"):
            parse_noise(wrong)


def test_unknown_feedback_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"'kind'.*honest"):
        Citing(feedback="kind")


# -- numbers -----------------------------------------------------------------------------------------------------


def test_an_interval_holds_its_mean_and_narrows_with_more_questions() -> None:
    few = interval((n, float(n % 2)) for n in range(10))
    many = interval((n, float(n % 2)) for n in range(1000))
    for found in (few, many):
        assert found.mean == 0.5
        assert found.low < 0.5 < found.high
    assert many.high - many.low < few.high - few.low


def test_a_question_asked_again_adds_no_certainty() -> None:
    once = interval((n, float(n % 2)) for n in range(20))
    again = interval((n, float(n % 2)) for n in [*range(20)] * 5)
    assert (again.low, again.high, again.n) == (once.low, once.high, 20)
    assert interval([]).n == 0


def test_the_report_reads_as_json_and_as_tables(folder: Path) -> None:
    report = lived(folder, conversations=2)
    document = report.as_json()
    assert document["questions"] == 16
    assert set(document["ways"]) == set(WAYS)
    way = document["ways"]["prior + person"]
    assert {"overall", "gain", "first_half", "second_half", "by_conversation", "by_seed", "served", "curve"} == set(way)
    assert way["overall"]["low"] <= way["overall"]["mean"] <= way["overall"]["high"]
    assert len(way["curve"]) == 8
    assert [table.row_count for table in report.tables()] == [4, 4]
    assert "16 questions of 2 conversations" in summary(report)


@pytest.mark.shared
def test_honest_feedback_does_not_end_below_untrained(tmp_path: Path) -> None:
    """One direction of one pair: a user with another's prior. A smoke test, not the measurement."""
    pair = tmp_path / "pair"
    pair.mkdir()
    for name in ("26", "30"):
        (pair / f"{name}.json").write_bytes((shared_data("locomo") / f"{name}.json").read_bytes())
    report = learn.run(pair, learn.Settings())
    assert report.gain("prior + person").mean >= 0
    assert report.recall("prior + person").mean >= report.recall("untrained").mean
