"""The benchmarks run and report what they promise; how fast anything is, is not a test's business."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from bench.plot import APART, growth

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_quick_mode_measures_every_subject(tmp_path: Path) -> None:
    plot = tmp_path / "growth.svg"
    command = [sys.executable, "-m", "bench", "--quick", "--json", "--svg", str(plot)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=True)
    tables = json.loads(done.stdout)["tables"]
    assert list(tables) == ["recall", "remember", "outcome", "forget", "import", "scale, CPU time"]
    assert all(rows for rows in tables.values())
    assert [row["call"] for row in tables["recall"]] == ["recall", "after an add"]
    assert [row["durability"] for row in tables["remember"]] == ["full", "full", "normal", "normal"]
    assert len(ElementTree.parse(plot).findall("{*}polyline")) == 4


def test_a_plot_has_a_line_for_each_cost_and_labels_that_do_not_touch() -> None:
    drawn = ElementTree.fromstring(growth([10, 1000], {"one": [1.0, 10.0], "two": [2.0, 10.1]}, title="growth"))
    lines = [line.get("points", "").split() for line in drawn.findall("{*}polyline")]
    assert [len(points) for points in lines] == [2, 2]
    assert float(lines[0][0].split(",")[1]) > float(lines[0][1].split(",")[1])  # more is higher up
    places = [float(text.get("y", "")) for text in drawn.findall("{*}text") if text.text in ("one", "two")]
    assert abs(places[0] - places[1]) >= APART


def test_an_unknown_subject_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench", "luck"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "unknown subject 'luck'" in done.stderr
