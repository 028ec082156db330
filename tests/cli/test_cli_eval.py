"""`wellworn eval` as a command: its document, its tables, its errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Cli


@pytest.fixture
def data(tmp_path: Path) -> str:
    folder = tmp_path / "locomo"
    folder.mkdir()
    turns = [
        {"speaker": "Ada", "dia_id": "D1:1", "text": "I adopted a hedgehog named Prickle."},
        {"speaker": "Bob", "dia_id": "D1:2", "text": "I start as a baker on Monday."},
    ]
    questions = [{"question": "What is the hedgehog named?", "evidence": ["D1:1"], "category": 4}]
    conversation = {"session_1_date_time": "1:56 pm on 8 May, 2023", "session_1": turns, "qa": questions}
    (folder / "tiny.json").write_text(json.dumps(conversation), encoding="utf-8")
    return str(folder)


def test_json_is_one_document(cli: Cli, data: str) -> None:
    report = cli.json("eval", "locomo", "--data", data, "--k", "1,2")
    assert (report["dataset"], report["k"], report["questions"], report["embedder"]) == ("locomo", [1, 2], 1, "hash")
    assert report["levels"]["turn"]["overall"]["recall@1"] == 100.0
    assert set(report["levels"]["session"]) == {"overall", "by_category", "by_conversation"}
    assert report["latency_ms"] > 0
    assert not cli.db.exists()


def test_tables_go_to_stdout_and_the_rest_to_stderr(cli: Cli, data: str) -> None:
    answer = cli.ok("eval", "locomo", "--data", data, "--profile", "paper")
    for word in ("turn level", "session level", "single-hop", "tiny", "R@20", "100.0"):
        assert word in answer.out
    assert "ms a recall, embedder hash, profile paper" in answer.err


def test_the_nearest_embedder_counts(cli: Cli, data: str) -> None:
    after = ["eval", "locomo", "--data", data, "--embedder", "hash:32"]
    assert cli.json("--embedder", "hash:64", *after)["embedder"] == "hash:32"
    assert cli.json("--embedder", "hash:64", *after[:-2])["embedder"] == "hash:64"


def test_memories_can_be_stored_beside_the_turns(cli: Cli, data: str) -> None:
    alone = cli.json("eval", "locomo", "--data", data, "--k", "1")
    beside = cli.json("eval", "locomo", "--data", data, "--k", "1", "--with-memories")
    assert (alone["entries"], beside["entries"]) == (2, 4)
    assert "hit" not in alone["levels"]
    assert set(beside["levels"]) == {"turn", "session", "hit"}
    assert beside["levels"]["turn"]["overall"]["recall@1"] == 100.0


@pytest.fixture
def life(tmp_path: Path) -> str:
    folder = tmp_path / "realmem"
    folder.mkdir()
    sessions = [
        {
            "session_uuid": uuid,
            "current_time": "2025-12-15 (Monday)",
            "dialogue_turns": [{"speaker": "User", "content": text}],
            "extracted_memory": [{"content": "User has a hedgehog.", "source_turn": 1}] if gold else [],
        }
        for uuid, text, gold in [
            ("a", "I adopted a hedgehog yesterday.", True),
            ("b", "Explain photosynthesis.", False),
            ("c", "I live in Oslo.", False),
        ]
    ]
    document = {"_metadata": {"person_name": "Zoe"}, "dialogues": sessions}
    (folder / "zoe.json").write_text(json.dumps(document), encoding="utf-8")
    return str(folder)


def test_extraction_as_a_document(cli: Cli, life: str) -> None:
    report = cli.json("eval", "extraction", "--data", life, "--examples", "1")
    assert (report["dataset"], report["extractor"], report["overall"]["sessions"]) == ("realmem", "rules", 3)
    assert report["overall"]["coverage"]["mean"] == report["overall"]["precision"]["mean"] == 100.0
    assert report["by_persona"]["Zoe"]["junk"]["mean"] == 0.5
    assert report["examples"] == ["junk: Zoe, c: Zoe lives in Oslo."]
    assert cli.json("eval", "extraction", "--data", life, "--limit", "1")["overall"]["sessions"] == 1


def test_extraction_as_a_table(cli: Cli, life: str) -> None:
    answer = cli.ok("eval", "extraction", "--data", life, "--examples", "3")
    for word in ("coverage", "precision", "junk", "Zoe", "0.50", "Zoe lives in Oslo."):
        assert word in answer.out
    assert "extractor rules" in answer.err


@pytest.mark.parametrize("dataset", ["locomo", "realmem", "multihop", "extraction"])
@pytest.mark.parametrize("options", [[], ["--data", "nowhere"]])
def test_missing_data_is_one_line_with_a_hint(cli: Cli, dataset: str, options: list[str]) -> None:
    answer = cli("eval", dataset, *options)
    assert (answer.code, answer.out) == (2, "")
    assert "Dataset not shipped" in answer.err
    assert answer.err.count("\n") == 1


@pytest.mark.parametrize("options", [["--k", "zero"], ["--embedder", "psychic"], ["--profile", "psychic"]])
def test_bad_options_are_refused(cli: Cli, data: str, options: list[str]) -> None:
    answer = cli("eval", "locomo", "--data", data, *options)
    assert answer.code == 2
    assert answer.err.startswith("wellworn: ")


def test_the_router_is_measured_without_and_with_data(cli: Cli, data: str) -> None:
    report = cli.json("eval", "router")
    assert report["labelled"] >= 200
    assert report["precision"] > 0.9
    assert report["habits"] == {}
    answer = cli.ok("eval", "router", "--data", data, "--threshold", "1.1")
    assert "recall 0.000" in answer.err
    assert "best of both" in answer.out
