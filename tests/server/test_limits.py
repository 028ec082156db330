"""Rate limits: in one process, and in a real Redis where the program `redis-server` is installed."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from wellworn.models.cache import REST_S
from wellworn.server.access import PREFIX, Limiter, SharedLimiter

from .conftest import serving
from .test_access import Ticks


class Scripted:
    """A Redis that nobody answers for, until it does."""

    def __init__(self) -> None:
        self.alive = False
        self.asked = 0

    def register_script(self, script: str) -> Any:
        def run(keys: list[str], args: list[float]) -> bytes:
            self.asked += 1
            if not self.alive:
                raise ConnectionError("nobody there")
            return b"7.5"

        return run


def test_a_limiter_forgets_who_was_longest_quiet() -> None:
    limiter = Limiter(rate=1, burst=1, clock=Ticks())
    for name in range(10_001):
        limiter.take(str(name))
    assert (limiter.take("0", look=True), limiter.take("10000", look=True)) == (0, 1)


def test_servers_share_a_bucket_in_redis(redis_server: Any) -> None:
    # So slow a refill that no machine is slow enough to see it.
    one, two = (SharedLimiter(redis_server, rate=1e-4, burst=3) for _ in range(2))
    assert [limiter.take("key:ada 10.0.0.1") for limiter in (one, two, one)] == [0, 0, 0]
    assert 0 < two.take("key:ada 10.0.0.1") <= 1e4
    assert 0 < one.take("key:ada 10.0.0.1", look=True) <= 1e4
    assert one.take("key:ben", look=True) == 0
    (name,) = redis_server.keys("*")  # a name that was only looked at has none
    assert name.startswith(PREFIX.encode())
    assert b"ada" not in name
    assert b"10.0" not in name
    assert 0 < redis_server.pttl(name) <= 3e7 + 1000
    redis_server.hset(name, "at", 0)
    assert two.take("key:ada 10.0.0.1") == 0  # refilled by the time that passed


def test_a_server_asks_its_redis() -> None:
    redis = Scripted()
    redis.alive = True
    with serving(local=None, redis=redis) as running:
        answer = running.http(running.key()).get("/v1/stats?user=ada")
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "8")


@pytest.mark.parametrize("url", ["redis://127.0.0.1:1/0", "unix:///nowhere/at/all"])
def test_without_its_redis_a_server_counts_for_itself(url: str) -> None:
    pytest.importorskip("redis", reason="needs the extra redis")
    with serving(local=None, rate=2, ticks=Ticks(), redis=url) as running:
        http = running.http(running.key())
        assert [http.get("/v1/stats?user=ada").status_code for _ in range(5)] == [200] * 4 + [429]


def test_a_redis_that_failed_is_left_alone_for_a_while() -> None:
    ticks, redis = Ticks(), Scripted()
    limiter = SharedLimiter(redis, rate=1, burst=2, clock=ticks)
    assert [limiter.take("a") for _ in range(3)] == [0, 0, 1]
    assert redis.asked == 1
    redis.alive = True
    ticks.now = REST_S - 1
    assert (limiter.take("a", look=True), redis.asked) == (0, 1)
    ticks.now = REST_S
    assert (limiter.take("a", look=True), limiter.take("a"), redis.asked) == (7.5, 7.5, 3)


def test_a_redis_that_hangs_stalls_one_request_shortly(redis_server: Any) -> None:
    address = redis_server.connection_pool.connection_kwargs["path"]
    limiter = SharedLimiter(f"unix://{address}", rate=1, burst=2, clock=Ticks())
    process = redis_server.info()["process_id"]
    os.kill(process, signal.SIGSTOP)
    try:
        assert [limiter.take("a") for _ in range(3)] == [0, 0, 1]  # its own bucket is full
    finally:
        os.kill(process, signal.SIGCONT)
