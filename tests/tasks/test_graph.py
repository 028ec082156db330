"""Levels of memory, and walks over links."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tasks.consolidation_world import AGENT, Clock, ReasoningBank, learn, opened
from wellworn import InvalidInput, Memory, NotFound, Scope


@pytest.fixture
def mem(clock: Clock) -> Iterator[Memory]:
    with opened(clock=clock) as memory:
        yield memory


@pytest.fixture
def bank(mem: Memory) -> ReasoningBank:
    return ReasoningBank(mem, scope=AGENT)


def test_the_multi_hop_example_of_the_design(mem: Memory, bank: ReasoningBank) -> None:
    login = learn(mem, "Login requires a CSRF token.")
    token = learn(mem, "The CSRF token is extracted from the form.")
    parse = learn(mem, "Parse the form with the HTML parser.")
    mem.link(login, token, "requires", scope=AGENT, confidence=0.9)
    mem.link(token, parse, "requires", scope=AGENT, confidence=0.8)
    paths = bank.graph.walk(login, scope=AGENT, hops=2)
    assert [(path.entry.id, path.types, path.confidence) for path in paths] == [
        (token, ("requires",), 0.9),
        (parse, ("requires", "requires"), pytest.approx(0.72)),
    ]
    assert [path.entry.id for path in bank.graph.walk(login, scope=AGENT, hops=1)] == [token]
    assert bank.graph.walk(parse, scope=AGENT) == []  # links are followed the way they point


def test_of_two_ways_the_surer_is_told_and_a_ring_ends(mem: Memory, bank: ReasoningBank) -> None:
    a, b, c = (learn(mem, f"Step {name} of the way.") for name in ("one", "two", "three"))
    mem.link(a, c, "enables", scope=AGENT, confidence=0.3)
    mem.link(a, b, "entails", scope=AGENT, confidence=0.9)
    mem.link(b, c, "refines", scope=AGENT, confidence=0.9)
    mem.link(c, a, "requires", scope=AGENT)
    found = {path.entry.id: path for path in bank.graph.walk(a, scope=AGENT, hops=8)}
    assert set(found) == {b, c}
    assert found[c].types == ("entails", "refines")


def test_a_walk_stays_in_its_scope(mem: Memory, bank: ReasoningBank) -> None:
    mine = learn(mem, "Read the row.")
    shared = Scope(tenant="acme", agent="solver", team="ops")
    teams = learn(mem, "Rows begin at one.", scope=shared, layer="team")
    mem.link(mine, teams, "requires", scope=shared)
    assert [path.entry.id for path in bank.graph.walk(mine, scope=shared)] == [teams]
    assert bank.graph.walk(mine, scope=Scope(tenant="acme", agent="solver")) == []
    with pytest.raises(NotFound):
        bank.graph.walk(mine, scope=Scope(tenant="acme", agent="other"))


def test_a_walk_has_at_least_one_hop(mem: Memory, bank: ReasoningBank) -> None:
    with pytest.raises(InvalidInput, match="hops"):
        bank.graph.walk(learn(mem, "Read the row."), scope=AGENT, hops=0)


def test_levels_by_age_and_by_promotion(mem: Memory, bank: ReasoningBank, clock: Clock) -> None:
    old = learn(mem, "Old advice about menus.")
    clock.forward(days=20)
    working = learn(mem, "Advice about tables.")
    clock.forward(days=20)
    recent = learn(mem, "Advice about dates.")
    proven = learn(mem, "Prices are shown without tax.", confidence=0.9, usage_count=51)
    meta = learn(mem, "Numbers are shown the short way.", confidence=0.9, usage_count=51)
    for other in (old, working):
        mem.link(meta, other, "entails", scope=AGENT)
    bank.consolidate(scope=AGENT)
    levels = bank.graph.levels(scope=AGENT)
    found = {view: [entry.id for entry in entries] for view, entries in levels.items()}
    assert found == {
        "episodic.recent": [recent],
        "episodic.working": [working],
        "episodic.older": [old],
        "semantic.knowledge": [proven],
        "semantic.meta": [meta],
        "procedural.skills": [],
    }
