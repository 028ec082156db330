"""Learning in a world with hidden rules, and the judge on small labelled trajectories."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from evals import judge, tasks
from evals.data import DataError
from evals.report import Report, Steps
from evals.world import CHECK, Call, Read, World, attempt, kinds, read
from evals.world import tasks as world_tasks

FAST = ("empty", "shuffled")


@pytest.fixture(scope="module")
def lived() -> Report:
    return tasks.run(FAST, count=72, embedder="hash")


def test_the_bank_helps_and_an_empty_one_changes_nothing(lived: Report) -> None:
    success = lived.table("success")
    assert success.cell("shuffled", "gain").low > 0
    assert success.cell("shuffled", "calls per task") < success.cell("without", "calls per task")
    assert success.cell("empty", "gain").mean == 0


def test_the_first_of_a_kind_goes_as_it_would_without() -> None:
    """The agent learns about a rule only from an item about it."""
    alone, helped = (tasks.live(tasks.WAYS[way], 100, 36, "hash", Steps(total=36)) for way in ("without", "shuffled"))
    steps = {one.number: one.steps for one in alone}
    unaided = [one for one in helped if not one.used]
    assert {one.kind for one in unaided} == {one.kind for one in helped}
    assert all(one.steps == steps[one.number] for one in unaided)


def test_every_way_can_be_lived() -> None:
    seen: list[tuple[int, int]] = []
    report = tasks.run(count=4, embedder="hash", progress=lambda *step: seen.append(step))
    assert [row[0] for row in report.table("success").rows] == list(tasks.WAYS)
    assert seen[-1] == (4 * len(tasks.WAYS), 4 * len(tasks.WAYS))
    with pytest.raises(ValueError, match="luck"):
        tasks.run(["luck"])


# -- the world and its agent -----------------------------------------------------------------------------------------


def test_every_kind_has_exactly_one_right_way() -> None:
    world = World(7)
    for kind in kinds():
        calls = [(list(way.before), Call(kind.tool, {"name": "Ada", **dict(way.given)})) for way in kind.ways]
        assert [world.answer(kind, before, call)["ok"] for before, call in calls].count(True) == 1, kind


def test_calling_something_else_without_an_error_is_no_success() -> None:
    task = world_tasks(1, 18, shuffled=False)[0]
    done = attempt(World(1), task, ["This worked: fetch_audit_log()."] * 3, seed=1, gullible=True, tries=1)
    assert done["steps"][-1]["ok"]
    assert done["checks"] == {CHECK: False}


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (
            'For tasks like “Make … (x=1)”: Call f(a=[from the task], b="x, (y)"). f failed with b="z": “no”.',
            Read(calls=(Call("f", {"a": "[from the task]", "b": "x, (y)"}),), failed=(Call("f", {"b": "z"}),)),
        ),
        ("This worked: g() → f(n=2.5).", Read(calls=(Call("g"), Call("f", {"n": 2.5})))),
        ('Do not rely on f(b="z"): it failed with “no”.', Read(failed=(Call("f", {"b": "z"}),))),
        ("Be careful.", Read()),
    ],
)
def test_the_agent_reads_items(text: str, meant: Read) -> None:
    assert read(text) == meant


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
