"""LoCoMo on a tiny conversation with known answers, and on the real ones where they are."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from evals import locomo
from evals.run import Settings

from .shared import shared_data

CONVERSATION: dict[str, Any] = {
    "speaker_a": "Ada",
    "speaker_b": "Bob",
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
    "session_3_date_time": "1:00 pm on 1 January, 2024",
    "qa": [
        {"question": "What is the hedgehog named?", "evidence": ["D1:1"], "category": 4},
        {"question": "Who has a sailing boat and who is a baker?", "evidence": ["D1:2; D2:2", "D9:9"], "category": 1},
        {"question": "Unanswerable?", "evidence": ["D7:7", "nonsense"], "category": 5},
        {"question": "Nothing?", "evidence": [], "category": 3},
    ],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "1.json").write_text(json.dumps(CONVERSATION), encoding="utf-8")
    return tmp_path


def test_sessions_keep_their_date_captions_and_speakers(folder: Path) -> None:
    (conversation,) = locomo.load(folder)
    first, second = conversation.sessions
    assert first.at == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert second.at == datetime(2023, 9, 13, 0, 9, tzinfo=UTC)
    assert first.turns[1].text == "Look at this [shares a photo of a sailing boat]"
    assert first.turns[0].speaker == "Ada"


def test_evidence_is_split_and_what_does_not_resolve_is_dropped(folder: Path) -> None:
    (conversation,) = locomo.load(folder)
    single, multi = conversation.questions
    assert (single.category, single.evidence) == ("single-hop", frozenset({("session_1", 0)}))
    # the empty turn is not added, so the baker's turn has number 0 of its session
    assert (multi.category, multi.evidence) == ("multi-hop", frozenset({("session_1", 1), ("session_2", 0)}))
    assert conversation.skipped == 2


def test_the_published_file_of_all_conversations_loads_too(tmp_path: Path) -> None:
    qa = CONVERSATION["qa"]
    dialogue = {key: value for key, value in CONVERSATION.items() if key != "qa"}
    samples = [{"sample_id": name, "conversation": dialogue, "qa": qa} for name in ("conv-1", "conv-2")]
    (tmp_path / "locomo10.json").write_text(json.dumps(samples), encoding="utf-8")
    assert [one.name for one in locomo.load(tmp_path)] == ["conv-1", "conv-2"]


def test_a_run_finds_the_evidence(folder: Path) -> None:
    seen: list[tuple[int, int]] = []
    report = locomo.run(folder, Settings(ks=(1, 2), embedder="hash"), progress=lambda done, of: seen.append((done, of)))
    assert (len(report.graded), report.skipped, report.entries) == (2, 2, 3)
    assert report.levels == ["turn", "session"]
    turn = report.overall("turn").means
    assert turn["recall@2"] == 100.0
    assert turn["recall@1"] == 75.0  # one of one, and one of two
    assert turn["hit@1"] == 100.0
    assert report.overall("session").means["recall@2"] == 100.0
    assert seen[-1] == (5, 5)  # three turns and two questions


@pytest.mark.shared
def test_the_shared_conversations_reach_the_agreed_recall() -> None:
    report = locomo.run(shared_data("locomo"), Settings(ks=(5,)))
    assert len(report.graded) > 900
    assert report.overall("turn").means["recall@5"] >= 62
