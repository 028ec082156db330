"""Advice that was followed and failed loses, whatever became of the task; an unsure verdict is about nobody."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from wellworn.models import ScriptedModel
from wellworn.tasks import ReasoningBank, Trajectory
from wellworn.tasks.calls import FROM_TASK, ToolCall, followed

from .world import Clock, a_call, a_try, corrected, stuck

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


RUN = "Run the tests"
MAKE: Any = {"command": "make check"}
JUST: Any = {"command": "just test"}


def does(bank: ReasoningBank, query: str, *steps: dict[str, object]) -> list[str]:
    """What was shown at a task that went well in the end."""
    out = bank.run_task(task_id="t", query=query, k=3, execute=lambda _: a_try(query, *steps, verdict=True))
    return [hit.text for hit in out.recall.hits] if out.recall else []


def test_what_failed_at_another_task_is_still_given_for_its_own(bank: ReasoningBank) -> None:
    staging, production = ("Deploy the auth service to staging", "Deploy the auth service to production")
    stage, prod = a_call("deploy", flags="--stage"), a_call("deploy", flags="--prod")
    bank.record(a_try(staging, stage), task_id="t1")
    assert bank.begin(task_id="t2", query=production).hits
    bank.finish("t2", a_try(production, {**stage, "ok": False, "error": "frozen"}, prod))
    assert sorted(item.confidence for item in bank.items()) == [0.2, 0.5]
    assert [staging in hit.entry.text for hit in bank.begin(task_id="t3", query=staging).hits] == [True]
    assert all("--prod" in hit.entry.text for hit in bank.begin(task_id="t4", query="Deploy auth on production").hits)


def test_advice_that_was_not_followed_is_as_before(bank: ReasoningBank) -> None:
    does(bank, RUN, a_call("Bash", **MAKE))
    (before,) = bank.items()
    assert does(bank, RUN, a_call("Bash", **JUST)) == [before.text]
    assert bank.item(before.id) == before
    assert does(bank, RUN, a_call("Bash", **MAKE))
    assert bank.item(before.id).confidence > before.confidence


def test_another_way_where_the_old_one_failed_takes_its_place_at_once(bank: ReasoningBank, clock: Clock) -> None:
    for _ in range(4):
        does(bank, RUN, a_call("Bash", **MAKE))
    gone = a_call("Bash", error="make: *** No rule to make target 'check'.  Stop.", **MAKE)
    assert "make check" in does(bank, RUN, gone, a_call("Bash", **JUST))[0]
    clock.forward(seconds=1)
    assert 'Call Bash(command="just test")' in does(bank, RUN, a_call("Bash", **JUST))[0]
    assert [item.kind for item in bank.items()] == ["strategy"]


def test_a_guardrail_loses_when_its_call_works_and_gains_only_where_it_was_heeded(bank: ReasoningBank) -> None:
    stuck_at("bob", bank)
    (guardrail,) = bank.items()
    assert guardrail.kind == "guardrail"
    for name, call in (("ann", a_call("list_pages")), ("eve", a_call("create_user", name="eve", role="admin"))):
        before = bank.item(guardrail.id)
        assert guardrail.text in does(bank, f"Create user {name} with the panel", call)
        assert (bank.item(guardrail.id) == before) is (name == "ann")
    heeded = bank.item(guardrail.id)
    assert heeded.confidence > guardrail.confidence
    assert guardrail.text in does(bank, stuck("dan").query, a_call("create_user", name="dan", role="Admin"))
    assert bank.item(guardrail.id).confidence == pytest.approx(heeded.confidence - 0.3)


def stuck_at(name: str, bank: ReasoningBank) -> None:
    bank.run_task(task_id="t0", query=stuck(name).query, execute=lambda _: stuck(name))


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


def test_a_call_that_failed_and_then_worked_does_not_end_itself(open_bank: Callable[..., ReasoningBank]) -> None:
    advice = {
        "kind": "strategy",
        "title": "Deploy again",
        "text": "Call deploy again after it failed.",
        "steps": [0, 1],
    }
    bank = open_bank(llm=ScriptedModel(json.dumps({"items": [advice]})))
    for number in range(3):
        out = bank.run_task(
            task_id=f"t{number}",
            query="Deploy the app",
            execute=lambda _: a_try("Deploy the app", a_call("deploy", error="busy"), a_call("deploy"), verdict=True),
        )
        assert not out.fault
    (item,) = bank.items()
    assert item.usage_count > 0
