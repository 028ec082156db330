"""Expiry: what has expired is never returned, reading begins the time anew, and sweeping removes for good."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, rule
from langgraph.store.base import PutOp, TTLConfig

from integrations.world import HandClock
from wellworn import InvalidInput, Memory, Scope
from wellworn.core.errors import StoreBusy
from wellworn.integrations.langgraph.sweeper import Sweeper
from wellworn.integrations.langgraph_store import WellwornStore

NS = ("users", "ada")
LONG = {"text": ". ".join(f"sentence {n} about tea and rain" for n in range(70))}


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def memory(clock: HandClock) -> Iterator[Memory]:
    with Memory.open(":memory:", embedder="hash:16", clock=clock) as memory:
        yield memory


@pytest.fixture
def store(memory: Memory) -> WellwornStore:
    return WellwornStore(memory, tenant="acme")


def test_an_item_is_there_until_the_moment_it_expires(store: WellwornStore, clock: HandClock) -> None:
    store.put(NS, "k", {"text": "tea"}, ttl=10)
    clock.forward(9.999)
    assert store.get(NS, "k", refresh_ttl=False) is not None
    clock.forward(0.001)
    assert store.get(NS, "k") is None
    assert store.search(NS) == store.search(NS, query="tea") == store.list_namespaces() == []


@pytest.mark.parametrize("read", ["get", "search", "query"])
def test_reading_begins_the_time_anew_unless_told_not_to(
    store: WellwornStore, memory: Memory, clock: HandClock, read: str
) -> None:
    def look(refresh: bool | None) -> int:
        if read == "get":
            return int(store.get(NS, "k", refresh_ttl=refresh) is not None)
        return len(store.search(NS, query="rain" if read == "query" else None, refresh_ttl=refresh))

    store.put(NS, "k", LONG, ttl=10)  # in several pieces, all of which must live on
    clock.forward(6)
    assert look(None) == 1
    pieces = memory.entries(scope=store.scope(NS))
    assert len(pieces) > 1
    assert {piece.valid_to for piece in pieces} == {clock.now + timedelta(minutes=10)}
    clock.forward(6)
    assert look(False) == 1, "the first look made it last"
    assert len(store.search(NS, query="sentence 65", refresh_ttl=False)) == 1
    clock.forward(4)
    assert look(True) == 0, "the second did not"


def test_a_search_refreshes_only_what_it_returns(store: WellwornStore, clock: HandClock) -> None:
    store.put(NS, "old", {"text": "tea"}, ttl=10)
    clock.forward(1)
    store.put(NS, "new", {"text": "rain"}, ttl=10)
    assert [item.key for item in store.search(NS, limit=1)] == ["new"]
    clock.forward(9)
    assert [item.key for item in store.search(NS)] == ["new"]


def test_refreshing_does_not_make_an_item_newer(store: WellwornStore, clock: HandClock) -> None:
    store.put(NS, "a", {"n": 1}, ttl=10)
    clock.forward(1)
    store.put(NS, "b", {"n": 2})
    before = store.get(NS, "a")
    assert before is not None
    assert before.updated_at == clock.now - timedelta(minutes=1)
    assert [item.key for item in store.search(NS)] == ["b", "a"]


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


def test_putting_again_without_an_end_takes_the_end_away_and_keeps_the_beginning(
    store: WellwornStore, clock: HandClock
) -> None:
    store.put(NS, "k", {"n": 1}, ttl=10)
    began = clock.now
    clock.forward(5)
    store.put(NS, "k", {"n": 2})
    clock.forward(100)
    item = store.get(NS, "k")
    assert item is not None
    assert (item.value, item.created_at, item.updated_at) == ({"n": 2}, began, began + timedelta(minutes=5))


def test_an_expired_item_that_is_put_again_begins_anew(store: WellwornStore, clock: HandClock) -> None:
    store.put(NS, "k", LONG, ttl=10)
    clock.forward(11)
    store.put(NS, "k", {"text": "fresh"})
    item = store.get(NS, "k")
    assert item is not None
    assert (item.value, item.created_at) == ({"text": "fresh"}, clock.now)
    assert [found.key for found in store.search(NS, query="sentence about rain")] == ["k"]


def test_sweeping_removes_what_expired_and_nothing_else(store: WellwornStore, memory: Memory, clock: HandClock) -> None:
    other = WellwornStore(memory, tenant="rival")
    memory.remember("Ada was here", scope=Scope(tenant="acme", user="ada"), valid_to=clock.now + timedelta(minutes=5))
    store.put(NS, "long", LONG, ttl=10)
    store.put(NS, "stays", {"text": "tea"})
    store.put(("gone",), "k", {"text": "tea"}, index=False, ttl=10)
    other.put(NS, "theirs", {"text": "tea"}, ttl=10)
    clock.forward(10)
    assert store.sweep_ttl() == 2
    assert store.sweep_ttl() == 0
    assert memory.admin.stats(scope=store.scope(NS)).entries == 1, "every piece went"
    assert memory.admin.stats(scope=Scope(tenant="acme", user="ada")).entries == 1, "what was remembered stays"
    assert memory.admin.stats(scope=other.scope(NS)).entries == 1, "the other tenant sweeps for itself"
    assert store.list_namespaces() == [NS]
    assert memory.verify().ok


def test_what_was_swept_is_gone_from_the_files_bytes(tmp_path: Path, clock: HandClock) -> None:
    with Memory.open(tmp_path / "memory.db", embedder="hash:16", clock=clock) as memory:
        store = WellwornStore(memory, tenant="acme")
        store.put(("secretspace",), "secretkey", {"text": "secretvalue"}, ttl=1)
        store.put(NS, "secretkey", {"text": "secretvalue"}, ttl=1)
        store.put(NS, "stays", {"text": "tea"})
        clock.forward(2)
        assert store.sweep_ttl() == 2
        raw = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"secret" not in raw


@pytest.mark.parametrize("ttl", [0, -1, float("nan"), float("inf"), 1e30, True, "10"])
def test_a_time_to_live_that_is_none_is_refused(store: WellwornStore, ttl: float) -> None:
    with pytest.raises(InvalidInput, match="ttl"):
        store.put(NS, "k", {"n": 1}, ttl=ttl)
    assert store.search(()) == []


def test_the_shortest_time_to_live_is_still_a_time(store: WellwornStore, clock: HandClock) -> None:
    store.put(NS, "k", {"n": 1}, ttl=1e-12)
    assert store.get(NS, "k") is not None
    clock.forward(0.001)
    assert store.get(NS, "k") is None


def test_the_end_of_the_calendar_is_no_end(store: WellwornStore, clock: HandClock) -> None:
    clock.now = datetime.max.replace(tzinfo=clock.now.tzinfo) - timedelta(days=1)
    store.put(NS, "k", {"n": 1}, ttl=1e6)
    assert store.get(NS, "k") is not None


# -- the thread --------------------------------------------------------------------------------------------------


def test_the_sweeper_sweeps_until_it_is_stopped(store: WellwornStore, clock: HandClock, memory: Memory) -> None:
    store.put(NS, "k", {"n": 1}, ttl=1)
    clock.forward(2)
    store.start_ttl_sweeper(0.0005)
    store.start_ttl_sweeper(0.0005)  # one is enough
    assert sum(thread.name == "wellworn-ttl-sweeper" for thread in threading.enumerate()) == 1
    done = threading.Event()
    for _ in range(500):
        if not memory.admin.stats(scope=store.scope(NS)).entries or done.wait(0.01):
            break
    assert store.stop_ttl_sweeper(10)
    assert store.stop_ttl_sweeper()
    assert memory.admin.stats(scope=store.scope(NS)).entries == 0
    assert all(thread.name != "wellworn-ttl-sweeper" for thread in threading.enumerate())


def test_a_sweep_that_fails_is_logged_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    tried: list[int] = []
    again = threading.Event()

    def sweep() -> int:
        tried.append(1)
        if len(tried) == 1:
            raise StoreBusy("another writer")
        again.set()
        return 3

    sweeper = Sweeper(sweep)
    with caplog.at_level(logging.INFO):
        sweeper.start(0.0001)
        assert again.wait(10)
        assert sweeper.stop(10)
    assert "could not be swept" in caplog.text
    assert "3 expired items swept" in caplog.text


def test_the_sweeper_ends_with_the_memory(tmp_path: Path) -> None:
    memory = Memory.open(tmp_path / "memory.db", embedder="hash:16")
    store = WellwornStore(memory, tenant="acme")
    memory.close()
    store.start_ttl_sweeper(0.0001)
    assert store.stop_ttl_sweeper(10)


# -- against a model ---------------------------------------------------------------------------------------------


@dataclass
class Kept:
    n: int
    ttl: float | None
    end: datetime | None


class Expiry(RuleBasedStateMachine):
    """Random puts, looks, waits and sweeps against a dictionary that knows when each item ends."""

    keys = st.sampled_from(["a", "b", "c"])
    names = st.sampled_from([("x",), ("x", "y"), ("z",)])

    def __init__(self) -> None:
        super().__init__()
        self.clock = HandClock()
        self.memory = Memory.open(":memory:", embedder="hash:8", clock=self.clock)
        self.store = WellwornStore(self.memory, tenant="acme")
        self.model: dict[tuple[tuple[str, ...], str], Kept] = {}

    def live(self) -> dict[tuple[tuple[str, ...], str], Kept]:
        return {place: kept for place, kept in self.model.items() if kept.end is None or self.clock.now < kept.end}

    def touch(self, place: tuple[tuple[str, ...], str]) -> None:
        kept = self.model[place]
        kept.end = None if kept.ttl is None else self.clock.now + timedelta(minutes=kept.ttl)

    @rule(name=names, key=keys, n=st.integers(0, 9), ttl=st.sampled_from([None, 1.0, 3.0, 10.0]), long=st.booleans())
    def put(self, name: tuple[str, ...], key: str, n: int, ttl: float | None, long: bool) -> None:
        self.store.batch([PutOp(name, key, {"n": n, **(LONG if long else {})}, ttl=ttl)])
        self.model[name, key] = Kept(n, ttl, None)
        self.touch((name, key))

    @rule(minutes=st.sampled_from([0.5, 1.0, 2.5]))
    def wait(self, minutes: float) -> None:
        self.clock.forward(minutes)

    @rule(name=names, key=keys, refresh=st.booleans())
    def get(self, name: tuple[str, ...], key: str, refresh: bool) -> None:
        item = self.store.get(name, key, refresh_ttl=refresh)
        expected = self.live().get((name, key))
        assert (item and item.value["n"]) == (expected and expected.n)
        if expected is not None and refresh:
            self.touch((name, key))

    @rule(name=names, refresh=st.booleans(), query=st.sampled_from([None, "rain"]))
    def search(self, name: tuple[str, ...], refresh: bool, query: str | None) -> None:
        found = self.store.search(name, query=query, refresh_ttl=refresh)
        expected = {place: kept.n for place, kept in self.live().items() if place[0][: len(name)] == name}
        assert {(item.namespace, item.key): item.value["n"] for item in found} == expected
        if refresh:
            for place in expected:
                self.touch(place)

    @rule()
    def namespaces(self) -> None:
        assert self.store.list_namespaces() == sorted({name for name, _ in self.live()})

    @rule()
    def sweep(self) -> None:
        assert self.store.sweep_ttl() == len(self.model) - len(self.live())
        self.model = self.live()
        assert self.memory.verify().ok

    def teardown(self) -> None:
        self.memory.close()


TestExpiry = Expiry.TestCase
TestExpiry.settings = settings(max_examples=15, stateful_step_count=30, deadline=None, derandomize=True)
