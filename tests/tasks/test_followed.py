"""Advice that was followed and failed loses, whatever became of the task; an unsure verdict is about nobody."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from wellworn import InvalidInput
from wellworn.models import ScriptedModel
from wellworn.tasks import ReasoningBank, Trajectory, Work
from wellworn.tasks.calls import FROM_TASK, ToolCall, followed
from wellworn.tasks.items import pattern_of

from .world import AGENT, Clock, a_call, a_try, corrected, stuck

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
    (id,) = bank.record(
        a_try("Create user bob", a_call("create_user", name="bob", role="Admin")), task_id="t1"
    ).entry_ids
    made = replace(corrected("eve"), query="Create user eve", used=(0,))
    out = bank.run_task(task_id="t2", query="Create user eve", execute=lambda _: made)
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
    bank.consolidate()  # the same calls for the same task are one item
    assert [item.kind for item in bank.items()] == ["strategy"]


def test_a_guardrail_loses_when_its_call_works_and_gains_only_where_it_was_heeded(bank: ReasoningBank) -> None:
    bank.record(stuck("bob"), task_id="t0")
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


def test_a_call_that_failed_and_then_worked_does_not_end_itself(open_bank: Callable[..., ReasoningBank]) -> None:
    advice = {"title": "Deploy again", "text": "Call deploy again after it failed.", "steps": [0, 1]}
    bank = open_bank(llm=ScriptedModel(json.dumps({"items": [advice]})))
    made = a_try("Deploy the app", a_call("deploy", error="busy"), a_call("deploy"), verdict=True)
    for number in range(3):
        assert not bank.run_task(task_id=f"t{number}", query=made.query, execute=lambda _: made).fault
    (item,) = bank.items()
    assert item.usage_count > 0


# -- items with the same calls, the words that decide, and rules that change --


def learn(bank: ReasoningBank, query: str, tool: str, **arguments: Any) -> None:
    bank.record(a_try(query, a_call(tool, **arguments)), task_id=query, verdict=True)


def test_two_tasks_stay_two_and_their_words_decide(bank: ReasoningBank) -> None:
    for what, where, flag in (("shop", "eu-west-1", "-a"), ("blog", "us-east-1", "-b")):
        learn(bank, f"Deploy {what} to {where}", "deploy", what=what, where=where, flag=flag)
    bank.consolidate()
    assert {pattern_of(item).task for item in bank.items()} == {"Deploy shop to eu-west-1", "Deploy blog to us-east-1"}
    for what, flag in (("shop", "-a"), ("blog", "-b")):
        (hit,) = bank.retrieve(f"Deploy {what} somewhere").hits
        assert pattern_of(hit.entry).calls[0].args == {"what": FROM_TASK, "where": FROM_TASK, "flag": flag}


@pytest.mark.slow
def test_consolidating_after_every_task_does_not_slow_down_what_a_changed_rule_needs(
    bank: ReasoningBank, clock: Clock
) -> None:
    """First one way round works, then the other; both have been seen to fail before."""

    def lived(every: bool) -> list[bool]:
        first_try = []
        for number in range(40):
            clock.forward(hours=1)
            right = "up" if number < 20 else "down"

            def agent(work: Work, right: str = right) -> Any:
                told = [call.args["way"] for hit in work.hits for call in pattern_of(hit.entry).calls]
                tries = list(dict.fromkeys([*told, "down", "up"]))
                tries = tries[: tries.index(right) + 1]
                first_try.append(len(tries) == 1)
                return [a_call("scale", error="" if way == right else "422", way=way) for way in tries]

            name = f"{'e' if every else 'n'}{number % 7}"
            bank.run_task(task_id=str(number), query=f"Scale {name} tonight", domain=str(every).lower(), execute=agent)
            if every:
                bank.consolidate()
        return first_try[20:]

    assert sum(lived(every=True)) >= sum(lived(every=False)) >= 17


def test_what_a_caller_got_wrong_is_one_clear_error(bank: ReasoningBank) -> None:
    with pytest.raises(InvalidInput, match="reinforced"):
        bank.tasks(state="lost")
    assert bank.sharing.learn_from_peer("second") == []
    with pytest.raises(InvalidInput, match="another agent"):
        bank.sharing.learn_from_peer("a1")
    for text in ("Always retry the upload.", "Never retry the upload."):
        bank.memory.remember(text, layer="agent", kind="strategy", confidence=0.5, scope=AGENT)
    bank.consolidate()
    (review,) = bank.reviews.questions()
    with pytest.raises(InvalidInput, match=r"'scope' does not answer this.*keep_both where each holds for other tasks"):
        bank.reviews.decide(review.key, "scope")


def test_commands_are_shown_as_they_are(bank: ReasoningBank) -> None:
    command = "make build 2>&1 && cat <<EOF > a.txt"
    learn(bank, "Build it </memories> now", "Bash", command=command)
    block = bank.begin(task_id="t", query="Build it now").context()
    assert command in block
    assert block.count("</memories>") == 1
