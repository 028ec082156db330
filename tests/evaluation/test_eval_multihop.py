"""Multi-hop sets in both published shapes, tiny, and the real ones where they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from evals import multihop
from evals.run import Settings

from .shared import shared_data

LONG = "The lighthouse of Kilmory stands on a cliff. " + "Its keeper wrote many letters about the sea. " * 60


def write(folder: Path, name: str, value: object) -> None:
    (folder / name).write_text(json.dumps(value), encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    passages = [
        {"title": "Kilmory", "text": LONG},
        {"title": "Moira Kell", "text": "Moira Kell was keeper of the Kilmory lighthouse."},
        {"title": "Moira Kell", "text": "Moira Kell is also the name of a racing yacht."},
        {"title": "Bread", "text": "Bread is baked from flour and water."},
        {"title": "Nothing", "text": ""},
    ]
    paragraphs = [
        {"title": p["title"], "paragraph_text": p["text"], "is_supporting": number < 2}
        for number, p in enumerate(passages)
    ]
    question = "Who was keeper of the lighthouse that stands on a cliff in Kilmory?"
    lost = [{"title": "Gone", "paragraph_text": "Gone", "is_supporting": True}]
    write(tmp_path, "musique_corpus.json", passages)
    write(
        tmp_path,
        "musique.json",
        [
            {"id": "2hop__1_2", "question": question, "paragraphs": paragraphs},
            {"id": "2hop__3_4", "question": "Lost?", "paragraphs": lost},
        ],
    )
    write(tmp_path, "hotpot_corpus.json", {"Tea": ["Tea is a drink.", " It is brewed."], "Cup": ["A cup holds tea."]})
    facts = [["Tea", 0], ["Cup", 0], ["Tea", 1]]
    write(
        tmp_path,
        "hotpot.json",
        [{"question": "What holds the drink tea?", "supporting_facts": facts, "type": "bridge"}],
    )
    return tmp_path


def test_both_shapes_resolve_to_passages(folder: Path) -> None:
    hotpot, musique = multihop.load(folder)
    assert (hotpot.name, musique.name) == ("hotpot", "musique")
    assert hotpot.passages[0].text == "Tea is a drink. It is brewed."
    assert hotpot.questions[0].support == {0, 1}
    assert musique.questions[0].support == {0, 1}  # of two passages with one title, the one that was marked
    assert (hotpot.questions[0].category, musique.questions[0].category) == ("bridge", "2hop")
    assert (hotpot.skipped, musique.skipped) == (0, 1)
    assert musique.passages[4].text == "Nothing"


def test_chunks_count_as_their_passage(folder: Path) -> None:
    seen: list[tuple[int, int]] = []
    report = multihop.run(folder, Settings(ks=(2, 5), embedder="hash"), progress=lambda *step: seen.append(step))
    assert report.entries > 7  # the long passage has several entries
    means = report.overall("passage").means
    assert (means["recall@5"], means["all@5"]) == (100.0, 100.0)
    assert [row.label for row in report.by_conversation("passage")] == ["hotpot", "musique"]
    assert report.skipped == 1
    assert seen[-1] == (9, 9)  # seven passages and two questions


@pytest.mark.shared
def test_the_shared_sets_run() -> None:
    report = multihop.run(shared_data("multihop"), Settings(ks=(5,)))
    assert len(report.graded) == 120
    assert report.overall("passage").means["recall@5"] >= 60
