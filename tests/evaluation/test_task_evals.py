"""Learning in a world with hidden rules, and the judge on small labelled trajectories."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from evals import judge, tasks
from evals.data import DataError
from evals.report import Report
from evals.world import VOCABULARIES, kinds
from evals.world import tasks as world_tasks

pytestmark = pytest.mark.slow  # the measurements, not the product
FAST = ("empty", "shuffled")


@pytest.fixture(scope="module")
def lived() -> Report:
    return tasks.run(FAST, count=72, embedder="hash")


def test_the_bank_helps_and_an_empty_one_changes_nothing(lived: Report) -> None:
    success = lived.table("success")
    assert success.cell("shuffled", "gain").low > 0
    assert success.cell("shuffled", "calls per task") < success.cell("without", "calls per task")
    assert success.cell("empty", "gain").mean == 0


# -- the world and its agent -----------------------------------------------------------------------------------------


def test_the_two_vocabularies_share_no_task() -> None:
    tune, check = ({kind.noun for kind in kinds(words)} for words in VOCABULARIES.values())
    assert not tune & check
    assert all(task.query == task.query.strip() for task in world_tasks(VOCABULARIES["check"], 1, 60, shuffled=True))


# -- labelled trajectories -------------------------------------------------------------------------------------------


def tau_run(trial: int, *messages: dict[str, Any]) -> dict[str, Any]:
    return {"task_id": 1, "trial": trial, "reward": float(trial), "traj": list(messages)}


def called(name: str) -> dict[str, Any]:
    return {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": name, "arguments": "{}"}}]}


def said(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


REACT = """BEGIN TRIAL 1
------------- BEGIN CORRECT AGENTS -------------

Question: Who?
Thought 1: Look.
Action 1: Search[X]
Observation 1: Could not find [X].
Thought 2: So.
Action 2: Finish[Y]
Observation 2: Answer is CORRECT
Correct answer: Y

------------- BEGIN HALTED AGENTS --------------

Question: When?You have attempted to answer following question before
Thought 1: Hm.
Action 1: Wait
####
BEGIN TRIAL 2
"""


def test_both_sets_are_read_and_judged(tmp_path: Path) -> None:
    runs = [
        tau_run(
            trial,
            said("user", f"A flight to Seattle, please ({trial})"),
            called("pay"),
            said("tool", "Error: no card"),
            said("user", "Use the other"),
            called("book"),
            said("tool", "booked" if trial else "Error: full"),
            said("user", "###STOP###"),
        )
        for trial in (0, 1)
    ]
    (tmp_path / "air.json").write_text(json.dumps([*runs, runs[1]]), encoding="utf-8")
    (tmp_path / "react.txt").write_text(REACT, encoding="utf-8")
    found = judge.load(tmp_path)
    assert [(one.task, one.success) for one in found["hotpotqa"]] == [("Who?", True), ("When?", False)]
    assert "CORRECT" not in found["hotpotqa"][0].trajectory.text
    assert [(step.action, step.failed, step.text) for step in found["taubench"][1].trajectory.steps] == [
        ("pay", True, ""),
        ("", False, "User: Use the other"),
        ("book", False, ""),
    ]
    report = judge.run(tmp_path, embedder="hash")
    assert report.table("found from a sibling").cell("taubench", "trajectories") == 2  # each attempt once
    assert sum(row[2] for row in report.table("the judge without a model").rows) == 4


def test_a_folder_without_trajectories_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no labelled trajectories"):
        judge.load(tmp_path)
