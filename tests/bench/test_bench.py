"""The benchmarks run and report what they promise; how fast anything is, is not a test's business."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
COLUMNS = {
    "recall": {"bank", "entries", "call", "p50_ms", "p95_ms", "cpu_ms", "floor_p50_ms", "ratio", "cpu_ratio"},
    "recursive": {"bank", "entries", "call", "own_p50_ms", "cpu_ms", "plain_own_p50_ms", "ratio", "cpu_ratio"},
    "remember": {"durability", "entries", "call", "p50_ms", "cpu_ms", "floor_p50_ms", "ratio", "cpu_ratio"},
    "ingest": {"entries_before", "batch", "per_s", "cpu_us"},
    "memory": {"entries", "rss_added_mb", "per_100k_mb", "file_bytes_per_entry"},
    "import": {"statement", "cpu_s", "wall_s"},
    "forget": {"entries", "forgotten", "forget_p50_ms", "next_recall_p50_ms"},
    "middleware": {"middleware", "session", "entries", "own_p50_ms", "own_p95_ms", "recall", "storing", "learning"},
    "consolidation": {"entries", "duplicates", "first_s", "again_s", "floor_s", "ratio", "again_ratio", "added_mb"},
    "learn": {"call", "width", "entries", "p50_ms", "cpu_ms", "floor_cpu_ms", "cpu_ratio"},
    "bank": {"call", "width", "entries", "p50_ms", "p95_ms", "cpu_ms", "floor_cpu_ms", "cpu_ratio"},
}


@pytest.fixture(scope="module")
def quick_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    out = tmp_path_factory.mktemp("bench")
    run = subprocess.run(
        [sys.executable, "-m", "bench", "all", "--quick", "--json", "--out", str(out)],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout), out


def test_quick_mode_measures_every_subject(quick_run: tuple[dict[str, Any], Path]) -> None:
    results, _ = quick_run
    assert results["quick"] is True
    assert set(results["subjects"]) == set(COLUMNS)
    assert results["machine"]["blas_threads"] == "1"


@pytest.mark.parametrize("subject", COLUMNS)
def test_every_row_has_the_promised_columns(quick_run: tuple[dict[str, Any], Path], subject: str) -> None:
    rows = quick_run[0]["subjects"][subject]["rows"]
    assert rows
    for row in rows:
        assert COLUMNS[subject] <= set(row)
        assert all(isinstance(value, str | int | float) for value in row.values())
    assert len({frozenset(row) for row in rows}) == 1


def test_recall_and_remember_cover_every_size_and_variant(quick_run: tuple[dict[str, Any], Path]) -> None:
    results, _ = quick_run
    recalled = {(row["bank"], row["entries"], row["call"]) for row in results["subjects"]["recall"]["rows"]}
    assert recalled == {
        (bank, size, call)
        for bank in ("sessions", "notes")
        for size in results["sizes"]
        for call in ("recall", "with embedding", "after an add")
    }
    added = {(row["durability"], row["entries"], row["call"]) for row in results["subjects"]["remember"]["rows"]}
    assert added == {
        (mode, size, call)
        for mode in ("full", "normal")
        for size in results["sizes"]
        for call in ("remember", "session add")
    }


def test_learning_covers_outcomes_of_both_widths_and_a_ranker_that_serves(
    quick_run: tuple[dict[str, Any], Path],
) -> None:
    rows = quick_run[0]["subjects"]["learn"]["rows"]
    assert [(row["call"], row["width"]) for row in rows] == [
        ("outcome", 256),
        ("outcome", 1536),
        ("outcome, paper", 256),
        ("outcome, paper", 1536),
        ("recall, untrained", 256),
        ("recall, learned (person)", 256),
    ]


def test_the_results_file_equals_what_was_printed(quick_run: tuple[dict[str, Any], Path]) -> None:
    results, out = quick_run
    assert json.loads((out / "results.json").read_text(encoding="utf-8")) == results


def test_the_drawing_is_well_formed_and_names_its_lines(quick_run: tuple[dict[str, Any], Path]) -> None:
    drawing = ET.parse(quick_run[1] / "cost_vs_size.svg").getroot()
    words = {element.text for element in drawing.iter() if element.text}
    assert {"recall, sessions", "recall, notes", "bare scan", "remember, full", "bare commit, full"} <= words
