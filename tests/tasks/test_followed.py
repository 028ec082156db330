"""Advice that was followed and failed loses, whatever became of the task; an unsure verdict is about nobody."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from wellworn.tasks import ReasoningBank
from wellworn.tasks.calls import refuted

from .world import a_call, a_try, corrected

CALLED = 'For tasks like “Create user …”: Call create_user(name=[from the task], role="Admin"). create_user failed with role="x": “400”.'
WAITED = "For tasks like “Get the log”: First wait(seconds=5); then call fetch(): before that it failed with “503”."
RENEWED = "For tasks like “Get the log”: First renew(); then call fetch(): before that it failed with “503”."
BUSY = a_try(
    "Get the log",
    a_call("fetch", error="503"),
    a_call("wait", seconds=5),
    a_call("fetch", error="503"),
    a_call("renew"),
    a_call("fetch"),
)


@pytest.mark.parametrize(
    ("text", "trajectory", "was"),
    [
        (CALLED, corrected("bob"), True),
        (CALLED.replace('"Admin"', '"admin"'), corrected("bob"), False),
        (WAITED, BUSY, True),
        (RENEWED, BUSY, False),
        ("This worked: wait(seconds=5) → fetch().", BUSY, True),
        ("This worked: wait(seconds=9) → fetch().", BUSY, False),
        ("This worked: check() → wait(seconds=5) → fetch().", BUSY, False),
        ("Do not rely on fetch(): it failed with “503”.", BUSY, False),
        ("When busy: fetch() works after a wait.", BUSY, False),
        ("", BUSY, False),
    ],
)
def test_advice_that_was_followed_and_failed_each_time(text: str, trajectory: object, was: bool) -> None:
    assert refuted(text, trajectory) is was  # type: ignore[arg-type]  # it is one


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
