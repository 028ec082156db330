"""RealMem on a tiny life with known answers, and on the real personas where they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from evals import realmem
from evals.run import Settings

from .shared import shared_data


def turn(speaker: str, content: str, **more: Any) -> dict[str, Any]:  # further fields of the file
    return {"speaker": speaker, "content": content, "is_query": False, **more}


def session(uuid: str, date: str, *turns: dict[str, Any]) -> dict[str, Any]:
    return {"session_uuid": uuid, "current_time": date, "dialogue_turns": list(turns)}


LIFE = {
    "_metadata": {"person_name": "Zoe"},
    "dialogues": [
        session("s1", "2025-12-15 (Monday)", turn("User", "My greenhouse grows tomatoes."), turn("Assistant", "Nice!")),
        session(
            "s2", "2025-12-16 (Tuesday)", turn("User", "I play the cello on Sundays."), turn("Assistant", "Lovely.")
        ),
        session(
            "s3",
            "2025-12-20 (Saturday)",
            turn("User", "What should I feed the tomatoes in my greenhouse?", is_query=True, category_name="Dynamic"),
            turn("Assistant", "Potash.", memory_session_uuids=["s1"]),
            turn("User", "And the cello?", is_query=True),
            turn("Assistant", "Rosin.", memory_session_uuids=["s2", "s3", "s4"]),
            turn("User", "What did I just say?", is_query=True),
            turn("Assistant", "This.", memory_session_uuids=["s3"]),
            turn("User", "Anyone there?", is_query=True),
        ),
        session("s4", "2025-12-21 (Sunday)", turn("User", "Tomatoes, greenhouse, tomatoes, cello!")),
    ],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "Zoe_dialogues.json").write_text(json.dumps(LIFE), encoding="utf-8")
    return tmp_path


def test_gold_is_what_earlier_sessions_hold(folder: Path) -> None:
    (persona,) = realmem.load(folder)
    assert persona.name == "Zoe"
    queries = persona.sessions[2].queries
    assert [query.sessions for query in queries] == [{"s1"}, {"s2"}]  # own and later sessions cannot be found
    assert [query.category for query in queries] == ["Dynamic", "other"]
    assert persona.skipped == 2


def test_a_query_sees_earlier_sessions_only(folder: Path) -> None:
    report = realmem.run(folder, Settings(ks=(1, 2), embedder="hash"))
    assert report.levels == ["session"]
    means = report.overall("session").means
    assert means["recall@1"] == 100.0  # the later session s4 would win if it were there, and s3 too
    assert (len(report.graded), report.skipped, report.entries) == (2, 2, 12)


@pytest.mark.shared
def test_the_shared_personas_reach_the_agreed_recall() -> None:
    report = realmem.run(shared_data("realmem"), Settings(ks=(10,)))
    assert len(report.graded) > 400
    assert report.overall("session").means["recall@10"] >= 68
