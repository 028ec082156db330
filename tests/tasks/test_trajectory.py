"""What agents have at hand becomes a bounded trajectory, and survives being kept."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellworn import InvalidInput
from wellworn.core.plain import from_plain, to_plain
from wellworn.tasks.trajectory import MAX_STEP_CHARS, MAX_STEPS, Step, Trajectory, mapped, trajectory_of

TEXTS = st.text(max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS, lambda inner: st.lists(inner, max_size=3), max_leaves=4
)
CODES, MAYBE = st.none() | st.integers(-5, 5), st.none() | st.booleans()
SAID = dict.fromkeys(("action", "text", "result", "error"), TEXTS)
STEPS = st.builds(Step, arguments=st.dictionaries(TEXTS, VALUES, max_size=3), exit_code=CODES, ok=MAYBE, **SAID)
ENDS = {"checks": st.dictionaries(TEXTS, st.booleans(), max_size=3), "trusted": st.booleans(), "verdict": MAYBE}
TRAJECTORIES = st.builds(
    Trajectory,
    steps=st.lists(STEPS, max_size=4).map(tuple),
    exit_code=CODES,
    used=st.none() | st.lists(st.integers(0, 5), max_size=3).map(tuple),
    **dict.fromkeys(("query", "output", "error"), TEXTS),
    **ENDS,
)


@given(TRAJECTORIES)
def test_what_is_kept_as_json_comes_back_the_same(trajectory: Trajectory) -> None:
    bounded = trajectory_of(trajectory)
    assert from_plain(Trajectory, json.loads(json.dumps(to_plain(bounded)))) == bounded


def test_a_text_is_the_output_a_list_the_steps_nothing_nothing() -> None:
    assert trajectory_of("done", query="q") == Trajectory(query="q", output="done")
    assert trajectory_of(["looked", {"tool": "ls", "args": {"path": "/"}}]).steps == (
        Step(text="looked"),
        Step(action="ls", arguments={"path": "/"}),
    )
    assert trajectory_of(None) == Trajectory()


@pytest.mark.parametrize(
    "step",
    [
        {"action": "ls", "arguments": {"path": "/"}, "result": "bin"},
        {"tool": "ls", "args": {"path": "/"}, "observation": "bin"},
        {"name": "ls", "input": {"path": "/"}, "output": "bin"},
    ],
)
def test_steps_may_use_the_names_that_agents_use(step: dict[str, Any]) -> None:
    assert trajectory_of([step]).steps == (Step(action="ls", arguments={"path": "/"}, result="bin"),)


def test_arguments_that_are_no_mapping_and_values_that_are_no_json() -> None:
    (step,) = trajectory_of([{"tool": "sh", "args": "ls -l"}]).steps
    assert step.arguments == {"input": "ls -l"}
    (step,) = trajectory_of([{"tool": "f", "args": {"x": {1, 2}}, "error": ValueError("bad")}]).steps
    assert step.arguments == {"x": "{1, 2}"}
    assert step.error == "ValueError: bad"


def test_a_long_trajectory_keeps_its_beginning_and_its_end() -> None:
    kept = trajectory_of([f"step {n}" for n in range(1_000)]).steps
    assert len(kept) == MAX_STEPS
    assert (kept[0].text, kept[-1].text) == ("step 0", "step 999")
    assert any("600 steps left out" in step.text for step in kept)


def test_long_texts_and_broken_characters_are_made_keepable() -> None:
    (step,) = trajectory_of([{"tool": "t", "args": {"x": "a\x00b\ud800"}, "result": "y" * 10_000}]).steps
    assert step.arguments == {"x": "a b\ufffd"}
    assert len(step.result) == MAX_STEP_CHARS


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (7, "int"),
        ({"stepz": []}, "stepz"),
        ({"steps": "ls"}, "list of steps"),
        ([7], "int"),
        ({"exit_code": "0"}, "exit_code"),
        ({"verdict": "maybe"}, "verdict"),
        ({"used": [-1]}, "used"),
    ],
)
def test_what_is_no_trajectory_is_refused_by_name(value: object, what: str) -> None:
    with pytest.raises(InvalidInput, match=what):
        trajectory_of(value)


def test_changing_every_text_reaches_every_text() -> None:
    step = {"tool": "t", "args": {"k": ["s", {"n": "s"}]}, "text": "s", "result": "s", "error": "s"}
    secret = {"query": "s", "output": "s", "error": "s", "checks": {"s": True}, "steps": [step]}
    changed = mapped(trajectory_of(secret), lambda text: text.replace("s", "*"))
    assert '"s"' not in json.dumps(to_plain(changed)).replace('"steps"', "")
