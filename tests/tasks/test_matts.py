"""Several attempts at one task: in parallel, one after the other, compared, recorded, within the budget."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from wellworn import BudgetExceeded, InvalidInput
from wellworn.tasks import ReasoningBank, Work, finish

from .world import Clock, a_call, a_try

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


def test_a_run_is_recorded_with_its_attempts(bank: ReasoningBank) -> None:
    out = bank.matts_parallel(task_id="t", query="Post it", execute=second_wins, k=3)
    assert {(task.mode, task.state, task.run_id) for task in bank.tasks()} == {("parallel", "reinforced", out.run_id)}
    assert {task.id for task in bank.tasks()} == {attempt.id for attempt in out.attempts}
    assert sorted(task.number for task in bank.tasks()) == [1, 2, 3]


def test_no_more_run_at_once_than_allowed(bank: ReasoningBank) -> None:
    lock, now, most = threading.Lock(), 0, 0
    two = threading.Barrier(2)

    def agent(_: Work) -> Any:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        two.wait(300)
        with lock:
            now -= 1
        return "x"

    bank.matts_parallel(task_id="t", query="q", execute=agent, k=6, concurrency=2)
    assert most == 2
    assert len(bank.tasks()) == 6


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


def test_sequential_attempts_end_after_r(bank: ReasoningBank) -> None:
    out = bank.matts_sequential(task_id="t", query="q", execute=lambda work: a_try("q", a_call("f", error="x")), r=3)
    assert not out.success
    assert len(out.attempts) == 3
    assert {bank.item(id).kind for id in out.entry_ids} == {"guardrail"}


def test_every_attempt_reinforces_what_it_was_given(bank: ReasoningBank) -> None:
    bank.run_task(task_id="t0", query="Post it", execute=lambda _: a_try("Post it", a_call("post", format="csv")))
    (entry,) = bank.items()
    used = lambda work: replace(second_wins(work), used=(0,))  # noqa: E731
    bank.matts_parallel(task_id="t", query="Post it", execute=used, k=3)
    after = bank.item(entry.id)
    assert (after.usage_count, after.success_count, after.failure_count) == (3, 1, 2)


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
        patch.setattr(finish, "distill", failing)
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
