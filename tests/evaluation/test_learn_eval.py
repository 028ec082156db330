"""Learning lived through on tiny conversations with known answers."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from evals import learn
from evals.data import DataError
from evals.learn import WAYS, Citing
from evals.report import Report

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
    for name in ("ada", "bob"):
        (place / f"{name}.json").write_text(json.dumps(conversation(name.title())), encoding="utf-8")
    return place


def lived(folder: Path, **settings: Any) -> Report:
    return learn.run(folder, learn.Settings(embedder="hash", **settings))


def test_every_way_is_lived_and_the_untrained_one_stays_untrained(folder: Path) -> None:
    seen: list[tuple[int, int]] = []
    settings = learn.Settings(embedder="hash", seeds=2)
    report = learn.run(folder, settings, progress=lambda done, of: seen.append((done, of)))
    table = report.table("overall")
    assert [row[0] for row in table.rows] == list(WAYS)
    assert report.about["questions"] == table.cell("cold", "recall@5").n == 16
    assert table.cell("untrained", "gain").mean == 0
    assert table.cell("untrained", "% by person") == 0
    assert report.table("by conversation").columns == ("way", "ada", "bob")
    assert seen[-1] == (seen[-1][1], 16 + 2 * 16 * 5)  # turns, then four ways and one other user


def test_a_run_can_be_repeated(folder: Path) -> None:
    citing = Citing(miss=0.3, false=0.15)
    assert lived(folder, citing=citing).as_json() == lived(folder, citing=citing).as_json()


def test_a_prior_needs_someone_else(folder: Path) -> None:
    with pytest.raises(DataError, match="two conversations"):
        lived(folder / "ada.json")


SHOWN = [True, False, True, False, False]


@pytest.mark.parametrize(
    ("feedback", "places"), [("honest", [0, 2]), ("inverted", [1, 3, 4]), ("first", [0]), ("last", [4])]
)
def test_citations_without_noise(feedback: str, places: list[int]) -> None:
    assert Citing(feedback=feedback).cited(SHOWN, random.Random(1)) == places


@pytest.mark.parametrize(("feedback", "on_evidence", "elsewhere"), [("honest", 0.7, 0.15), ("random", 0.3, 0.3)])
def test_error_rates_are_met(feedback: str, on_evidence: float, elsewhere: float) -> None:
    rng, citing = random.Random(2), Citing(feedback=feedback, miss=0.3, false=0.15)
    runs = [citing.cited(SHOWN, rng) for _ in range(4000)]
    assert sum(0 in run for run in runs) / 4000 == pytest.approx(on_evidence, abs=0.03)
    assert sum(1 in run for run in runs) / 4000 == pytest.approx(elsewhere, abs=0.03)


@pytest.mark.parametrize("wrong", [{"feedback": "kind"}, {"miss": 9.0}, {"false": -0.1}])
def test_unusable_feedback_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="honest"):
        Citing(**wrong)
