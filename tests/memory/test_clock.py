"""Clocks go wrong: nothing is hidden by a step back, nothing is deleted by a jump forward."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from memory.world import ADA, Clock, OpenMemory
from wellworn import Expired, RetentionPolicy
from wellworn.store.events import trusted_now
from wellworn.store.sqlite import SqliteStore


@pytest.mark.parametrize("seconds", [2, 3600])
def test_a_step_back_hides_nothing_also_after_opening_again(
    opened: OpenMemory, clock: Clock, tmp_path: Path, seconds: int
) -> None:
    mem = opened(tmp_path / "memory.db")
    mem.remember("The harbour opens at six.", scope=ADA)
    clock.forward(seconds=-seconds)
    mem.remember("The pilot boards at noon.", scope=ADA)
    assert {hit.text for hit in mem.recall("harbour pilot", scope=ADA)} == {
        "The harbour opens at six.",
        "The pilot boards at noon.",
    }
    mem.close()
    assert len(opened(tmp_path / "memory.db").recall("harbour pilot", scope=ADA)) == 2


@pytest.mark.parametrize("back", [timedelta(seconds=2), timedelta(days=400)])
def test_queued_work_does_not_wait_for_a_clock_that_went_back(
    opened: OpenMemory, clock: Clock, back: timedelta
) -> None:
    mem = opened(background=False)
    session = mem.session("monday", scope=ADA)
    session.add("user", "My sister Mia has a cat called Momo.")
    session.end()
    clock.now -= back
    assert mem.jobs.run() == 1


def test_time_that_deleting_may_trust_stands_still_over_a_jump(clock: Clock) -> None:
    store, begin = SqliteStore(":memory:"), clock.now

    def look(**by: float) -> float:
        """Days from the beginning that may be trusted; a large negative number: nothing may be deleted."""
        with store.transact() as tx:
            return (trusted_now(tx, "acme", clock.forward(**by)) - begin) / timedelta(days=1)

    assert look() < -10_000  # the first look: the clock may be wrong already
    assert look(hours=12) < -10_000
    assert look(hours=12) == 1  # it has gone on for a day
    assert look(hours=12) == 1.5
    assert look(days=4000) == look(hours=1) == 1.5  # a jump
    assert look(days=-4000) == 1.5  # it was wrong
    assert look(hours=23) == 1.5
    assert look(hours=2) == pytest.approx(1.5 + 26 / 24)  # and goes on from there, a day after it came back
    store.close()


def test_a_jump_of_the_clock_expires_nothing_until_it_is_a_day_old(opened: OpenMemory, clock: Clock) -> None:
    mem = opened(background=False)
    mem.admin.retention(RetentionPolicy(kinds={"note": 30.0}), scope=ADA)
    mem.remember("The harbour opens at six.", kind="note", scope=ADA)
    assert mem.admin.expire(scope=ADA) == Expired()
    sure, jumped = clock.now, clock.forward(days=4000)
    mem.remember("The pilot boards at noon.", kind="note", scope=ADA)
    assert mem.admin.expire(scope=ADA) == Expired(counted_from=sure)
    clock.forward(hours=25)
    assert mem.admin.expire(scope=ADA) == Expired(entries=1, counted_from=jumped)
    assert [entry.text for entry in mem.entries(scope=ADA)] == ["The pilot boards at noon."]


def test_a_tenant_that_was_idle_is_counted_from_its_newest_event(path: Path, clock: Clock, opened: OpenMemory) -> None:
    mem = opened(path)
    mem.remember("Long ago.", at="2020-01-01", scope=ADA)
    last = clock.now
    clock.forward(days=10)
    done = mem.admin.expire(policy=RetentionPolicy(kinds={"note": 30}), scope=ADA)
    assert (done.entries, done.counted_from) == (1, last)
