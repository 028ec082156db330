"""Agents, exceptions and values of the worst kind: nothing is left half done, nothing that is masked gets through."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from wellworn import InvalidInput, Memory, Scope, WellwornError
from wellworn.tasks import ReasoningBank, attempts

from .world import AGENT, a_call, corrected

TASK: dict[str, Any] = {"task_id": "t", "query": "Create user bob with the panel", "domain": "web"}


@pytest.fixture
def mem() -> Iterator[Memory]:
    with Memory.open(":memory:", embedder="hash:64", background=False) as memory:
        yield memory


class Unspeakable:
    """Has no text."""

    def __str__(self) -> str:
        raise ValueError("none")

    __repr__ = __str__


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError("none")


RING: dict[str, Any] = {}
RING["ring"] = RING
DEEP: dict[str, Any] = {}
_inner = DEEP
for _ in range(3000):
    _inner["a"] = {}
    _inner = _inner["a"]


@pytest.mark.parametrize(
    "arguments",
    [RING, DEEP, {"a": float("nan")}, {"a": Unspeakable()}, {Unspeakable(): 1}, {"a": 10**5000}, {"\ud800": "\udfff"}],
    ids=["ring", "deep", "nan", "unspeakable", "unspeakable key", "long number", "half a character"],
)
def test_arguments_of_any_kind_are_kept_as_something(mem: Memory, arguments: dict[Any, Any]) -> None:
    bank = ReasoningBank(mem, scope=AGENT)
    steps = [{"tool": "create\ud800", "args": arguments, "ok": False, "error": "no"}, a_call("create", role="admin")]
    out = bank.run_task(**TASK, execute=lambda _: {"steps": steps})
    assert (out.state, out.fault, out.exception) == ("reinforced", "", None)
    (task,) = bank.tasks()
    assert task.trajectory is not None
    assert len(task.trajectory.steps) == 2
    assert mem.verify().ok


def test_an_exception_that_cannot_be_looked_at_is_a_failed_attempt(mem: Memory) -> None:
    error = Mute()

    def agent(_: object) -> Any:
        raise error

    out = ReasoningBank(mem, scope=AGENT).run_task(**TASK, execute=agent)
    assert (out.success, out.state, out.exception) == (False, "reinforced", error)


def test_a_task_of_an_agent_goes_with_the_session_of_a_user(mem: Memory) -> None:
    bank, other = ReasoningBank(mem, scope=AGENT), Scope(tenant="acme", agent="a1", user="ben")
    for scope in (AGENT, other):
        mem.session(scope=scope, session_id="monday").add("user", "Hello there, it is me.")
        bank.run_task(**TASK, execute=lambda _: corrected("bob"), session_id="monday", scope=scope)
    assert len(bank.tasks()) == 2
    assert mem.forget(session_id="monday", scope=AGENT).records >= 1
    assert len(bank.tasks()) == 1  # of Ben's session of the same name
    mem.forget(everything=True, scope=other)
    assert bank.tasks() == []
    assert mem.verify().ok


def test_an_attempt_that_cannot_be_ended_keeps_no_other_from_it(mem: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    bank = ReasoningBank(mem, scope=AGENT)
    from wellworn.tasks.distill import distill as distil

    def broken(attempts: Any, *args: Any, **kwargs: Any) -> Any:
        if "bob" in attempts[0][0].query or not bank.tasks(state="abandoned"):
            raise ZeroDivisionError
        return distil(attempts, *args, **kwargs)

    monkeypatch.setattr(attempts, "distill", broken)
    for name in ("bob", "eve"):
        out = bank.record(corrected(name), task_id=name)
        assert (out.success, out.fault) == (True, "ZeroDivisionError: ")  # the work is done, whatever we do with it
    assert {task.state for task in bank.tasks()} == {"judging"}
    bank.resume(idle_s=0)
    assert {task.task_id: (task.state, task.why) for task in bank.tasks()} == {
        "bob": ("abandoned", "ZeroDivisionError"),
        "eve": ("reinforced", ""),
    }


STRANGER = Scope(tenant="rival", agent="a1", user="ada")


def test_nothing_of_a_bank_is_seen_or_changed_from_another_tenant(mem: Memory) -> None:
    ours, theirs = ReasoningBank(mem, scope=AGENT), ReasoningBank(mem, scope=STRANGER)
    out = ours.run_task(**TASK, execute=lambda _: corrected("bob"))
    id, recall = out.entry_ids[0], ours.retrieve(TASK["query"])
    ours.consolidate()
    ours.begin(**TASK)
    before = (ours.items(), ours.tasks())
    for attack in (
        lambda: theirs.item(id),
        lambda: theirs.feedback(recall.id, cited=[0]),
        lambda: theirs.finish("t", "done"),
        lambda: theirs.sharing.revoke(id, scope=STRANGER),
        lambda: theirs.sharing.share([id], scope=STRANGER, agents=["z"]),
        lambda: mem.forget(ids=[id], scope=STRANGER),
        lambda: theirs.graph.walk(id, scope=STRANGER),
        lambda: theirs.sharing.learn_from_peer(Scope(tenant="acme", agent="a1"), scope=STRANGER),
        lambda: theirs.reviews.decide(id, "incorrect", scope=STRANGER),
    ):
        with pytest.raises(WellwornError):
            attack()
    assert (theirs.abandon("t"), theirs.tasks(), theirs.items(), theirs.resume(idle_s=0)) == (0, [], [], [])
    assert (ours.items(), ours.tasks()) == before


@pytest.mark.parametrize("wrong", [5, None, ["x"], [["x"]]], ids=str)
def test_what_is_no_id_is_refused_in_words(mem: Memory, wrong: Any) -> None:
    bank, entry = ReasoningBank(mem), mem.remember("Retry.", kind="strategy", scope=AGENT)[0]
    for call in (
        lambda: bank.sharing.revoke(wrong, scope=AGENT),
        lambda: bank.sharing.share([wrong], agents=["b"], scope=AGENT),
        lambda: bank.sharing.share(entry, agents=["b"], scope=AGENT),
        lambda: bank.sharing.share([entry], agents="bob", scope=AGENT),
        lambda: bank.reviews.decide(wrong, "correct", scope=AGENT),
        lambda: bank.abandon(wrong, scope=AGENT),
        lambda: bank.finish(wrong, "done", scope=AGENT),
    ):
        with pytest.raises(InvalidInput):
            call()
