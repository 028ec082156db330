"""The measure of extraction on a tiny life with known figures, and the rules' aims on the real personas."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from evals import extraction, locomo
from evals.extracting import ModelExtractor
from evals.extraction_report import summary
from evals.run import Settings

from wellworn.core.errors import InvalidInput
from wellworn.core.values import Turn
from wellworn.models import ScriptedModel
from wellworn.reflection.candidate import Candidate
from wellworn.reflection.settings import ReflectionSettings

from .shared import shared_data


def session(uuid: str, gold: list[int], *texts: str) -> dict[str, Any]:  # a session of the file
    return {
        "session_uuid": uuid,
        "current_time": "2025-12-15 (Monday)",
        "dialogue_turns": [
            {"speaker": "User" if number % 2 == 0 else "Assistant", "content": text}
            for number, text in enumerate(texts)
        ],
        "extracted_memory": [{"content": f"gold {turn}", "source_turn": turn} for turn in gold],
    }


LIFE: dict[str, Any] = {  # a file of the set
    "_metadata": {"person_name": "Zoe_Ray"},
    "dialogues": [
        # Turns 1 (twice) and 3 are gold; the one at 0 has no source turn, the one at 9 none that exists.
        session("s1", [1, 1, 3, 0, 9], "one", "two", "three", " ", "five"),
        session("s2", [2], "six", "seven"),
        session("f1", [], "eight", "nine"),
        session("f2", [], "ten"),
    ],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "Zoe.json").write_text(json.dumps(LIFE), encoding="utf-8")
    return tmp_path


def found(turns: Sequence[Turn], user: str | None) -> list[Candidate]:
    """Right at "one", wrong at "five", nothing in s2, one piece of junk."""
    assert user == "Zoe Ray"
    known: dict[str, list[tuple[int, ...]]] = {"s1": [(0, 1), (4,)], "f1": [(0,)]}
    places = known.get(turns[0].session_id, [])
    return [Candidate(summary=f"{turns[0].session_id} {place}", turns=place) for place in places]


def test_turns_keep_the_numbers_of_the_file(folder: Path) -> None:
    (life,) = extraction.load(folder)
    assert [turn.number for turn in life.sittings[0].turns] == [0, 1, 2, 4]  # the blank one is not said
    assert [gold.turn for gold in life.sittings[0].gold] == [0, 0, 2, None, None]


def test_the_figures_are_what_they_say(folder: Path) -> None:
    row = extraction.run(folder, found).overall()
    assert row.coverage.mean == pytest.approx(100 / 3)  # of turns 0 and 2 of s1 and turn 1 of s2, the first
    assert row.gold.mean == pytest.approx(200 / 4)
    assert row.precision.mean == pytest.approx(100 / 2)  # one of the two in s1; junk in fillers is counted apart
    assert row.evidence.mean == pytest.approx(100 / 3)  # of turns 0, 1 and 4
    assert (row.junk.mean, row.junk.n) == (0.5, 2)
    assert (row.sessions, row.fillers, row.memories) == (4, 2, 3)
    assert row.turns_per_memory == pytest.approx(4 / 3)


def test_a_limit_reads_the_first_sessions_only(folder: Path) -> None:
    assert extraction.run(folder, found, limit=1).overall().sessions == 1


def test_progress_counts_sessions(folder: Path) -> None:
    seen: list[tuple[int, int]] = []
    extraction.run(folder, found, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_examples_show_what_was_missed_and_what_is_junk(folder: Path) -> None:
    report = extraction.run(folder, found, name="mine")
    assert report.examples(1) == ["missed: Zoe Ray, s1, turn 2: gold 3", "junk: Zoe Ray, f1: f1 (0,)"]
    assert report.examples(0) == []
    assert len(report.examples(9)) == 3
    assert "extractor mine" in summary(report)
    assert report.as_json()["by_persona"]["Zoe Ray"]["junk"]["mean"] == 0.5


def test_nothing_found_is_nothing_precise(folder: Path) -> None:
    row = extraction.run(folder, lambda turns, user: []).overall()
    assert (row.coverage.mean, row.precision.mean, row.junk.mean, row.turns_per_memory) == (0.0, 0.0, 0.0, 0.0)


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"dialogues": [{"no": 1}]}', encoding="utf-8")
    with pytest.raises(InvalidInput, match="is not a realmem file"):
        extraction.load(tmp_path)


@pytest.mark.shared
def test_the_rules_reach_the_aims_for_every_persona() -> None:
    report = extraction.run(shared_data("realmem"))
    for row in report.by_persona():
        assert row.coverage.mean >= 70, row.label
        assert row.precision.mean >= 60, row.label
        assert row.junk.mean <= 0.17, row.label
    assert report.overall().junk.mean <= 0.15


@pytest.mark.shared
def test_memories_beside_the_turns_do_not_lower_recall() -> None:
    folder = shared_data("locomo")
    plain = Settings(ks=(5,))
    alone = locomo.run(folder, plain)
    beside = locomo.run(folder, plain, reflected=True)
    assert beside.entries > alone.entries + 800
    # Words of the memories make words of the turns less rare, by a hair: two questions in 997 may go either way.
    assert beside.overall("turn").means["recall@5"] >= alone.overall("turn").means["recall@5"] - 0.2


def test_a_model_is_asked_as_reflection_asks_it(folder: Path) -> None:
    said = {"extracted_memories": [{"summary": "Zoe said one", "reference": [0]}]}
    model = ScriptedModel(
        [json.dumps(said), "no JSON at all", "NO_TRAIT", "NO_TRAIT"], input_tokens=100, output_tokens=10
    )
    extract = ModelExtractor(model)
    report = extraction.run(folder, extract, name=extract.name)
    assert [request.purpose for request in model.requests] == ["extract"] * 4
    assert report.as_json()["took"] == {"calls": 4, "input_tokens": 400, "output_tokens": 40, "by_rules_instead": 1}
    assert report.overall().coverage.mean == pytest.approx(100 / 3)
    assert report.overall().precision.mean == 100
    assert "extractor scripted (calls 4, input tokens 400" in summary(report)


def test_a_long_session_is_read_in_windows(folder: Path) -> None:
    model = ScriptedModel("NO_TRAIT")
    extract = ModelExtractor(model, ReflectionSettings(window_turns=2, context_turns=1))
    extraction.run(folder, extract, limit=1)
    assert extract.took()["calls"] == 2
