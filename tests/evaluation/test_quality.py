"""Quality on the shared data: bounds that a change must not fall below. Skipped where the data is absent."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from evals import extraction, judge, learn, recall
from evals.recall import Settings

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.shared,
    pytest.mark.skipif(not DATA.is_dir(), reason=f"no evaluation data in {DATA}"),
]


def test_locomo_reaches_the_agreed_recall_also_with_memories() -> None:
    alone = recall.locomo(DATA / "locomo", Settings(ks=(5,))).table("turn").cell("overall", "recall@5")
    beside = recall.locomo(DATA / "locomo", Settings(ks=(5,), reflected=True)).table("turn").cell("overall", "recall@5")
    assert alone >= 72
    assert beside >= alone - 1


def test_realmem_reaches_the_agreed_recall() -> None:
    assert recall.realmem(DATA / "realmem", Settings(ks=(10,))).table("session").cell("overall", "recall@10") >= 67


def test_multihop_reaches_the_agreed_recall() -> None:
    table = recall.multihop(DATA / "multihop", Settings(ks=(5,))).table("passage")
    assert table.cell("hotpotqa_train", "all@5") >= 65
    assert table.cell("musique_train", "all@5") >= 25


def test_honest_feedback_does_not_end_below_untrained() -> None:
    report = learn.run(DATA / "locomo", learn.Settings(conversations=2))
    assert report.table("overall").cell("prior + person", "gain").mean >= -1


def test_rules_find_memories_and_little_junk() -> None:
    table = extraction.run(DATA / "realmem").table("extraction")
    assert table.cell("overall", "gold turns covered").mean >= 60
    assert table.cell("overall", "right").mean >= 55
    assert table.cell("overall", "junk").mean <= 0.75


def test_verdicts_that_teach_are_mostly_right_and_siblings_are_found() -> None:
    report = judge.run(DATA)
    rows = {(row[0], row[1]): row for row in report.table("the judge without a model").rows}
    assert rows["hotpotqa", "check"][7].mean >= 85
    assert report.table("found from a sibling").cell("taubench", "found@1").mean > 25


def test_the_command_prints_json() -> None:
    command = [sys.executable, "-m", "evals", "multihop", "--data", str(DATA), "--k", "5", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["questions"] == 120
