"""A task from beginning to end: what is kept, what is reinforced, what survives a fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from wellworn import Budget, InvalidInput, Memory, NotFound, Scope, ScopeError, StoreError
from wellworn.ingest.remember import Writer
from wellworn.models import ScriptedModel
from wellworn.models.port import Request
from wellworn.tasks import ReasoningBank, Work
from wellworn.tasks.engine import parts_of
from wellworn.tasks.items import stage_of
from wellworn.tasks.tasks import TaskMoved

from .world import AGENT, Clock, a_call, a_try, corrected, finishing, stuck

OpenBank = Callable[..., ReasoningBank]


def test_a_task_is_retrieved_run_judged_distilled_and_reinforced(bank: ReasoningBank) -> None:
    seen: list[Work] = []

    def agent(work: Work) -> Any:
        seen.append(work)
        return corrected(work.query.split()[2])

    ask: Any = {"agent_id": "a1", "domain": "web.admin", "execute": agent}
    first = bank.run_task(task_id="t1", query="Create user bob with the panel", **ask)
    assert (first.success, first.state, first.fault) == (True, "reinforced", "")
    assert seen[0].context() == ""
    second = bank.run_task(task_id="t2", query="Create user eve with the panel", **ask)
    (hit,) = seen[1].hits
    assert hit.entry.id in first.entry_ids
    assert 'role="admin"' in seen[1].context()
    entry = bank.item(hit.entry.id)
    assert (entry.usage_count, entry.success_count, entry.failure_count) == (1, 1, 0)
    assert stage_of(entry) == "reinforced"
    assert entry.metadata["origin"] == {"task": "t1", "agent": "a1", "outcome": "success", "by": "rules"}
    assert entry.partition.layer == "agent"
    assert entry.confidence == pytest.approx(0.5 + 0.05)
    assert second.entry_ids != first.entry_ids, "two tasks do not tell which of their words decide"
    bank.run_task(task_id="t3", query="Create user dan with the panel", **ask)
    (general,) = bank.items()
    assert general.text.startswith("For tasks like “Create user … with the panel”: ")
    assert (general.usage_count, general.success_count) == (2, 2)


def test_every_transition_is_an_event(bank: ReasoningBank) -> None:
    out = bank.run_task(task_id="t1", query="q", execute=lambda _: corrected("bob"))
    log = [event for event in reversed(bank.memory.admin.events(scope=AGENT)) if event.action == "task"]
    assert [(event.detail["from"], event.detail["to"]) for event in log] == [
        ("", "executing"),
        ("executing", "judging"),
        ("judging", "reinforced"),
    ]
    assert {event.detail["task"] for event in log} == {out.id}
    assert not any("t1" in str(event.detail) for event in log), "what a caller names a task stays out of the log"


def test_new_items_are_unproven(bank: ReasoningBank) -> None:
    out = bank.run_task(task_id="t1", query="q", execute=lambda _: stuck("bob"))
    (entry,) = [bank.item(id) for id in out.entry_ids]
    assert (entry.kind, entry.confidence, entry.usage_count, stage_of(entry)) == ("guardrail", 0.5, 0, "stored")
    assert "invalid role" in entry.evidence


@pytest.mark.parametrize("learning", ["on", "off"])
def test_a_failure_makes_what_was_used_less_sure(open_bank: OpenBank, learning: str) -> None:
    bank = open_bank(learning=learning)
    bank.run_task(task_id="t1", query="Create user bob with the panel", execute=lambda _: corrected("bob"))
    work = replace(stuck("eve"), used=(0,))
    out = bank.run_task(task_id="t2", query="Create user eve with the panel", execute=lambda _: work)
    (hit,) = out.recall.hits if out.recall else []
    entry = bank.item(hit.entry.id)
    assert (entry.usage_count, entry.failure_count, entry.confidence) == (1, 1, 0.4)


def test_an_exception_is_a_failure_that_is_told_and_kept(bank: ReasoningBank) -> None:
    def agent(_: Work) -> Any:
        raise ValueError("no such page")

    out = bank.run_task(task_id="t1", query="q", execute=agent)
    assert not out.success
    assert isinstance(out.exception, ValueError)
    assert out.trajectory.error == "ValueError: no such page"
    assert out.entry_ids


@pytest.mark.parametrize("value", [object(), {"steps": [], "sucess": True}, [3], {"used": [-1]}])
@pytest.mark.parametrize("way", ["run_task", "matts_parallel", "matts_sequential"])
def test_what_is_no_trajectory_is_an_error_of_the_caller(bank: ReasoningBank, value: object, way: str) -> None:
    with pytest.raises(InvalidInput, match=r"trajectory|step"):
        getattr(bank, way)(task_id="t", query="q", execute=lambda _: value)
    assert {task.state for task in bank.tasks()} == {"abandoned"}
    assert bank.items() == []


def test_an_exception_between_two_steps_is_one_of_the_agent(bank: ReasoningBank) -> None:
    def steps() -> Iterator[Any]:
        yield a_call("post", error="415", format="xml")
        raise RuntimeError("the panel is down")

    out = bank.run_task(task_id="t", query="q", execute=lambda _: steps())
    assert (out.success, out.trajectory.error) == (False, "RuntimeError: the panel is down")

    def agent(_: Work) -> Any:
        raise InvalidInput("role", "is empty")

    assert bank.run_task(task_id="t", query="q", execute=agent).state == "reinforced"


def test_an_interrupt_leaves_the_task_abandoned_and_goes_on_up(bank: ReasoningBank) -> None:
    def agent(_: Work) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bank.run_task(task_id="t1", query="q", execute=agent)
    (task,) = bank.tasks()
    assert (task.state, task.why) == ("abandoned", "KeyboardInterrupt")


def test_the_callers_check_decides(bank: ReasoningBank) -> None:
    made = replace(corrected("bob"), checks={"two users": False})
    out = bank.run_task(task_id="t1", query="q", execute=lambda _: made)
    assert not out.success
    assert out.verdict.reasons == ("assertion failed: two users",)


def test_each_attempt_at_a_task_is_kept(bank: ReasoningBank) -> None:
    for _ in range(3):
        bank.run_task(task_id="same", query="q", execute=lambda _: corrected("bob"))
    assert [task.task_id for task in bank.tasks()] == ["same"] * 3
    assert len({task.id for task in bank.tasks()}) == 3


def test_what_was_used_is_cited_and_teaches_the_ranking(open_bank: Callable[..., ReasoningBank]) -> None:
    bank = open_bank(embedder="hash")
    bank.run_task(task_id="t0", query="Create user bob with the panel", execute=lambda _: corrected("bob"))
    bank.run_task(task_id="t1", query="Create user bob with the panel", execute=lambda _: stuck("bob"))
    out = bank.run_task(
        task_id="t2",
        query="Create user eve with the panel",
        k=2,
        execute=lambda _: replace(corrected("eve"), used=(1,)),
    )
    first, second = [bank.item(hit.entry.id) for hit in (out.recall.hits if out.recall else [])]
    assert (first.usage_count, second.usage_count) == (0, 1), "the second was shown before, and not followed"
    assert (first.success_count, second.success_count) == (0, 1)
    assert parts_of(bank.memory, AGENT, "mask").learner.status(AGENT.home()).outcomes == 1


def test_untrusted_work_teaches_untrusted_items(bank: ReasoningBank) -> None:
    out = bank.run_task(task_id="t", query="q", execute=lambda _: replace(corrected("bob"), trusted=False))
    assert {bank.item(id).trust for id in out.entry_ids} == {"untrusted"}


def test_a_task_goes_with_what_came_out_of_it(bank: ReasoningBank) -> None:
    out = bank.run_task(task_id="t", query="q", execute=lambda _: corrected("bob"))
    bank.memory.forget(ids=[out.entry_ids[0]], scope=AGENT)
    assert bank.tasks() == []


def test_everything_is_scrubbed_before_a_model_reads_it_and_before_it_is_kept(open_bank: OpenBank) -> None:
    model = ScriptedModel("no idea")
    bank = open_bank(llm=model, scrubber=lambda text: text.replace("s3cret", "[X]"))
    work = a_try("Log in as s3cret", a_call("login", password="s3cret", error="s3cret is wrong"), output="s3cret")
    out = bank.run_task(task_id="t", query="Log in as s3cret", execute=lambda _: work)
    bank.judge(work)
    bank.distill(work, False)
    assert out.entry_ids
    assert "s3cret" not in str(model.requests)
    assert "s3cret" not in str(bank.tasks()) + str(bank.items())


def test_a_password_in_a_tool_call_is_masked_wherever_the_work_repeats_it(bank: ReasoningBank) -> None:
    steps = [
        a_call("login", user="ada", options={"password": "hunter2!"}),
        {"tool": "bash", "args": {"command": "mysql -uada -phunter2!"}, "result": "hello hunter2!", "exit_code": 0},
    ]
    out = bank.run_task(task_id="t", query="Log in", execute=lambda _: {"steps": steps, "output": "with hunter2!"})
    assert out.entry_ids
    assert "hunter2" in str(out.trajectory), "the caller's own result is left alone"
    assert "hunter2" not in str(bank.tasks()) + str(bank.items())


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("type", {"selector": "#password", "text": "Tr0ub4dor99"}),
        ("set_setting", {"key": "smtp_password", "value": "Tr0ub4dor99"}),
        ("set_cookie", {"name": "sessionid", "value": "Tr0ub4dor99"}),
        ("http", {"headers": [{"name": "X-Auth-Token", "value": "Tr0ub4dor99"}]}),
        ("exec", {"argv": ["docker", "login", "-u", "bo", "-p", "Tr0ub4dor99"]}),
        ("exec", {"argv": ["curl", "-u", "bo:Tr0ub4dor99", "https://example.org"]}),
        ("verify", {"pin": "47114711"}),
    ],
)
def test_a_secret_that_only_its_whole_call_gives_away_is_masked(
    bank: ReasoningBank, tool: str, arguments: dict[str, Any]
) -> None:
    secret = arguments.get("pin", "Tr0ub4dor99")
    steps = [{"tool": tool, "args": arguments, "result": f"took {secret}", "ok": True}]
    bank.record({"steps": steps, "output": "done"}, task_id="t", query="Set up the shop", verdict=True)
    assert bank.items()
    assert secret not in str(bank.tasks()) + str(bank.items())


def test_what_a_call_says_beside_a_secret_stays(bank: ReasoningBank) -> None:
    steps = [{"tool": "exec", "args": {"argv": ["docker", "login", "-u", "deploy", "hub.example.org"]}, "ok": True}]
    steps += [{"tool": "fill", "args": {"label": "City", "value": "Hamburg2000"}, "ok": True}]
    bank.record({"steps": steps, "output": "done"}, task_id="t", query="Set up the shop", verdict=True)
    assert "SECRET" not in str(bank.tasks()) + str(bank.items())


def test_secrets_are_masked_by_a_bank_whose_memory_keeps_them(open_bank: OpenBank) -> None:
    model, key = ScriptedModel("no idea"), "sk-" + "ant-" + "api03-" + "a1B2" * 20
    bank = open_bank(llm=model)
    work = a_try("Log in", a_call("login", key=key, user="eve@example.org", error=f"{key} is wrong"), output=key)
    out = bank.run_task(task_id="t", query="Log in as eve@example.org", execute=lambda _: work)
    bank.retrieve("Log in as eve@example.org")
    assert out.entry_ids
    for secret in (key, "eve@example.org"):
        assert secret not in str(model.requests) + str(bank.tasks()) + str(bank.items())
    assert "[EMAIL_1]" in str(bank.tasks())
    (id,) = bank.memory.remember("write to eve@example.org", scope=AGENT)
    assert "eve@example.org" in bank.memory.get(id, scope=AGENT).text


def test_models_judge_and_distil_within_the_budget(open_bank: OpenBank) -> None:
    def answer(request: Request) -> str:
        if request.purpose == "judge":
            return '{"success": true, "confidence": 0.9}'
        return '{"items": [{"title": "Roles", "text": "Give create_user the role in lower case.", "steps": [1]}]}'

    bank = open_bank(llm=ScriptedModel(answer))
    out = bank.run_task(task_id="t", query="q", execute=lambda _: corrected("bob"))
    assert [bank.item(id).text for id in out.entry_ids] == ["Give create_user the role in lower case."]
    assert {spent.key[0] for spent in bank.memory.admin.costs(scope=AGENT)} == {"judge", "distill"}
    poor = open_bank(llm=ScriptedModel(answer), budget=Budget(per_tenant_tokens=10))
    out = poor.run_task(task_id="t", query="q", execute=lambda _: corrected("bob"))
    assert out.success
    assert out.verdict.fallback == "over the budget"
    assert out.distilled is not None
    assert out.distilled.fallback == "over the budget"
    assert out.entry_ids


# -- begun here, finished there ---------------------------------------------------------------------------------------


def test_work_that_is_done_elsewhere(bank: ReasoningBank) -> None:
    bank.run_task(task_id="t1", query="Create user bob with the panel", execute=lambda _: corrected("bob"))
    work = bank.begin(task_id="t2", query="Create user eve with the panel")
    assert work.hits
    out = bank.finish("t2", {"steps": []}, verdict=True)
    assert (out.success, out.state, out.id) == (True, "reinforced", work.task.id)
    assert bank.item(work.hits[0].entry.id).success_count == 1
    with pytest.raises(NotFound, match="begin it first"):
        bank.finish("t2", {"steps": []})


def test_nothing_is_given_where_nothing_fits() -> None:
    with Memory(":memory:") as mem:
        bank = ReasoningBank(mem.for_user("ada"))
        bank.run_task(task_id="t1", query="Create user bob with the panel", execute=lambda _: corrected("bob"))
        assert bank.begin(task_id="t2", query="Create a user for eve").hits
        for other in ("When do we deploy?", "Tabs or spaces?", "Write a haiku."):
            assert not bank.begin(task_id="t3", query=other).hits


def test_work_that_is_over_is_recorded(bank: ReasoningBank) -> None:
    out = bank.record(corrected("bob"), task_id="t1", domain="web")
    assert out.entry_ids
    assert bank.tasks()[0].query == "Create user bob with the panel"


# -- faults -----------------------------------------------------------------------------------------------------------


def test_a_closed_memory_does_not_stop_the_agent(bank: ReasoningBank) -> None:
    bank.memory.close()
    out = bank.run_task(task_id="t", query="q", execute=lambda _: corrected("bob"))
    assert out.success
    assert out.fault
    assert (out.id, out.entry_ids, out.recall) == ("", (), None)


def test_a_store_that_fails_in_the_middle_is_told_and_the_task_can_be_resumed(
    bank: ReasoningBank, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise StoreError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(Writer, "records_of", broken)
        out = bank.run_task(task_id="t", query="q", execute=lambda _: corrected("bob"))
    assert out.success
    assert out.fault == "StoreError: disk full"
    assert bank.items() == []
    assert [task.state for task in bank.tasks()] == ["judging"]
    clock.forward(hours=2)
    (task,) = bank.resume()
    assert task.state == "reinforced"
    assert len(bank.items()) == 1


def test_resuming_gives_up_lost_work_and_leaves_the_young_alone(bank: ReasoningBank, clock: Clock) -> None:
    bank.begin(task_id="old", query="q")
    clock.forward(hours=2)
    bank.begin(task_id="young", query="q")
    (given_up,) = bank.resume()
    assert (given_up.task_id, given_up.state) == ("old", "abandoned")
    assert {task.task_id: task.state for task in bank.tasks()} == {"old": "abandoned", "young": "executing"}
    assert bank.resume() == []


def test_two_who_finish_one_task_keep_its_items_once(bank: ReasoningBank) -> None:
    work = bank.begin(task_id="t", query="q")
    tasks, finisher = finishing(bank)
    judging = tasks.move(work.task, "judging", trajectory=corrected("bob"))
    made = [(judging, finisher.judge(judging))]
    finisher.finish(made)
    with pytest.raises(TaskMoved):
        finisher.finish(made)
    assert {entry.repeats for entry in bank.items()} == {0}


# -- input and looking ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"task_id": ""}, "task_id"),
        ({"query": " "}, "query"),
        ({"domain": "a b"}, "domain"),
        ({"task_id": 7}, "task_id"),
    ],
)
def test_bad_input_is_refused_before_anything_is_done(bank: ReasoningBank, change: Any, field: str) -> None:
    asked: Any = {"task_id": "t", "query": "q", "execute": lambda _: pytest.fail("must not run"), **change}
    with pytest.raises(InvalidInput, match=field):
        bank.run_task(**asked)
    assert bank.tasks() == []


def test_a_scope_without_a_layer_is_refused(bank: ReasoningBank) -> None:
    with pytest.raises(ScopeError, match="names no layer"):
        bank.run_task(task_id="t", query="q", execute=lambda _: "", scope=Scope(tenant="acme"))


def test_banks_of_two_agents_and_two_tenants_are_apart(bank: ReasoningBank) -> None:
    bank.run_task(task_id="t", query="q", execute=lambda _: corrected("bob"))
    for other in (Scope(tenant="acme", agent="b1"), Scope(tenant="rival", agent="a1")):
        assert (bank.items(scope=other), bank.tasks(scope=other)) == ([], [])
        assert bank.stats(scope=other).items == 0


def test_statistics_and_lists(bank: ReasoningBank) -> None:
    assert bank.stats().success_rate is None
    bank.run_task(task_id="t1", query="Create user bob", domain="web.admin", execute=lambda _: corrected("bob"))
    bank.run_task(task_id="t2", query="Create user bob", domain="web.api", execute=lambda _: stuck("eve"))
    stats = bank.stats()
    assert (stats.items, stats.tasks, stats.successes, stats.failures, stats.success_rate) == (2, 2, 1, 1, 0.5)
    assert stats.by_kind == {"strategy": 1, "guardrail": 1}
    assert stats.by_domain == {"web.admin": 1, "web.api": 1}
    assert [entry.kind for entry in bank.items(kind="guardrail")] == ["guardrail"]
    assert len(bank.items(domain="web.*")) == 2
    assert len(bank.items(limit=1)) == 1


def test_only_items_are_shown_as_items(bank: ReasoningBank) -> None:
    (note,) = bank.memory.remember("a note", scope=AGENT)
    with pytest.raises(NotFound, match="it is a note"):
        bank.item(note)


def test_the_bank_lives_as_long_as_its_memory() -> None:
    with Memory.open(":memory:", embedder=None, background=False) as memory:
        bank = ReasoningBank(memory, scope=AGENT)
        bank.run_task(task_id="t", query="Create user bob", execute=lambda _: corrected("bob"))
        assert bank.retrieve("Create user bob").hits, "words alone find nothing to compare, but recency does"
