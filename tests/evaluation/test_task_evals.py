"""Learning in a world with hidden rules, and the judge on small labelled trajectories."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from evals import judge, tasks
from evals.data import DataError
from evals.report import Report, Steps
from evals.world import CHECK, VOCABULARIES, Read, Vocabulary, World, WorldCall, attempt, kinds, read
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


@pytest.mark.parametrize("words", VOCABULARIES.values(), ids=VOCABULARIES)
def test_every_kind_has_exactly_one_right_way(words: Vocabulary) -> None:
    world = World(words, 7)
    for kind in kinds(words):
        calls = [(list(way.before), WorldCall(kind.tool, {"name": "Ada", **dict(way.given)})) for way in kind.ways]
        assert [world.answer(kind, before, call)["ok"] for before, call in calls].count(True) == 1, kind


def test_the_two_vocabularies_share_no_task() -> None:
    tune, check = ({kind.noun for kind in kinds(words)} for words in VOCABULARIES.values())
    assert not tune & check
    assert all(task.query == task.query.strip() for task in world_tasks(VOCABULARIES["check"], 1, 60, shuffled=True))


def test_calling_something_else_without_an_error_is_no_success() -> None:
    words = VOCABULARIES["check"]
    task = world_tasks(words, 1, 18, shuffled=False)[0]
    told = Read(calls=(WorldCall("fetch_weather_data"),))
    done = attempt(World(words, 1), task, [told] * 3, seed=1, gullible=True, tries=1)
    assert done["steps"][-1]["ok"]
    assert done["checks"] == {CHECK: False}


def test_the_agent_reads_the_data_of_items() -> None:
    call, failed = {"tool": "f", "args": {"a": "[from the task]"}}, {"tool": "f", "args": {"b": "z"}, "error": "no"}
    assert read({"pattern_data": {"calls": [call], "failed": [failed]}}) == Read(
        calls=(WorldCall("f", {"a": "[from the task]"}),), failed=(WorldCall("f", {"b": "z"}),)
    )
    assert read({}) == Read()


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
