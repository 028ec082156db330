"""Expiry of `WellwornStore`: an expired item is never returned, reading restarts its time, sweeping removes it."""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis.stateful import RuleBasedStateMachine, rule
from langgraph.store.base import PutOp, TTLConfig

from integrations.world import HandClock
from wellworn import InvalidInput, Memory, Scope
from wellworn.core.errors import StoreBusy
from wellworn.integrations.langgraph_store import WellwornStore

NS = ("users", "ada")
LONG = {"text": ". ".join(f"sentence {n} about tea and rain" for n in range(70))}
AT_ONCE = 1e-6
"""An interval in minutes that is over before anyone looks."""


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def memory(clock: HandClock) -> Iterator[Memory]:
    with Memory(":memory:", embedder="hash:16", clock=clock) as memory:
        yield memory


@pytest.fixture
def store(memory: Memory) -> WellwornStore:
    return WellwornStore(memory, tenant="acme")


def test_an_item_is_there_until_the_moment_it_expires(store: WellwornStore, memory: Memory, clock: HandClock) -> None:
    store.put(NS, "k", {"text": "tea"}, ttl=10)
    clock.forward(9.999)
    assert store.get(NS, "k", refresh_ttl=False) is not None
    clock.forward(0.001)
    assert store.get(NS, "k") is None
    assert store.search(NS) == store.search(NS, query="tea") == store.list_namespaces() == []
    assert memory.recall("tea", scope=store.scope(NS)).hits == []


@pytest.mark.parametrize("query", [None, "rain", "get"])
def test_reading_restarts_the_time_of_every_piece_unless_told_not_to(
    store: WellwornStore, memory: Memory, clock: HandClock, query: str | None
) -> None:
    def look(refresh: bool | None) -> int:
        if query == "get":
            return int(store.get(NS, "k", refresh_ttl=refresh) is not None)
        return len(store.search(NS, query=query, refresh_ttl=refresh))

    store.put(NS, "k", LONG, ttl=10)
    clock.forward(6)
    assert look(None) == 1
    clock.forward(6)
    assert look(False) == 1, "the first look made it last"
    assert len(memory.recall("sentence 65", scope=store.scope(NS), k=20).hits) > 1
    clock.forward(4)
    assert look(True) == 0, "the second did not"


def test_a_search_refreshes_only_what_it_returns_and_makes_nothing_newer(
    store: WellwornStore, clock: HandClock
) -> None:
    store.put(NS, "old", {"text": "tea"}, ttl=10)
    clock.forward(1)
    store.put(NS, "new", {"text": "rain"}, ttl=10)
    clock.forward(1)
    assert store.get(NS, "old") is not None
    clock.forward(7)
    assert [(item.key, item.updated_at) for item in store.search(NS, limit=1)] == [
        ("new", clock.now - timedelta(minutes=8))
    ]
    clock.forward(3)
    assert [item.key for item in store.search(NS)] == ["new"]


def test_the_configuration_sets_the_default_and_whether_reading_refreshes(memory: Memory, clock: HandClock) -> None:
    store = WellwornStore(memory, tenant="acme", ttl=TTLConfig(default_ttl=10, refresh_on_read=False))
    store.put(NS, "default", {"n": 1})
    store.put(NS, "own", {"n": 2}, ttl=20)
    store.put(NS, "endless", {"n": 3}, ttl=None)
    clock.forward(6)
    assert len(store.search(NS)) == 3
    clock.forward(6)
    assert {item.key for item in store.search(NS)} == {"own", "endless"}
    assert store.get(NS, "own", refresh_ttl=True) is not None
    clock.forward(19)
    assert {item.key for item in store.search(NS)} == {"own", "endless"}


def test_putting_again_sets_the_end_anew_and_an_expired_item_begins_anew(
    store: WellwornStore, clock: HandClock
) -> None:
    began = clock.now
    store.put(NS, "k", {"n": 1}, ttl=10)
    store.put(NS, "expired", LONG, ttl=10)
    clock.forward(5)
    store.put(NS, "k", {"n": 2})
    clock.forward(100)
    store.put(NS, "expired", {"text": "fresh"})
    kept, fresh = store.get(NS, "k"), store.get(NS, "expired")
    assert kept is not None
    assert fresh is not None
    assert (kept.value, kept.created_at) == ({"n": 2}, began)
    assert (fresh.value, fresh.created_at) == ({"text": "fresh"}, clock.now)


def test_sweeping_removes_what_expired_from_the_files_bytes_and_nothing_else(tmp_path: Path, clock: HandClock) -> None:
    with Memory(tmp_path / "memory.db", embedder="hash:16", clock=clock) as memory:
        store, other = WellwornStore(memory, tenant="acme"), WellwornStore(memory, tenant="rival")
        noted = Scope(tenant="acme", user="ada")
        memory.remember("Ada was here", scope=noted, valid_to=clock.now + timedelta(minutes=5))
        store.put(NS, "long", {"text": "secretvalue " + LONG["text"]}, ttl=10)
        store.put(NS, "stays", {"text": "tea"})
        store.put(("secretspace",), "secretkey", {"text": "tea"}, index=False, ttl=10)
        other.put(NS, "theirs", {"text": "tea"}, ttl=10)
        clock.forward(10)
        assert (store.sweep_ttl(), store.sweep_ttl()) == (2, 0)
        assert memory.admin.stats(scope=store.scope(NS)).entries == 1, "every piece is gone"
        assert memory.admin.stats(scope=noted).entries == 1, "what was remembered stays"
        assert memory.admin.stats(scope=other.scope(NS)).entries == 1, "the other tenant sweeps for itself"
        assert memory.verify().ok
        assert b"secret" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())


def test_sweeping_and_listing_reach_past_one_page(store: WellwornStore, clock: HandClock) -> None:
    store.batch([PutOp(NS, f"{n}", {"n": n}, index=False, ttl=1) for n in range(250)])
    store.put(NS, "stays", {"n": 0}, index=False)
    clock.forward(1)
    assert store.list_namespaces() == [NS]
    assert store.sweep_ttl() == 250
    assert [item.key for item in store.search(())] == ["stays"]


@pytest.mark.parametrize("ttl", [0, -1, float("nan"), float("inf"), 1e30, True, "10"])
def test_a_bad_time_to_live_is_one_clear_error(store: WellwornStore, memory: Memory, ttl: Any) -> None:
    with pytest.raises(InvalidInput, match="ttl"):
        store.put(NS, "k", {"n": 1}, ttl=ttl)
    assert store.search(()) == []
    with pytest.raises(InvalidInput, match="default_ttl"):
        WellwornStore(memory, tenant="acme", ttl={"default_ttl": ttl})
    with pytest.raises(InvalidInput, match="not a TTLConfig"):
        WellwornStore(memory, tenant="acme", ttl={"minutes": 5})  # type: ignore[arg-type]


# -- the thread --------------------------------------------------------------------------------------------------


class Watched(WellwornStore):
    """Fails in its first sweep and says when it has come to the third."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory, tenant="acme")
        self.sweeps = 0
        self.swept = threading.Event()

    def sweep_ttl(self) -> int:
        self.sweeps += 1
        if self.sweeps == 1:
            raise StoreBusy("another writer")
        if self.sweeps == 3:
            self.swept.set()
        return super().sweep_ttl()


def sweepers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "wellworn-ttl-sweeper"]


def test_the_sweeper_goes_on_after_a_fault_until_it_is_stopped(
    memory: Memory, clock: HandClock, caplog: pytest.LogCaptureFixture
) -> None:
    store = Watched(memory)
    assert store.stop_ttl_sweeper()
    store.put(NS, "k", {"n": 1}, ttl=1)
    clock.forward(2)
    with caplog.at_level(logging.ERROR):
        store.start_ttl_sweeper(AT_ONCE)
        store.start_ttl_sweeper(AT_ONCE)
        assert len(sweepers()) == 1
        assert store.swept.wait(60)
        assert store.stop_ttl_sweeper(60)
    assert "could not be swept" in caplog.text
    assert memory.admin.stats(scope=store.scope(NS)).entries == 0
    store.start_ttl_sweeper()
    assert len(sweepers()) == 1, "it can be started again"
    assert store.stop_ttl_sweeper(60)


def test_the_sweeper_ends_with_its_store_and_with_its_memory(memory: Memory) -> None:
    abandoned, closed = WellwornStore(memory, tenant="acme"), WellwornStore(memory, tenant="acme")
    abandoned.start_ttl_sweeper(AT_ONCE)
    (thread,) = sweepers()
    del abandoned
    gc.collect()
    thread.join(60)
    assert not thread.is_alive()
    memory.close()
    closed.start_ttl_sweeper(AT_ONCE)
    for thread in sweepers():
        thread.join(60)
    assert sweepers() == []


# -- against a model ---------------------------------------------------------------------------------------------


@dataclass
class Expected:
    n: int
    ttl: float | None
    end: datetime | None = None


class Expiry(RuleBasedStateMachine):
    """Random puts, reads, waits and sweeps against a dictionary that knows when each item ends."""

    keys = st.sampled_from(["a", "b", "c"])
    names = st.sampled_from([("x",), ("x", "y"), ("z",)])

    def __init__(self) -> None:
        super().__init__()
        self.clock = HandClock()
        self.memory = Memory(":memory:", embedder="hash:8", clock=self.clock)
        self.store = WellwornStore(self.memory, tenant="acme")
        self.model: dict[tuple[tuple[str, ...], str], Expected] = {}

    def live(self) -> dict[tuple[tuple[str, ...], str], Expected]:
        return {place: one for place, one in self.model.items() if one.end is None or self.clock.now < one.end}

    def touch(self, one: Expected) -> None:
        one.end = None if one.ttl is None else self.clock.now + timedelta(minutes=one.ttl)

    @rule(name=names, key=keys, n=st.integers(0, 9), ttl=st.sampled_from([None, 1.0, 3.0, 10.0]), long=st.booleans())
    def put(self, name: tuple[str, ...], key: str, n: int, ttl: float | None, long: bool) -> None:
        self.store.put(name, key, {"n": n, **(LONG if long else {})}, ttl=ttl)
        self.model[name, key] = Expected(n, ttl)
        self.touch(self.model[name, key])

    @rule(minutes=st.sampled_from([0.5, 1.0, 2.5]))
    def wait(self, minutes: float) -> None:
        self.clock.forward(minutes)

    @rule(name=names, key=keys, refresh=st.booleans())
    def get(self, name: tuple[str, ...], key: str, refresh: bool) -> None:
        item = self.store.get(name, key, refresh_ttl=refresh)
        expected = self.live().get((name, key))
        assert (item and item.value["n"]) == (expected and expected.n)
        if expected is not None and refresh:
            self.touch(expected)

    @rule(name=names, refresh=st.booleans(), query=st.sampled_from([None, "rain"]))
    def search(self, name: tuple[str, ...], refresh: bool, query: str | None) -> None:
        found = self.store.search(name, query=query, refresh_ttl=refresh)
        expected = {place: one for place, one in self.live().items() if place[0][: len(name)] == name}
        assert {(item.namespace, item.key): item.value["n"] for item in found} == {
            place: one.n for place, one in expected.items()
        }
        for one in expected.values() if refresh else ():
            self.touch(one)

    @rule()
    def namespaces(self) -> None:
        assert self.store.list_namespaces() == sorted({name for name, _ in self.live()})

    @rule()
    def sweep(self) -> None:
        live = self.live()
        assert self.store.sweep_ttl() == len(self.model) - len(live)
        self.model = live
        assert self.memory.verify().ok

    def teardown(self) -> None:
        self.memory.close()


TestExpiry = Expiry.TestCase
