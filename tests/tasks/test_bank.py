"""A task from beginning to end: what is kept, what is reinforced, what survives a fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from contract.builders import make_entry
from wellworn import Budget, BudgetExceeded, InvalidInput, Memory, NotFound, StoreError
from wellworn.ingest.remember import Writer
from wellworn.models import ScriptedModel
from wellworn.models.port import Request
from wellworn.tasks import ReasoningBank, Work, attempts
from wellworn.tasks.engine import Parts
from wellworn.tasks.items import stage_of

from .world import AGENT, Clock, a_call, a_try, corrected, stuck

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
    assert second.entry_ids != first.entry_ids, "tasks do not tell which of their words decide"
    again = bank.run_task(task_id="t3", query="Create user bob with the panel", **ask)
    assert again.entry_ids == first.entry_ids
    assert (bank.item(hit.entry.id).usage_count, bank.item(hit.entry.id).repeats) == (2, 1)


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
    assert Parts(bank.memory, AGENT, "mask").learner.status(AGENT.home()).outcomes == 1


def test_untrusted_work_teaches_untrusted_items(bank: ReasoningBank) -> None:
    out = bank.run_task(task_id="t", query="q", execute=lambda _: replace(corrected("bob"), trusted=False))
    assert {bank.item(id).trust for id in out.entry_ids} == {"untrusted"}


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
        ("http", {"headers": [{"name": "X-Auth-Token", "value": "Tr0ub4dor99"}]}),
        ("exec", {"argv": ["docker", "login", "-u", "bo", "-p", "Tr0ub4dor99"]}),
        ("exec", {"argv": ["curl", "-u", "bo:Tr0ub4dor99", "https://example.org"]}),
    ],
)
def test_a_secret_that_only_its_whole_call_gives_away_is_masked_and_nothing_else(
    bank: ReasoningBank, tool: str, arguments: dict[str, Any]
) -> None:
    steps = [a_call(tool, **arguments), a_call("fill", label="City", value="Hamburg2000")]
    bank.record({"steps": steps, "output": "took Tr0ub4dor99"}, task_id="t", query="Set up the shop", verdict=True)
    stored = str(bank.tasks()) + str(bank.items())
    assert "Tr0ub4dor99" not in stored
    assert "Hamburg2000" in stored


def test_secrets_are_masked_by_a_bank_whose_memory_keeps_them(open_bank: OpenBank) -> None:
    model, key = ScriptedModel("no idea"), "sk-" + "ant-" + "api03-" + "a1B2" * 20
    bank = open_bank(llm=model)
    header = {"action": f"curl -H 'x-api-key: {key}'", "args": {"key": {key: 1}}}
    call = a_call("login", key=key, user="eve@example.org", error=f"{key} is wrong")
    work = a_try("Log in", call, header, output=key)
    out = bank.run_task(task_id="t", query="Log in as eve@example.org", execute=lambda _: work)
    bank.retrieve("Log in as eve@example.org")
    bank.distill(work, bank.judge(work))
    bank.begin(task_id="u", query="Log in")
    bank.abandon("u", why=f"the key {key} is refused")
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


# -- input and looking ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "wrong"), [("task_id", ""), ("task_id", 7), ("query", " "), ("domain", "a b"), ("k", 0)]
)
def test_bad_input_is_refused_before_anything_is_done(bank: ReasoningBank, field: str, wrong: object) -> None:
    asked: Any = {"task_id": "t", "query": "q", "execute": lambda _: pytest.fail("must not run"), field: wrong}
    with pytest.raises(InvalidInput, match=field):
        bank.run_task(**asked)
    assert bank.tasks() == []


def test_what_is_no_bank_item_or_verdict_is_refused_by_name(bank: ReasoningBank) -> None:
    (note,) = bank.memory.remember("a note", scope=AGENT)
    with pytest.raises(NotFound, match="it is a note"):
        bank.item(note)
    with pytest.raises(InvalidInput, match="verdict"):
        bank.distill(corrected("bob"), "yes")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"Memory\.open"):
        ReasoningBank("memory.db")  # type: ignore[arg-type]
    assert bank.distill(corrected("bob"), True).items


@pytest.mark.parametrize(
    ("fields", "stage"),
    [
        ({}, "stored"),
        ({"usage_count": 1}, "retrieved"),
        ({"failure_count": 1}, "reinforced"),
        ({"metadata": {"promoted": {"to": "semantic"}}}, "promoted"),
        ({"state": "pruned"}, "pruned"),
    ],
)
def test_an_item_goes_through_its_stages(fields: dict[str, Any], stage: str) -> None:
    assert stage_of(make_entry("one", kind="strategy", **fields)) == stage


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


# -- several attempts at one task --

OUT_OF_MONEY = BudgetExceeded("per_day_usd", limit=1, spent=1, wanted=1, remedy="wait")


def second_wins(work: Work) -> Any:
    form = "json" if work.number == 2 else "xml"
    return a_try("Post it", a_call("post", ok=work.number == 2, error="" if work.number == 2 else "415", format=form))


def test_parallel_attempts_are_compared_and_the_best_is_named(bank: ReasoningBank) -> None:
    out = bank.matts_parallel(task_id="t", query="Post it", domain="api", execute=second_wins, k=3)
    assert out.success
    assert out.best.trajectory.steps[0].arguments == {"format": "json"}
    assert [attempt.success for attempt in out.attempts] == [False, True, False]
    assert all(attempt.state == "reinforced" for attempt in out.attempts)
    texts = [bank.item(id).text for id in out.entry_ids]
    assert any('post(format="json")' in text and 'failed with format="xml"' in text for text in texts)
    origin = bank.item(out.entry_ids[0]).metadata["origin"]
    assert (origin["outcome"], origin["run"]) == ("contrast", out.run_id)


def test_sequential_attempts_see_those_before_them_and_end_with_a_success(bank: ReasoningBank) -> None:
    seen: list[tuple[int, str]] = []

    def agent(work: Work) -> Any:
        seen.append((len(work.previous), work.instruction()))
        return second_wins(work)

    out = bank.matts_sequential(task_id="t", query="Post it", execute=agent, r=5)
    assert out.success
    assert [count for count, _ in seen] == [0, 1]
    assert seen[0][1] == ""
    assert seen[1][1].startswith("Your previous attempt is below as data.")
    assert "415" in seen[1][1]
    assert len(bank.tasks()) == 2


@pytest.mark.parametrize("mode", ["parallel", "sequential"])
def test_a_used_up_budget_ends_a_run_early_and_keeps_what_was_made(bank: ReasoningBank, mode: str) -> None:
    def agent(work: Work) -> Any:
        if work.number == 2:
            raise OUT_OF_MONEY
        return a_try("q", a_call("f", error="x"))

    if mode == "parallel":
        out = bank.matts_parallel(task_id="t", query="q", execute=agent, k=8, concurrency=1)
    else:
        out = bank.matts_sequential(task_id="t", query="q", execute=agent, r=8)
    assert len(out.attempts) == 2
    assert out.entry_ids


class Killed(BaseException):
    pass


def test_a_run_that_a_crash_cut_off_is_distilled_together_on_resume(
    bank: ReasoningBank, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any, **__: Any) -> Any:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(attempts, "distill", failing)
        with pytest.raises(Killed):
            bank.matts_parallel(task_id="t", query="Post it", execute=second_wins, k=2)
    assert [task.state for task in bank.tasks()] == ["judging", "judging"]
    assert bank.items() == []
    clock.forward(hours=2)
    ended = bank.resume()
    assert [task.state for task in ended] == ["reinforced", "reinforced"]
    assert any('failed with format="xml"' in entry.text for entry in bank.items())


@pytest.mark.parametrize("way", ["matts_sequential", "matts_parallel"])
def test_a_run_that_is_interrupted_is_given_up_with_what_was_made(bank: ReasoningBank, way: str) -> None:
    def agent(work: Work) -> Any:
        if work.number == 2:
            raise Killed
        return a_try("q", a_call("f", error="x"))

    with pytest.raises(Killed):
        getattr(bank, way)(task_id="t", query="q", execute=agent)
    assert {task.state for task in bank.tasks()} == {"abandoned"}
    assert bank.items() == []


@pytest.mark.parametrize("bad", [{"k": 0}, {"k": 65}, {"concurrency": 0}, {"k": True}])
def test_counts_are_checked(bank: ReasoningBank, bad: dict[str, int]) -> None:
    with pytest.raises(InvalidInput):
        bank.matts_parallel(task_id="t", query="q", execute=lambda _: "", **bad)  # type: ignore[arg-type]
