"""The benchmarks run and report what they promise; how fast anything is, is not a test's business."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_quick_mode_measures_every_subject() -> None:
    command = [sys.executable, "-m", "bench", "--quick", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=True)
    tables = json.loads(done.stdout)["tables"]
    assert list(tables) == ["recall", "remember", "outcome", "forget", "import", "scale, CPU time"]
    assert all(rows for rows in tables.values())
    assert [row["call"] for row in tables["recall"]] == ["recall", "after an add"]
    assert [row["durability"] for row in tables["remember"]] == ["full", "full", "normal", "normal"]


def test_an_unknown_subject_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench", "luck"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "unknown subject 'luck'" in done.stderr
