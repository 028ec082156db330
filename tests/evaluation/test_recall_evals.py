"""Data sets are read, and recall on them is measured, on tiny files with known answers."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from evals import data, extraction, recall
from evals.data import DataError
from evals.recall import Settings, ndcg_at, recall_at
from evals.report import Report

pytestmark = pytest.mark.slow  # the measurements, not the product
LOCOMO: dict[str, Any] = {
    "session_1_date_time": "1:56 pm on 8 May, 2023",
    "session_1": [
        {"speaker": "Ada", "dia_id": "D1:1", "text": "I adopted a hedgehog named Prickle."},
        {"speaker": "Bob", "dia_id": "D1:2", "text": "Look at this", "blip_caption": "a photo of a sailing boat"},
    ],
    "session_2_date_time": "12:09 am on 13 September, 2023",
    "session_2": [
        {"speaker": "Bob", "dia_id": "D2:1", "text": ""},
        {"speaker": "Bob", "dia_id": "D2:2", "text": "I start as a baker on Monday."},
    ],
    "qa": [
        {"question": "What is the hedgehog named?", "evidence": ["D1:1"], "category": 4},
        {"question": "Who has a sailing boat and who is a baker?", "evidence": ["D1:2; D2:2", "D9:9"], "category": 1},
        {"question": "Unanswerable?", "evidence": ["D7:7", "nonsense"], "category": 5},
    ],
}


def turn(speaker: str, content: str, **more: Any) -> dict[str, Any]:
    return {"speaker": speaker, "content": content, "is_query": False, **more}


def session(uuid: str, date: str, *turns: dict[str, Any], gold: int | None = None) -> dict[str, Any]:
    memory = [] if gold is None else [{"content": "a memory", "source_turn": gold}]
    return {"session_uuid": uuid, "current_time": date, "dialogue_turns": list(turns), "extracted_memory": memory}


REALMEM = {
    "_metadata": {"person_name": "Zoe_Ray"},
    "dialogues": [
        session("s1", "2025-12-15", turn("User", " "), turn("User", "I live in Oslo and I grow tomatoes."), gold=2),
        session("s2", "2025-12-16", turn("User", "I play the cello on Sundays."), turn("Assistant", "Lovely."), gold=0),
        session(
            "s3",
            "2025-12-20 (Saturday)",
            turn("User", "What should I feed the tomatoes I grow?", is_query=True, category_name="Dynamic"),
            turn("Assistant", "Potash.", memory_session_uuids=["s1"]),
            turn("User", "And the cello?", is_query=True),
            turn("Assistant", "Rosin.", memory_session_uuids=["s2", "s3", "s4"]),
            turn("User", "Anyone there?", is_query=True),
        ),
        session("s4", "2025-12-21", turn("User", "Tomatoes, greenhouse, tomatoes, cello!")),
    ],
}
LONG = "The lighthouse of Kilmory stands on a cliff. " + "Its keeper wrote many letters about the sea. " * 60
PASSAGES = [
    {"title": "Kilmory", "text": LONG},
    {"title": "Moira Kell", "text": "Moira Kell was keeper of the Kilmory lighthouse."},
    {"title": "Moira Kell", "text": "Moira Kell is also the name of a racing yacht."},
    {"title": "Nothing", "text": ""},
]
MUSIQUE = [
    {
        "id": "2hop__1_2",
        "question": "Who was keeper of the lighthouse that stands on a cliff in Kilmory?",
        "paragraphs": [
            {"title": p["title"], "paragraph_text": p["text"], "is_supporting": n < 2} for n, p in enumerate(PASSAGES)
        ],
    },
    {"id": "2hop__3", "question": "Lost?", "paragraphs": []},
]
HOTPOT = [{"question": "What holds tea?", "supporting_facts": [["Tea", 0], ["Cup", 0], ["Tea", 1]], "type": "bridge"}]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {
        "locomo/1.json": LOCOMO,
        "realmem/zoe.json": REALMEM,
        "multihop/musique.json": MUSIQUE,
        "multihop/musique_corpus.json": PASSAGES,
        "multihop/hotpot.json": HOTPOT,
        "multihop/hotpot_corpus.json": {"Tea": ["Tea is a drink.", " It is brewed."], "Cup": ["A cup holds tea."]},
    }
    for name, value in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(json.dumps(value), encoding="utf-8")
    return tmp_path


# -- data ------------------------------------------------------------------------------------------------------------


def test_locomo_keeps_dates_captions_and_evidence(folder: Path) -> None:
    (talk,) = data.locomo(folder / "locomo")
    assert talk.sessions[0].at == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert talk.sessions[0].turns[1] == ("Bob", "Look at this [shares a photo of a sailing boat]")
    # The empty turn is not added, so the baker's turn has number 0 of its session.
    assert [one.evidence for one in talk.questions] == [{("session_1", 0)}, {("session_1", 1), ("session_2", 0)}]
    assert talk.skipped == 1


def test_realmem_answers_come_from_earlier_sessions(folder: Path) -> None:
    (persona,) = data.realmem(folder / "realmem")
    assert [one.evidence for one in persona.sessions[2].questions] == [{"s1"}, {"s2"}]
    assert (persona.name, persona.skipped) == ("Zoe Ray", 1)
    assert [one.turn for one in persona.sessions[0].gold] == [0]  # the blank turn before it is not said
    assert [one.turn for one in persona.sessions[1].gold] == [None]


def test_both_shapes_of_multihop_resolve_to_passages(folder: Path) -> None:
    hotpot, musique = data.multihop(folder / "multihop")
    assert hotpot.passages[0] == ("Tea", "Tea is a drink. It is brewed.")
    assert hotpot.questions[0].evidence == musique.questions[0].evidence == {0, 1}
    assert (hotpot.questions[0].category, musique.questions[0].category) == ("bridge", "2hop")
    assert (musique.skipped, musique.passages[3]) == (1, ("Nothing", "Nothing"))


@pytest.mark.parametrize("load", [data.locomo, data.realmem, data.multihop])
@pytest.mark.parametrize("content", [None, "{", "5", '{"dialogues": 3}', '{"a": {"b": 1}}', "null"])
def test_missing_and_misshapen_files_are_named(load: Any, content: str | None, tmp_path: Path) -> None:
    for name in ("a.json", "a_corpus.json"):
        if content is not None:
            (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=r"public repository|cannot read"):
        load(tmp_path)


# -- recall ----------------------------------------------------------------------------------------------------------


def test_the_metrics() -> None:
    assert recall_at(["b", "a", "a", "c"], {"a", "c"}, 2) == 0.5
    assert recall_at(["b", "a", "a", "c"], {"a", "c"}, 3) == 1.0  # a name that occurs again takes no place
    assert ndcg_at(["a", "b"], {"a"}, 2) == 1.0
    assert ndcg_at(["b", "a"], {"a"}, 2) == pytest.approx(0.6309, abs=1e-4)
    with pytest.raises(ValueError, match="relevant"):
        recall_at(["a"], set(), 1)


def measured(name: str, folder: Path) -> Report:
    settings = Settings(ks=(1, 2, 5), embedder="hash")
    seen: list[tuple[int, int]] = []
    report: Report = getattr(recall, name)(folder / name, settings, progress=lambda *step: seen.append(step))
    assert seen[-1][0] == seen[-1][1]
    return report


def test_recall_is_measured_on_each_set(folder: Path) -> None:
    turns = measured("locomo", folder).table("turn")
    assert (turns.cell("overall", "recall@1"), turns.cell("overall", "recall@2")) == (75.0, 100.0)
    assert turns.cell("multi-hop", "all@1") == 0.0
    # The later session s4 would win if it were there already.
    assert measured("realmem", folder).table("session").cell("overall", "recall@1") == 100.0
    passages = measured("multihop", folder)
    assert passages.table("passage").cell("musique", "all@5") == 100.0
    assert passages.about["skipped"] == 1


def test_extraction_compares_with_gold(folder: Path) -> None:
    report = extraction.run(folder / "realmem", examples=3)
    table = report.table("extraction")
    assert table.cell("overall", "sessions") == 4
    assert table.cell("Zoe Ray", "gold turns covered").n <= 1
    assert table.cell("overall", "junk").n == 2
    assert report.about["by"] == "rules"


# -- reports ---------------------------------------------------------------------------------------------------------
