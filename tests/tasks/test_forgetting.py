"""Erased means erased: an item that is forgotten is in no task that was shown it, and in no copy that was shared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memory.world import file_bytes
from tasks.consolidation_world import AGENT, learn, opened
from wellworn import Memory, Scope
from wellworn.core.values import Receipt
from wellworn.models.ledger import CallCost, spent, total_cost
from wellworn.models.port import Reply, Request
from wellworn.models.scripted import ScriptedModel
from wellworn.tasks import ReasoningBank

MARKER = "zqxmarker"
PROVEN: dict[str, Any] = {"confidence": 0.92, "usage_count": 60, "success_count": 50, "failure_count": 5}
TEXT = f"Open the cart, apply the code {MARKER}, then pay."
TEAM = Scope(tenant="acme", team="ops", org="shop")
PEER = Scope(tenant="acme", agent="second")


@pytest.fixture
def mem(tmp_path: Path) -> Any:  # a Memory, closed at the end
    with opened(tmp_path / "memory.db") as memory:
        yield memory


def everything_in(mem: Memory, tmp_path: Path) -> str:
    """Every byte of the files, and an export of all of it."""
    out = tmp_path / "out.jsonl"
    mem.admin.export(out)
    exported = out.read_text()
    out.unlink()
    return exported + file_bytes(tmp_path / "memory.db").decode("utf-8", "replace")


def promoted(bank: ReasoningBank, mem: Memory, text: str = TEXT, *, scope: Scope = AGENT, **numbers: Any) -> str:
    id = learn(mem, text, scope=scope, evidence="bought a lamp", **{**PROVEN, **numbers})
    bank.consolidate(scope=scope)
    return id


def parrot(work: Any) -> dict[str, Any]:
    """Says what it was given."""
    return {"steps": [{"text": work.context()}, {"tool": "pay", "args": {}, "ok": True}], "output": work.context()}


def test_a_task_goes_with_an_item_that_it_was_shown(mem: Memory, tmp_path: Path) -> None:
    bank = ReasoningBank(mem, scope=AGENT)
    id = learn(mem, TEXT)
    out = bank.run_task(task_id="t", query="pay for the cart", domain="web", execute=parrot)
    assert [hit.entry.id for hit in out.recall.hits if out.recall] == [id] if out.recall else False
    other = bank.run_task(task_id="u", query="water the plants", domain="garden", execute=lambda _: "done")
    receipt = mem.forget(ids=[id], scope=AGENT)
    assert receipt.records >= 1
    assert [task.id for task in bank.tasks()] == [other.id]
    for entry_id in out.entry_ids:  # what it taught is an item of its own
        mem.forget(ids=[entry_id], scope=AGENT)
    assert MARKER not in everything_in(mem, tmp_path)
    assert mem.verify().ok


def test_a_task_under_way_whose_item_is_forgotten_keeps_nothing_of_it(mem: Memory, tmp_path: Path) -> None:
    bank = ReasoningBank(mem, scope=AGENT)
    id = learn(mem, TEXT)

    def meanwhile(work: Any) -> dict[str, Any]:
        mem.forget(ids=[id], scope=AGENT)
        return parrot(work)

    out = bank.run_task(task_id="t", query="pay for the cart", domain="web", execute=meanwhile)
    assert "TaskMoved" in out.fault
    assert (bank.tasks(), bank.items()) == ([], [])
    assert MARKER not in everything_in(mem, tmp_path)


def by_id(mem: Memory, id: str) -> Receipt:
    return mem.forget(ids=[id], scope=AGENT)


def by_partition(mem: Memory, id: str) -> Receipt:
    return mem.forget(everything=True, scope=AGENT, layer="agent")


@pytest.mark.parametrize("forget", [by_id, by_partition])
@pytest.mark.parametrize("revoked", [False, True])
def test_copies_go_with_their_original(
    mem: Memory, tmp_path: Path, forget: Callable[[Memory, str], Receipt], revoked: bool
) -> None:
    bank = ReasoningBank(mem, scope=AGENT)
    id = promoted(bank, mem)
    [team] = bank.sharing.share([id], scope=AGENT, layer="team")
    [peer] = bank.sharing.share([id], scope=AGENT, agents=["second"])
    assert team.copy_id
    assert peer.copy_id
    if revoked:
        bank.sharing.revoke(id, scope=AGENT)
    stranger = Scope(tenant="other", agent="solver", team="ops")
    kept = learn(mem, "Of another tenant.", scope=stranger)
    receipt = forget(mem, id)
    assert (receipt.copies, {team.copy_id, peer.copy_id} <= {*receipt.ids}) == (2, True)
    assert {TEAM.home("team"), PEER.home("agent")} <= {*receipt.partitions}
    assert mem.recall("apply the code", scope=AGENT).hits == []
    assert mem.get(kept, scope=stranger).text == "Of another tenant."
    assert MARKER not in everything_in(mem, tmp_path)
    assert mem.verify().ok


def test_copies_of_copies_go_too(mem: Memory, tmp_path: Path) -> None:
    bank = ReasoningBank(mem, scope=AGENT)
    id = promoted(bank, mem)
    [team] = bank.sharing.share([id], scope=AGENT, layer="team")
    assert team.copy_id
    copy = mem.get(team.copy_id, scope=TEAM)
    from dataclasses import replace

    with mem.engine.store.transact() as tx:
        tx.update(replace(copy, **PROVEN, metadata={**copy.metadata, "promoted": True}), change=None)
    [org] = bank.sharing.share([copy.id], scope=TEAM, layer="org")
    assert org.refused == ""
    assert mem.forget(ids=[id], scope=AGENT).copies == 2
    assert MARKER not in everything_in(mem, tmp_path)


def test_a_copy_that_another_agent_shared_too_stays_without_a_trace_of_the_first(mem: Memory, tmp_path: Path) -> None:
    bank = ReasoningBank(mem, scope=AGENT)
    second = Scope(tenant="acme", agent="second", team="ops")
    first_id, second_id = promoted(bank, mem), promoted(bank, mem, scope=second)
    [share] = bank.sharing.share([first_id], scope=AGENT, layer="team")
    [again] = bank.sharing.share([second_id], scope=second, layer="team")
    assert share.copy_id == again.copy_id is not None
    assert mem.forget(ids=[first_id], scope=AGENT).copies == 0
    copy = mem.get(str(share.copy_id), scope=TEAM)
    assert (copy.text, copy.evidence) == (TEXT, "")
    assert first_id not in str(copy.metadata)
    assert "solver" not in str(copy.metadata)
    assert mem.forget(ids=[second_id], scope=second).copies == 1
    assert MARKER not in everything_in(mem, tmp_path)


class Forgetful(ScriptedModel):
    """Somebody forgets the session while it answers."""

    mem: Memory

    def complete(self, request: Request) -> Reply:
        self.mem.forget(session_id=MARKER, scope=AGENT)
        return super().complete(request)


def test_a_call_that_ends_after_its_session_names_it_nowhere(tmp_path: Path) -> None:
    model = Forgetful("[]")
    with opened(tmp_path / "memory.db", llm=model) as mem:
        model.mem = mem
        session = mem.session(scope=AGENT, session_id=MARKER)
        session.add("user", "I bought a lamp in Rome last year, and I love it.")
        session.add("user", "My sister Mia has a cat called Momo.")
        session.end()
        mem.jobs.run()
        (total,) = spent(mem.engine.store, "acme")
        assert total.calls >= 1
        assert total_cost(mem.engine.store, "acme", f"session {MARKER}") == CallCost()
        mem.engine.store.scrub()
        assert MARKER not in everything_in(mem, tmp_path)


@pytest.mark.parametrize("whole", [False, True])
def test_what_an_agent_learned_in_a_session_only_goes_with_it(mem: Memory, tmp_path: Path, whole: bool) -> None:
    def work(_: Any) -> dict[str, Any]:
        return {"steps": [{"tool": "create", "args": {"name": MARKER}, "ok": True}], "verdict": True}

    bank = ReasoningBank(mem, scope=Scope(tenant="acme", user="ada", agent="solver"))
    ada = mem.for_user("ada", tenant="acme")
    ada.session("monday").add("user", "hello there")
    bank.run_task(task_id="t", query=f"Create user {MARKER}", session_id="monday", execute=work)
    bank.run_task(task_id="u", query="Water the plants", execute=lambda _: {"output": "done", "verdict": True})
    kept = len(bank.items())
    ada.forget(everything=True) if whole else ada.forget(session_id="monday")
    assert (len(bank.items()), [task.task_id for task in bank.tasks()]) == (kept - 1, ["u"])
    assert MARKER not in everything_in(mem, tmp_path)
    assert mem.verify().ok


def test_what_others_taught_the_agent_stays_although_it_has_the_words_of_a_forgotten_task() -> None:
    with Memory(":memory:") as mem:

        def run(user: str, session: str, query: str) -> None:
            bank = ReasoningBank(mem, scope=Scope(user=user, agent="solver"))
            steps = [{"tool": "make", "args": {"goal": query}, "ok": True}]
            bank.run_task(
                task_id=query, query=query, session_id=session, execute=lambda _: {"steps": steps, "verdict": True}
            )

        run("ben", "b", "Deploy the shop to staging")
        run("ada", "monday", "Deploy the shop")
        agent = Scope(agent="solver")
        mem.remember("Deploy the shop only on weekdays.", kind="strategy", scope=agent)
        mem.forget(session_id="monday", scope=Scope(user="ada"))
        bank = ReasoningBank(mem, scope=agent)
        assert [task.query for task in bank.tasks()] == ["Deploy the shop to staging"]
        assert {"weekdays" in item.text or "to staging" in item.text for item in bank.items()} == {True}
        assert len(bank.items()) == 2


def test_a_task_goes_with_the_turn_that_asked_for_it() -> None:
    with Memory(":memory:") as mem:
        ada, said = mem.for_user("ada"), f"Create the user {MARKER}"
        turn = ada.session("monday").add("user", said)
        ada.session("monday").add("user", "Thanks a lot.")
        bank = ReasoningBank(mem, scope=Scope(user="ada", agent="solver"))
        steps = [{"tool": "create", "args": {"name": MARKER}, "ok": True}]
        bank.run_task(task_id="t", query=said, session_id="monday", execute=lambda _: {"steps": steps, "verdict": True})
        ada.forget([turn], turns=True)
        assert (bank.tasks(), bank.items()) == ([], [])
