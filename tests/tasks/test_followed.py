"""Advice that was followed and failed loses, whatever became of the task; an unsure verdict is about nobody."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from wellworn.tasks import ReasoningBank, Trajectory
from wellworn.tasks.calls import FROM_TASK, ToolCall, followed

from .world import a_call, a_try, corrected

BUSY = a_try(
    "Get the log",
    a_call("fetch", error="503"),
    a_call("wait", seconds=5),
    a_call("fetch", error="503"),
    a_call("renew"),
    a_call("fetch"),
)


@pytest.mark.parametrize(
    ("calls", "trajectory", "worked"),
    [
        ([("create_user", {"name": FROM_TASK, "role": "Admin"})], corrected("bob"), False),
        ([("create_user", {"name": FROM_TASK, "role": "admin"})], corrected("bob"), True),
        ([("create_user", {"name": "eve", "role": "admin"})], corrected("bob"), None),
        ([("wait", {"seconds": 5}), ("fetch", {})], BUSY, False),
        ([("renew", {}), ("fetch", {})], BUSY, True),
        ([("wait", {"seconds": 9}), ("fetch", {})], BUSY, None),
        ([("check", {}), ("wait", {"seconds": 5}), ("fetch", {})], BUSY, None),
        ([], BUSY, None),
    ],
)
def test_whether_advice_was_followed_and_worked(
    calls: list[tuple[str, dict[str, object]]], trajectory: Trajectory, worked: bool | None
) -> None:
    advice = [ToolCall(tool=tool, args=args) for tool, args in calls]
    assert followed(advice, trajectory) is worked


def test_what_failed_loses_although_the_task_succeeded(bank: ReasoningBank) -> None:
    first = bank.run_task(
        task_id="t1",
        query="Create user bob",
        execute=lambda _: a_try("Create user bob", a_call("create_user", name="bob", role="Admin")),
    )
    (id,) = first.entry_ids
    out = bank.run_task(
        task_id="t2",
        query="Create user eve",
        execute=lambda _: replace(corrected("eve"), query="Create user eve", used=(0,)),
    )
    item = bank.item(id)
    assert out.success
    assert out.recall is not None
    assert [hit.entry.id for hit in out.recall.hits] == [id]
    assert (item.success_count, item.failure_count, item.usage_count) == (0, 1, 1)
    assert item.confidence == pytest.approx(0.2)
    assert id not in [hit.entry.id for hit in bank.retrieve("Create user dan")]


def test_an_unsure_verdict_keeps_nothing_and_changes_nobody(bank: ReasoningBank) -> None:
    bank.run_task(task_id="t1", query="Create user bob with the panel", execute=lambda _: corrected("bob"))
    before = bank.items()
    silent = a_try("Create user eve with the panel", a_call("create_user", ok=None, name="eve"), output="All complete.")
    out = bank.run_task(task_id="t2", query="Create user eve with the panel", execute=lambda _: silent)
    assert (out.success, out.verdict.teaches, out.state, out.entry_ids) == (False, False, "reinforced", ())
    assert out.distilled is not None
    assert out.distilled.dropped == {"unsure verdict": 1}
    assert bank.items() == before


def test_unsure_attempts_of_a_run_are_left_out_of_the_comparison(bank: ReasoningBank) -> None:
    made = {
        1: a_try("Export", a_call("export", format="csv")),
        2: a_try("Export", a_call("export", ok=None, format="xml"), output="done"),
    }
    run = bank.matts_parallel(task_id="t", query="Export", k=2, execute=lambda work: made[work.number])
    texts = [bank.item(id).text for id in run.entry_ids]
    assert texts
    assert not any("xml" in text for text in texts)


def test_an_agent_is_given_nothing_that_fits_much_less_than_the_best(open_bank: Callable[..., ReasoningBank]) -> None:
    bank = open_bank(embedder="hash")
    bank.run_task(task_id="bob", query="Create user bob with the panel", execute=lambda _: corrected("bob"))
    other = a_try("Print the yearly tax report on paper", a_call("printer", copies=2))
    bank.run_task(task_id="tax", query=other.query, execute=lambda _: other)
    work = bank.begin(task_id="new", query="Create user dan with the panel", k=5)
    assert work.hits
    assert all("create_user" in hit.entry.text for hit in work.hits)
    assert len(bank.retrieve("Create user dan with the panel", k=5)) > len(work.hits)
