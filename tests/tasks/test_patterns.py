"""Distilling without a model: what turned a failure, what recurs, what differs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from wellworn.tasks import Trajectory, trajectory_of
from wellworn.tasks.calls import FROM_TASK, ToolCall
from wellworn.tasks.distill import distill, from_contrast, from_failure, from_success, read_items
from wellworn.tasks.items import NewItem
from wellworn.tasks.judge import Verdict, judge

from .test_trajectory import TRAJECTORIES
from .world import a_call, a_try, corrected, stuck

WON, LOST = Verdict(success=True, confidence=1.0), Verdict(success=False, confidence=1.0, reasons=("wrong table",))


def texts(items: list[NewItem]) -> list[str]:
    return [item.text for item in items]


def test_arguments_that_turned_a_failure_are_a_strategy() -> None:
    (first,) = from_success(corrected("bob"))
    assert first.kind == "strategy"
    assert first.text == (
        'For tasks like “Create user bob with the panel”: Call create_user(name=[from the task], role="admin"). '
        'create_user failed with role="Admin": “400 invalid role”.'
    )
    assert first.title == 'create_user: role="admin", not role="Admin"'
    assert first.evidence.splitlines() == [
        "create_user(name=bob, role=Admin) → ✗ 400 invalid role",
        "create_user(name=bob, role=admin)",
    ]
    call, failed = (ToolCall(tool="create_user", args={"name": FROM_TASK, "role": role}) for role in ("admin", "Admin"))
    assert first.pattern.calls == (call,)
    assert first.pattern.failed == (replace(failed, error="400 invalid role"),)
    assert first.pattern.conditions == ("create", "user", "bob", "panel")


def test_siblings_of_a_task_teach_the_same_calls() -> None:
    for made, tried in ((from_success, corrected), (from_failure, stuck)):
        bob, eve = made(tried("bob")), made(tried("eve"))
        assert [one.pattern.key(one.kind) for one in bob] == [one.pattern.key(one.kind) for one in eve]
        assert {one.pattern.shape for one in (*bob, *eve)} == {"Create user … with the panel"}


def test_a_wait_between_failure_and_success_is_a_retry_policy() -> None:
    fetched = a_try(
        "Fetch the report",
        a_call("get", error="429 too many", path="/r"),
        a_call("wait", seconds=2),
        a_call("get", path="/r"),
    )
    assert 'First wait(seconds=2); then call get(path="/r"): before that it failed with “429 too many”.' in (
        from_success(fetched)[0].text
    )


def test_the_same_call_that_worked_later_says_at_which_try() -> None:
    flaky = a_call("get", error="503", path="/r")
    item = from_success(a_try("Fetch it", flaky, flaky, a_call("get", path="/r")))[0]
    assert "it worked at try 3" in item.text


def test_a_success_without_tools_keeps_what_was_done_in_words() -> None:
    (item,) = from_success(a_try("Plan the party", {"text": "Asked everyone for dates"}, {"text": "Took the earliest"}))
    assert item.text == "For tasks like “Plan the party”: This worked: Asked everyone for dates → Took the earliest."


def test_a_call_that_failed_after_other_preparations_was_not_repeated_unchanged() -> None:
    """Trying it in another way is no repetition: what is kept are the ways, the last two of them."""
    refused = a_call("release", error="409 not ready", name="kit")
    tried = [step for before in ("check", "sign", "stamp") for step in (a_call(before), refused)]
    items = from_failure(a_try("Release the kit", *tried))
    assert [item.kind for item in items] == ["guardrail", "guardrail"]
    assert "This way did not succeed: stamp() → release(name=[from the task])." in items[0].text
    assert "This way did not succeed: sign() → release(name=[from the task])." in items[1].text
    assert not any("unchanged" in item.text for item in items)
    assert "409 not ready" in items[0].evidence


def test_the_failing_call_at_the_end_is_a_guardrail_an_overcome_one_is_not() -> None:
    (item,) = from_failure(
        a_try("q", a_call("a", error="x"), a_call("a"), a_call("b", error="404 gone", id=7)), ["it failed"]
    )
    assert "Do not rely on b(id=7): it failed with “404 gone”" in item.text


def test_a_wrong_result_without_a_failing_call_keeps_the_way_and_why() -> None:
    (item,) = from_failure(a_try("Book it", a_call("book", table="x")), ["assertion failed: two seats"])
    assert 'This way did not succeed: book(table="x"). assertion failed: two seats' in item.text


def test_an_exception_without_steps_is_its_own_evidence() -> None:
    (item,) = from_failure(trajectory_of({"query": "q", "error": "ConnectionError: refused"}), ["an exception"])
    assert item.evidence == "ConnectionError: refused"


def test_nothing_done_teaches_nothing() -> None:
    assert from_success(Trajectory()) == from_failure(Trajectory()) == from_contrast([], []) == []


@pytest.mark.parametrize(
    ("wrong", "right", "title"),
    [
        ({"format": "xml", "ok": None}, {"format": "json"}, 'post: format="json", not format="xml"'),
        ({"format": "xml", "error": "415"}, {"format": "json"}, 'post: format="json", not format="xml"'),
        ({}, {"token": "t"}, 'post: token="t", not no token'),
    ],
)
def test_what_failed_in_one_attempt_and_worked_in_another(
    wrong: dict[str, Any], right: dict[str, Any], title: str
) -> None:
    """Also where the tool did not say that it failed: the attempt did."""
    won, lost = a_try("Post it", a_call("login"), a_call("post", **right)), a_try("Post it", a_call("post", **wrong))
    (item,) = from_contrast([won], [lost])
    assert (item.kind, item.title) == ("strategy", title)
    assert [call.args for call in item.pattern.calls] == [{}, right]


def test_limits_are_three_two_and_five() -> None:
    many = [step for n in range(6) for step in (a_call(f"t{n}", error="x", a=1), a_call(f"t{n}", a=2))]
    assert len(distill([(a_try("q", *many), WON)]).items) == 3
    fails = [step for n in range(6) for step in (a_call(f"t{n}"), a_call("end", error="x"))]
    assert len(distill([(a_try("q", *fails), LOST)]).items) == 2
    won = [(a_try("q", a_call(f"t{n}")), WON) for n in range(9)]
    assert len(distill([*won, (a_try("q", a_call("z")), LOST)]).items) == 5


@given(TRAJECTORIES, TRAJECTORIES)
def test_every_item_has_evidence_from_the_trajectories(one: Trajectory, other: Trajectory) -> None:
    one, other = trajectory_of(one), trajectory_of(other)
    own = from_success(one) + from_failure(one, judge(one).reasons)
    both = from_contrast([one], [other]) + from_contrast([], [one, other]) + from_contrast([one, other], [])
    for items, given_ in ((own, [one]), (both, [one, other])):
        known = {step.line[:600] for each in given_ for step in each.steps} | {each.error for each in given_}
        known_lines = {line for text in known for line in text.splitlines()} | known
        for item in items:
            assert item.evidence
            assert item.evidence in known or all(
                not line or line in known_lines
                for line in item.evidence.splitlines()  # a form feed leaves an empty one
            )
            assert "\n" not in item.text


@pytest.mark.parametrize("names", [("bob", "2021"), ("ann", "20")])
def test_only_whole_words_of_the_task_are_left_open(names: tuple[str, str]) -> None:
    name, year = names
    (item,) = from_success(a_try(f"Report of {year} for {name}", a_call("report", year=int(year), page=2)))
    assert item.text == (
        f"For tasks like “Report of {year} for {name}”: This worked: report(year=[from the task], page=2)."
    )
    assert item.pattern.shape == f"Report of … for {name}"


@pytest.mark.parametrize("error", ["the file was not found in the folder " * 6, "x" * 400, "line one\nline two " * 30])
def test_what_is_cut_ends_at_a_word_with_an_ellipsis(error: str) -> None:
    steps = [{"tool": "create_user_with_a_long_name", "args": {"name": "b" * 500}, "error": error}]
    long = {"title": f"a title {error}", "text": f"Do not call create_user_with_a_long_name: {error}", "steps": [0]}
    work = trajectory_of({"query": "Create user bob " * 40, "steps": steps, "verdict": False})
    read, _ = read_items(json.dumps({"items": [long]}), [work], kinds=["guardrail"], most=1)
    for item in [*distill([(work, judge(work))]).items, *read]:
        assert item.title.endswith("…")
        kept = item.title.removesuffix("…").rpartition(" ")[2].strip("“")
        assert kept in f"{error} {steps}".split() or "xxx" in kept
