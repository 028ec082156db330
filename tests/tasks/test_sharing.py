"""Strategies that leave the agent who learned them: which may, what goes along, and how they come back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tasks.consolidation_world import AGENT, ReasoningBank, learn, live, opened
from wellworn import InvalidInput, Memory, NotFound, Scope
from wellworn.tasks.items import domain_of
from wellworn.tasks.sharing import proven_rate

TEXT = "Open the cart, then apply the code, then pay."
PROVEN: dict[str, Any] = {"confidence": 0.92, "usage_count": 60, "success_count": 50, "failure_count": 5}
PEER = Scope(tenant="acme", agent="second")
TEAM = Scope(tenant="acme", team="ops")


@pytest.fixture
def mem() -> Iterator[Memory]:
    with opened(scrubber=lambda text: text.replace("ada@acme.org", "[EMAIL_1]")) as memory:
        yield memory


@pytest.fixture
def bank(mem: Memory) -> ReasoningBank:
    return ReasoningBank(mem, scope=AGENT)


def promoted(mem: Memory, bank: ReasoningBank, text: str = TEXT, **numbers: Any) -> str:  # fields of Entry
    id = learn(mem, text, evidence="ada bought a lamp for 40", **{**PROVEN, **numbers})
    bank.consolidate(scope=AGENT)
    return id


def test_a_promoted_strategy_goes_to_the_team_without_a_word_of_the_work(mem: Memory, bank: ReasoningBank) -> None:
    id = promoted(mem, bank)
    [share] = bank.sharing.share([id], scope=AGENT, layer="team")
    assert share.refused == ""
    assert share.copy_id is not None
    copy, original = mem.get(share.copy_id, scope=TEAM), mem.get(id, scope=AGENT)
    assert (copy.text, copy.layer, copy.usage_count) == (TEXT, "team", 0)
    assert copy.evidence == "Succeeded 50 of 55 times, used 60 times."
    assert copy.confidence == pytest.approx(proven_rate(original), abs=1e-4)
    assert copy.confidence < original.confidence
    assert domain_of(copy.tags) == "web"
    assert [(link.source, link.target) for link in mem.links(copy.id, scope=AGENT) if link.type == "derived_from"] == [
        (copy.id, id)
    ]
    assert copy.metadata["shared"]["id"] == id
    assert "promoted" not in copy.metadata
    assert mem.verify().ok


@pytest.mark.parametrize(
    ("numbers", "why"),
    [
        ({"usage_count": 50}, "not promoted"),
        ({"success_count": 0, "failure_count": 0}, "0 successes and 0 failures"),
        ({"success_count": 20, "failure_count": 15}, "not enough evidence"),
    ],
)
def test_what_is_not_promoted_or_not_proven_stays(
    mem: Memory, bank: ReasoningBank, numbers: dict[str, Any], why: str
) -> None:
    id = promoted(mem, bank, **numbers)
    [share] = bank.sharing.share([id], scope=AGENT, layer="team")
    assert why in share.refused
    assert share.copy_id is None
    assert mem.entries(scope=TEAM) == []


def test_the_copy_passes_the_scrubber_also_when_the_original_did_not(bank: ReasoningBank) -> None:
    with opened() as plain:
        own = ReasoningBank(plain, scope=AGENT)
        id = promoted(plain, own, "Write to ada@acme.org, then wait.")
        [share] = own.sharing.share([id], scope=AGENT, layer="team")
        assert share.copy_id is not None
        assert plain.get(share.copy_id, scope=TEAM).text == "Write to [EMAIL_1], then wait."


def test_sharing_with_named_agents_only_and_twice_is_sharing_once(mem: Memory, bank: ReasoningBank) -> None:
    id = promoted(mem, bank)
    shares, again = (bank.sharing.share([id], scope=AGENT, agents=["second", "third", "second"]) for _ in range(2))
    assert [share.to.layer_id for share in shares] == ["second", "third"]
    assert [share.copy_id for share in shares] == [share.copy_id for share in again]
    assert {text: copy.repeats for text, copy in live(mem, PEER).items()} == {TEXT: 0}
    assert mem.entries(scope=Scope(tenant="acme", agent="fourth")) == []
    assert mem.entries(scope=Scope(tenant="rival", agent="second")) == []


def test_the_same_from_two_agents_is_one_copy_that_stays_until_both_revoke(mem: Memory, bank: ReasoningBank) -> None:
    second = Scope(tenant="acme", agent="second", team="ops")
    id = promoted(mem, bank)
    other = learn(mem, TEXT, scope=second, **PROVEN)
    bank.consolidate(scope=second)
    shares = [
        bank.sharing.share([id], scope=AGENT, layer="team")[0],
        bank.sharing.share([other], scope=second, layer="team")[0],
    ]
    [copy] = mem.entries(scope=TEAM)
    assert {share.copy_id for share in shares} == {copy.id}
    assert bank.sharing.revoke(id, scope=AGENT) == []
    assert mem.get(copy.id, scope=TEAM).state == "active"
    assert bank.sharing.revoke(other, scope=second) == [copy.id]
    assert mem.get(copy.id, scope=TEAM).state == "pruned"
    assert mem.verify().ok


def test_revoking_takes_it_back_everywhere(mem: Memory, bank: ReasoningBank) -> None:
    id = promoted(mem, bank)
    bank.sharing.share([id], scope=AGENT, layer="team")
    bank.sharing.share([id], scope=AGENT, agents=["second"])
    assert len(bank.sharing.revoke(id, scope=AGENT)) == 2
    assert live(mem, PEER) == {}
    assert mem.recall("apply the code", scope=TEAM, k=1).hits == []
    assert bank.sharing.revoke(id, scope=AGENT) == []
    assert mem.get(id, scope=AGENT).state == "active"


def test_learning_from_a_peer_has_thresholds(mem: Memory, bank: ReasoningBank) -> None:
    good = learn(mem, TEXT, confidence=0.8, usage_count=12, success_count=11, failure_count=1)
    learn(mem, "Sort by price.", confidence=0.79, usage_count=90, success_count=80)
    learn(mem, "Read the row.", confidence=0.9, usage_count=9, success_count=9)
    learn(mem, "Call the shop.", confidence=0.9, usage_count=20, success_count=5, failure_count=15)
    shares = bank.sharing.learn_from_peer(AGENT, scope=PEER)
    assert [share.id for share in shares if not share.refused] == [good]
    assert set(live(mem, PEER)) == {TEXT}
    with pytest.raises(InvalidInput, match="another agent"):
        bank.sharing.learn_from_peer(AGENT, scope=Scope(tenant="rival", agent="second"))


def test_what_came_from_the_team_does_not_go_back_there(mem: Memory, bank: ReasoningBank) -> None:
    id = promoted(mem, bank)
    [share] = bank.sharing.share([id], scope=AGENT, agents=["second"])
    [back] = bank.sharing.learn_from_peer("second", scope=AGENT, min_confidence=0.0, min_usage=0)
    assert back.copy_id is None
    assert share.copy_id is not None


def test_bad_wishes_are_refused(mem: Memory, bank: ReasoningBank) -> None:
    id = promoted(mem, bank)
    with pytest.raises(InvalidInput, match="with whom"):
        bank.sharing.share([id], scope=AGENT)
    with pytest.raises(InvalidInput, match="user"):
        bank.sharing.share([id], scope=AGENT, layer="user")
    with pytest.raises(NotFound):
        bank.sharing.share([id], scope=PEER, agents=["third"])
